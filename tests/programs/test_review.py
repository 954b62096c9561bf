"""The review of one answer, and its confidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import Trace
from polyhop.programs.candidates import Candidates
from polyhop.programs.confidence import CREDIBILITY, Confidence
from polyhop.programs.par_rag import CitedAnswer, Review, read_cited
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Judged, Parallel, Revised, Searched, Weighed

from .scripted import Reply, Script, playing, scripted

FILM = Passage.of("Vertigo", sentences=["Vertigo is a film.", "It was directed by Alfred Hitchcock."], id="film")
MAN = Passage.of("Alfred Hitchcock", sentences=["He came from Leytonstone."], id="man")
BOOK = Passage.of("Vertigo (novel)", sentences=["Sebald wrote Vertigo, too."], id="book")
QUESTION = "Who directed Vertigo?"
CLAIM = CitedAnswer(QUESTION, "Alfred Hitchcock", (Evidence(FILM),))
UNSURE = CitedAnswer(QUESTION, "unknown")
HALF = 2.5  # hops at which accuracy and credibility weigh the same
CITED = "[1] Vertigo\n1s1 Vertigo is a film.\n1s2 It was directed by Alfred Hitchcock."


def review(
    claim: CitedAnswer = CLAIM,
    hops: float = HALF,
    pool: list[Passage] | None = None,
    reviewer: Review | None = None,
    **replies: Reply | list[Reply],
) -> tuple[Script, CitedAnswer, Trace]:
    run = Run(pool=PassagePool([FILM, MAN, BOOK] if pool is None else pool))
    with playing(scripted(**replies)) as script, running(run):
        done: CitedAnswer = (reviewer or Review())(claim, hops, shown=2)
    return script, done, run.trace


def revision(decision: str = "revised", answer: str = "Sebald", cited: Any = ("1",)) -> dict[str, Any]:
    return {"reason": " Read again. ", "decision": decision, "answer": answer, "cited": list(cited)}


def of(trace: Trace, kind: type) -> list[Any]:
    return [step for step in trace.flat() if isinstance(step, kind)]


def test_both_judges_see_what_is_cited_and_nothing_else() -> None:
    script, done, trace = review()
    seen = {"question": QUESTION, "evidence": CITED, "answer": "Alfred Hitchcock"}
    assert script.asked("accuracy_judge")[0].inputs == script.asked("attribution_judge")[0].inputs == seen
    assert done == CLAIM
    assert isinstance(trace.steps[0], Parallel)
    assert (trace.lm_calls, trace.lm_calls_critical_path, trace.searches) == (2, 1, 0)
    assert of(trace, Judged) == [Judged("accuracy", 0.9), Judged("attribution", 1.0, "attributable")]
    assert of(trace, Weighed) == [Weighed(0.5, 0.95, True, 2.5, 0.9, 1.0, "Alfred Hitchcock")]
    script, *_ = review(CitedAnswer(QUESTION, "Sebald"))
    assert script.asked("accuracy_judge")[0].inputs["evidence"] == "(none)"


@pytest.mark.parametrize(("verdict", "credibility"), CREDIBILITY.items())
def test_confidence_is_accuracy_and_credibility(verdict: str, credibility: float) -> None:
    _, _, trace = review(attribution_judge={"attribution": verdict}, accuracy_judge={"accuracy": 0.8})
    (weighed,) = of(trace, Weighed)
    assert weighed.confidence == pytest.approx(0.5 * 0.8 + 0.5 * credibility)
    assert weighed.passed == (weighed.confidence >= 0.75) == (not of(trace, Revised))


@pytest.mark.parametrize(
    ("hops", "accuracy", "credibility", "confidence"),
    [(4.0, 0.0, 1.0, 0.0), (1.0, 1.0, 0.001, 0.82), (4.0, 0.04, 1.0, 0.04)],
)
def test_minima_keep_a_wrong_or_contradicted_answer_from_passing(
    hops: float, accuracy: float, credibility: float, confidence: float
) -> None:
    weighed = Confidence().weigh(hops, accuracy, credibility)
    assert weighed.confidence == pytest.approx(confidence, abs=0.005)
    assert not weighed.passed
    assert Confidence(least_accuracy=0.0, least_credibility=0.0).weigh(hops, accuracy, credibility).passed


# --- a credibility model of one's own --------------------------------------------------------------------------------


def test_an_answer_that_cites_nothing_is_extrapolatory_unasked() -> None:
    script, _, trace = review(CitedAnswer(QUESTION, "Alfred Hitchcock"))
    assert "attribution_judge" not in script.order
    assert of(trace, Weighed)[0].confidence == pytest.approx(0.5 * 0.9 + 0.5 * 0.5)


def test_an_accuracy_that_cannot_be_read_is_0_and_recorded() -> None:
    script, _, trace = review(accuracy_judge="I would rather\nnot say.")
    assert of(trace, Weighed)[0].confidence == pytest.approx(0.5)
    assert Judged("accuracy", 0.0, invalid=("I would rather not say.",)) in of(trace, Judged)
    assert trace.dropped == 1
    assert "reviser" in script.order


@pytest.mark.parametrize(("claim", "query"), [(CLAIM, "Alfred Hitchcock"), (UNSURE, QUESTION)])
def test_it_looks_again_by_the_answer_or_by_the_question(claim: CitedAnswer, query: str) -> None:
    script, _, trace = review(claim, accuracy_judge={"accuracy": 0}, attribution_judge={"attribution": "contradictory"})
    assert [step.query for step in of(trace, Searched)] == [query]
    shown = script.asked("reviser")[0].inputs
    assert shown["draft"] == claim.answer
    assert shown["sources"].count("\n[") == 1  # the best two of three that were found, and nothing else


def test_a_revised_answer_replaces_answer_and_citations() -> None:
    _, done, trace = review(UNSURE, pool=[BOOK], reviser=revision(answer="Sebald [1s1]", cited=["1", "7"]))
    assert done == CitedAnswer(QUESTION, "Sebald", (Evidence(BOOK),))
    (step,) = of(trace, Revised)
    assert step == Revised("Sebald", "Read again.", True, (Evidence(BOOK).fact,), ("7", "1s1"))


def test_a_revised_answer_without_citations_keeps_the_old_ones() -> None:
    _, done, _ = review(accuracy_judge={"accuracy": 0}, reviser=revision(cited=[]), hops=1)
    assert done == CitedAnswer(QUESTION, "Sebald", CLAIM.cited)


@pytest.mark.parametrize("reply", [revision("unconfident"), revision("revised", "I don't know"), revision(answer="")])
def test_an_unconfident_or_empty_revision_changes_nothing(reply: dict[str, Any]) -> None:
    _, done, trace = review(accuracy_judge={"accuracy": 0}, reviser=reply, hops=1)
    assert done == CLAIM
    assert [step.accepted for step in of(trace, Revised)] == [False]


def test_all_citations_count_also_the_last() -> None:
    sources = Candidates([FILM, MAN, BOOK])
    every = (Evidence(FILM), Evidence(MAN), Evidence(BOOK))
    assert read_cited("x", ["1", "2s1", "3"], sources) == ("x", every, ())
    assert read_cited("x [1s1] [1s2][2s1] [3s1].", [], sources) == ("x.", every, ())
    assert read_cited("unknown", ["1"], sources) == ("unknown", (), ())


SHARE = st.floats(0, 1)


@pytest.mark.parametrize(("hops", "alpha"), [(1, 0.817574), (2, 0.622459), (2.5, 0.5), (3, 0.377541), (4, 0.182426)])
def test_alpha_by_hand(hops: float, alpha: float) -> None:
    assert Confidence().alpha(hops) == pytest.approx(alpha, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_constant_alpha(alpha: float) -> None:
    confidence = Confidence(adaptive=False)
    assert confidence.alpha(4) == 0.5
    confidence.fixed_alpha.value = alpha
    assert confidence.weigh(4, 1.0, 0.5).confidence == pytest.approx(alpha + (1 - alpha) * 0.5)


@given(st.floats(1, 4), SHARE, SHARE)
def test_confidence_lies_between_its_parts(hops: float, accuracy: float, credibility: float) -> None:
    confidence = Confidence().weigh(hops, accuracy, credibility).confidence
    assert min(accuracy, credibility) - 1e-9 <= confidence <= max(accuracy, credibility) + 1e-9
