"""The review of one answer, and its confidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import ParRag, Trace
from polyhop.programs.candidates import Candidates
from polyhop.programs.confidence import CREDIBILITY, Confidence
from polyhop.programs.review import CitedAnswer, Review, ReviewResult, read_cited
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Judged, Parallel, Revised, Scored, Searched, Weighed

from .scripted import Reply, Script, playing, scripted

FILM = Passage.of("Vertigo", sentences=["Vertigo is a film.", "It was directed by Alfred Hitchcock."], id="film")
MAN = Passage.of("Alfred Hitchcock", sentences=["He came from Leytonstone."], id="man")
BOOK = Passage.of("Vertigo (novel)", sentences=["Sebald wrote Vertigo, too."], id="book")
QUESTION = "Who directed Vertigo?"
CLAIM = CitedAnswer(QUESTION, "Alfred Hitchcock", (Evidence(FILM, 1),))
UNSURE = CitedAnswer(QUESTION, "unknown")
HALF = 2.5  # hops at which accuracy and credibility weigh the same


def review(
    claim: CitedAnswer = CLAIM,
    hops: float = HALF,
    pool: list[Passage] | None = None,
    reviewer: Review | None = None,
    **replies: Reply | list[Reply],
) -> tuple[Script, ReviewResult, Trace, Candidates]:
    run, sources = Run(pool=PassagePool([FILM, MAN, BOOK] if pool is None else pool)), Candidates([FILM])
    with playing(scripted(**replies)) as script, running(run):
        done = (reviewer or Review())(claim, sources, hops, shown=2)
    return script, done, run.trace, sources


def revision(decision: str = "revised", answer: str = "Sebald", cited: Any = ("2s1",)) -> dict[str, Any]:
    return {"reason": " Read again. ", "decision": decision, "answer": answer, "cited": list(cited)}


def of(trace: Trace, kind: type) -> list[Any]:
    return [step for step in trace.flat() if isinstance(step, kind)]


def test_what_the_judges_see() -> None:
    script, done, trace, _ = review()
    assert script.asked("accuracy_judge")[0].inputs == {
        "question": QUESTION,
        "sources": "[1] Vertigo\n1s1 Vertigo is a film.\n1s2 It was directed by Alfred Hitchcock.",
        "answer": "Alfred Hitchcock",
    }
    assert script.asked("attribution_judge")[0].inputs == {
        "question": QUESTION,
        "evidence": "[1] Vertigo\n1s2 It was directed by Alfred Hitchcock.",  # what is cited, and nothing else
        "answer": "Alfred Hitchcock",
    }
    assert done == ReviewResult(CLAIM, 0.5 * 0.9 + 0.5 * 1.0, "verified")
    assert isinstance(trace.steps[0], Parallel)
    assert (trace.lm_calls, trace.lm_calls_critical_path, trace.searches) == (2, 1, 0)
    assert of(trace, Judged) == [Judged("accuracy", 0.9), Judged("attribution", 1.0, "attributable")]


@pytest.mark.parametrize(("verdict", "credibility"), CREDIBILITY.items())
def test_confidence_is_accuracy_and_credibility(verdict: str, credibility: float) -> None:
    _, done, trace, _ = review(attribution_judge={"attribution": verdict}, accuracy_judge={"accuracy": 0.8})
    assert done.confidence == pytest.approx(0.5 * 0.8 + 0.5 * credibility)
    assert done.passed == (done.confidence >= 0.75) == (not of(trace, Revised))


def test_the_more_hops_the_less_accuracy_weighs() -> None:
    confidences = [review(hops=hops, accuracy_judge={"accuracy": 0.2})[1].confidence for hops in (1.0, 2.0, 3.0, 4.0)]
    assert confidences == sorted(confidences)
    assert confidences[0] < 0.4 < 0.8 < confidences[-1]


@pytest.mark.parametrize(
    ("hops", "verdict", "accuracy", "confidence"),
    [(4.0, "attributable", 0.0, 0.0), (1.0, "contradictory", 1.0, 0.82), (4.0, "attributable", 0.04, 0.04)],
)
def test_a_wrong_or_contradicted_answer_does_not_pass_whatever_alpha(
    hops: float, verdict: str, accuracy: float, confidence: float
) -> None:
    replies: dict[str, Any] = {
        "accuracy_judge": {"accuracy": accuracy},
        "attribution_judge": {"attribution": verdict},
    }
    script, done, _, _ = review(hops=hops, **replies)
    assert done.confidence == pytest.approx(confidence, abs=0.005)
    assert not done.passed
    assert "reviser" in script.order
    published = Review()
    published.confidence.least_accuracy.value = published.confidence.least_credibility.value = 0.0
    assert review(hops=hops, reviewer=published, **replies)[1].passed


def test_the_judge_of_accuracy_can_read_the_citations_only() -> None:
    reviewer = Review()
    reviewer.judged.value = "cited"
    script, *_ = review(reviewer=reviewer)
    cited = "[1] Vertigo\n1s2 It was directed by Alfred Hitchcock."
    assert script.asked("accuracy_judge")[0].inputs["sources"] == cited
    assert script.asked("attribution_judge")[0].inputs["evidence"] == cited
    script, *_ = review(CitedAnswer(QUESTION, "Sebald"), reviewer=reviewer)
    assert script.asked("accuracy_judge")[0].inputs["sources"] == "(none)"


def test_the_reviser_can_read_what_the_second_search_found_only() -> None:
    reviewer = Review()
    reviewer.reads.value = "found"
    script, done, _, sources = review(
        CitedAnswer("Who wrote Vertigo?", "Sebald", (Evidence(FILM, 0),)),
        reviewer=reviewer,
        pool=[BOOK],
        accuracy_judge={"accuracy": 0},
        reviser=revision(answer="W. G. Sebald", cited=["1s1"]),
    )
    assert script.asked("reviser")[0].inputs["sources"] == "[1] Vertigo (novel)\n1s1 Sebald wrote Vertigo, too."
    assert done.answer.cited == (Evidence(BOOK, 0),)
    assert sources.passages == [FILM, BOOK]


def test_citations_can_be_of_passages() -> None:
    reviewer = Review()
    reviewer.cites.value = "passage"
    _, done, _, _ = review(UNSURE, reviewer=reviewer, reviser=revision(answer="Alfred Hitchcock", cited=["1s2", "1s1"]))
    assert done.answer.cited == (Evidence(FILM),)


# --- a credibility model of one's own --------------------------------------------------------------------------------


def test_a_credibility_model_replaces_the_agent() -> None:
    calls = []

    def entailed(question: str, answer: str, evidence: Sequence[Evidence]) -> float:
        calls.append((question, answer, [item.text for item in evidence]))
        return 0.8

    script, done, trace, _ = review(reviewer=Review(credibility=entailed))
    assert calls == [(QUESTION, "Alfred Hitchcock", ["It was directed by Alfred Hitchcock."])]
    assert script.order == ["accuracy_judge"]
    assert done.confidence == pytest.approx(0.5 * 0.9 + 0.5 * 0.8)
    assert of(trace, Scored) == [Scored(0.8)]
    assert trace.lm_calls == 1
    review(CitedAnswer(QUESTION, "Sebald"), reviewer=Review(credibility=entailed))
    assert len(calls) == 1  # nothing is cited


@pytest.mark.parametrize("score", [1.2, -0.1, float("nan"), "Attributable", None, True])
def test_a_credibility_that_is_no_share_is_an_error(score: Any) -> None:
    with pytest.raises(PolyhopError, match="the credibility model returned .*: it must return a number from 0 to 1"):
        review(reviewer=Review(credibility=lambda question, answer, evidence: score))


def test_copies_of_a_program_share_its_credibility_model() -> None:
    class Model:
        def __call__(self, question: str, answer: str, evidence: Sequence[Evidence]) -> float:
            return 1.0

        def __deepcopy__(self, memo: dict[int, Any]) -> Model:
            raise AssertionError("copied")

    model = Model()
    program = ParRag(credibility=model)
    assert program.deepcopy().review.credibility is model
    assert json.dumps(program.dump_state())  # not part of the state


def test_what_is_not_known_scores_0_without_judges() -> None:
    script, done, trace, _ = review(UNSURE)
    assert script.order == ["reviser"]
    assert (done.confidence, done.passed) == (0.0, False)
    assert of(trace, Weighed) == [Weighed(0.5, 0.0, False)]


def test_an_answer_that_cites_nothing_is_extrapolatory_unasked() -> None:
    script, done, _, _ = review(CitedAnswer(QUESTION, "Alfred Hitchcock"))
    assert "attribution_judge" not in script.order
    assert done.confidence == pytest.approx(0.5 * 0.9 + 0.5 * 0.5)


def test_an_accuracy_that_cannot_be_read_is_0_and_recorded() -> None:
    script, done, trace, _ = review(accuracy_judge="I would rather\nnot say.")
    assert done.confidence == pytest.approx(0.5)
    assert Judged("accuracy", 0.0, invalid=("I would rather not say.",)) in of(trace, Judged)
    assert trace.dropped == 1
    assert "reviser" in script.order


@pytest.mark.parametrize(("claim", "query"), [(CLAIM, "Alfred Hitchcock"), (UNSURE, QUESTION)])
def test_it_looks_again_by_the_answer_or_by_the_question(claim: CitedAnswer, query: str) -> None:
    script, _, trace, sources = review(claim, accuracy_judge={"accuracy": 0})
    assert [step.query for step in of(trace, Searched)] == [query]
    assert len(sources.passages) == 2
    shown = script.asked("reviser")[0].inputs
    assert shown["draft"] == claim.answer
    assert shown["sources"].startswith("[1] Vertigo\n1s1")  # old sources keep their numbers
    assert "[2] " in shown["sources"]
    assert "[3] " not in shown["sources"]


def test_a_revised_answer_replaces_answer_and_citations() -> None:
    _, done, trace, sources = review(UNSURE, reviser=revision(answer="Sebald [1s2]", cited=["2s1", "7s7"]))
    assert done.revised
    assert not done.passed
    assert done.answer == CitedAnswer(QUESTION, "Sebald", (Evidence(sources.passages[1], 0), Evidence(FILM, 1)))
    (step,) = of(trace, Revised)
    assert step == Revised("Sebald", "Read again.", True, tuple(e.fact for e in done.answer.cited), ("7s7",))


@pytest.mark.parametrize("reply", [revision("unconfident"), revision("revised", "I don't know"), revision(answer="")])
def test_an_unconfident_or_empty_revision_changes_nothing(reply: dict[str, Any]) -> None:
    _, done, trace, _ = review(accuracy_judge={"accuracy": 0}, reviser=reply)
    assert (done.answer, done.revised) == (CLAIM, False)
    assert [step.accepted for step in of(trace, Revised)] == [False]


def test_all_citations_count_also_the_last() -> None:
    sources = Candidates([FILM, MAN, BOOK])
    every = (Evidence(FILM, 0), Evidence(FILM, 1), Evidence(MAN, 0), Evidence(BOOK, 0))
    assert read_cited("x", ["1s1", "1s2", "2s1", "3s1"], sources) == ("x", every, ())
    assert read_cited("x [1s1] [1s2][2s1] [3s1].", [], sources) == ("x.", every, ())
    assert read_cited("x [3s1]", ["1s1", "3s1"], sources) == ("x", (Evidence(FILM, 0), Evidence(BOOK, 0)), ())


SHARE = st.floats(0, 1)


@pytest.mark.parametrize(("hops", "alpha"), [(1, 0.817574), (2, 0.622459), (2.5, 0.5), (3, 0.377541), (4, 0.182426)])
def test_alpha_by_hand(hops: float, alpha: float) -> None:
    assert Confidence().alpha(hops) == pytest.approx(alpha, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_constant_alpha(alpha: float) -> None:
    confidence = Confidence(adaptive=False)
    assert confidence.alpha(4) == 0.5
    confidence.fixed_alpha.value = alpha
    assert confidence(4, 1.0, 0.5).confidence == pytest.approx(alpha + (1 - alpha) * 0.5)


def test_weighing_is_recorded() -> None:
    with running(Run()) as run:
        weighed = Confidence(threshold=0.75)(2.5, 0.9, CREDIBILITY["extrapolatory"])
    assert weighed == Weighed(0.5, pytest.approx(0.7), False)  # type: ignore[arg-type]
    assert run.trace.steps == [weighed]
    assert Confidence(threshold=0.7)(2.5, 0.9, 0.5).passed  # the threshold itself passes


@given(st.floats(1, 4), SHARE, SHARE)
def test_confidence_lies_between_its_parts(hops: float, accuracy: float, credibility: float) -> None:
    confidence = Confidence()(hops, accuracy, credibility).confidence
    assert min(accuracy, credibility) - 1e-9 <= confidence <= max(accuracy, credibility) + 1e-9
