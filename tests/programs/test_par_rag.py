"""PAR-RAG: the plan, steps side by side, what is reviewed, revised and refined, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import ParRag, Trace
from polyhop.programs.candidates import Cited
from polyhop.programs.complexity import Complexity
from polyhop.programs.confidence import CREDIBILITY, Confidence
from polyhop.programs.par_rag import Review, bind
from polyhop.programs.run import Run, running
from polyhop.programs.trace import (
    Decomposed,
    Estimated,
    Judged,
    Parallel,
    Recalled,
    Revised,
    Searched,
    StepAnswered,
    Weighed,
)

from .scripted import ADAPTERS, Reply, Request, Script, answer, facts, playing, queries, scripted, steps

QUESTION = "Which film has the younger director, Vertigo or Solaris?"
PLAN = ["Who directed Vertigo?", "Who directed Solaris?", "When was #1 born?", "When was #2 born?"]
POOL = [
    Passage.of("Vertigo", sentences=["Vertigo is a film.", "Vertigo was directed by Alfred Hitchcock."], id="vertigo"),
    Passage.of("Solaris", sentences=["Solaris was directed by Andrei Tarkovsky."], id="solaris"),
    Passage.of("Alfred Hitchcock", sentences=["Alfred Hitchcock was born in 1899."], id="hitchcock"),
    Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was born in 1932."], id="tarkovsky"),
]
ANSWERS = {
    "Who directed Vertigo?": "Alfred Hitchcock",
    "Who directed Solaris?": "Andrei Tarkovsky",
    "When was Alfred Hitchcock born?": "1899",
    "When was Andrei Tarkovsky born?": "1932",
}


def planned(*sub_questions: str) -> dict[str, Any]:
    return {"thought": "Some need others.", "sub_questions": list(sub_questions)}


def reads(answers: Mapping[str, str] = ANSWERS) -> Callable[[Request], dict[str, Any]]:
    """Answers each question as told, and cites the first source that has the answer."""

    def reply(request: Request) -> dict[str, Any]:
        text = answers.get(request.inputs["question"], "I don't know")
        lines = (line.split(" ", 1) for line in request.inputs["sources"].splitlines() if not line.startswith("["))
        return {"cited": [id.partition("s")[0] for id, line in lines if text in line][:1], "answer": text}

    return reply


def doubts(*questions: str) -> Callable[[Request], dict[str, Any]]:
    """An accuracy judge that is sure of everything but the answers to some questions."""
    return lambda request: {"accuracy": 0.0 if request.inputs["question"] in questions else 1.0}


def revised(text: str, cited: list[str]) -> dict[str, Any]:
    return {"reason": "Read again.", "decision": "revised", "answer": text, "cited": cited}


def play(
    adapter: Any = None,
    *,
    set: Callable[[ParRag], None] = lambda program: None,
    pool: list[Passage] | None = None,
    **replies: Reply | list[Reply],
) -> tuple[Script, dspy.Prediction]:
    def refine(request: Request) -> dict[str, Any]:
        step = request.inputs["next_question"]
        return {"refined_question": step.replace("#1", "Alfred Hitchcock").replace("#2", "Andrei Tarkovsky")}

    replies = {"refiner": refine} | replies
    given: dict[str, Any] = {"planner": planned(*PLAN), "step_answerer": reads(), "answerer": answer("Solaris")}
    program = ParRag()
    program.review.confidence.adaptive.value = False  # accuracy and credibility weigh the same
    set(program)
    with playing(scripted(**(given | replies)), adapter) as script:
        prediction = program(question=QUESTION, pool=POOL if pool is None else pool)
    return script, prediction


def asked(script: Script, agent: str, question: str) -> Request:
    """The one request to an agent about a question; steps side by side ask in any order."""
    (request,) = [each for each in script.asked(agent) if each.inputs["question"] == question]
    return request


# --- the walk-through ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_comparison_step_by_step(adapter: Any) -> None:
    script, prediction = play(adapter)
    assert script.order[0] == "planner"
    assert sorted(script.order[1:7]) == sorted(["step_answerer", "accuracy_judge", "attribution_judge"] * 2)
    read = ["refiner", "step_answerer", "accuracy_judge", "attribution_judge"]
    assert sorted(script.order[7:15]) == sorted(read * 2)
    assert script.order[15] == "answerer"
    assert sorted(script.order[16:]) == ["accuracy_judge", "attribution_judge"]

    assert script.asked("planner")[0].inputs == {"question": QUESTION}
    first = asked(script, "step_answerer", "Who directed Vertigo?").inputs
    assert first["sources"].startswith("[1] Vertigo\n1s1 Vertigo is a film.\n1s2 Vertigo was directed by")
    assert set(first) == {"question", "sources"}
    asked(script, "step_answerer", "When was Alfred Hitchcock born?")  # the answer replaces #1

    evidence = (
        "[1] Vertigo\n1s1 Vertigo is a film.\n1s2 Vertigo was directed by Alfred Hitchcock.\n"
        "[2] Solaris\n2s1 Solaris was directed by Andrei Tarkovsky.\n"
        "[3] Alfred Hitchcock\n3s1 Alfred Hitchcock was born in 1899.\n"
        "[4] Andrei Tarkovsky\n4s1 Andrei Tarkovsky was born in 1932."
    )
    assert script.asked("answerer")[0].inputs == {
        "question": QUESTION,
        "trajectory": json.dumps([f"#{n} {text} -> {said}" for n, (text, said) in enumerate(ANSWERS.items(), 1)]),
        "evidence": evidence,
    }
    assert asked(script, "attribution_judge", QUESTION).inputs["evidence"] == evidence
    assert asked(script, "accuracy_judge", QUESTION).inputs["evidence"] == evidence

    assert (prediction.answer, prediction.stop_reason) == ("Solaris", "confident")
    assert prediction.confidence == pytest.approx(0.5 * 0.9 + 0.5 * 1.0)  # the final review's, not the answerer's
    assert facts(prediction) == [("vertigo", None), ("solaris", None), ("hitchcock", None), ("tarkovsky", None)]
    assert [passage.id for passage in prediction.ranking] == ["vertigo", "solaris", "hitchcock", "tarkovsky"]
    assert queries(prediction) == list(ANSWERS)

    assert [type(step) for step in prediction.trace.steps[:4]] == [Estimated, Recalled, Decomposed, Parallel]
    assert steps(prediction, Decomposed) == [Decomposed(tuple(PLAN))]
    assert [step.number for step in steps(prediction, StepAnswered)] == [1, 2, 3, 4]
    assert prediction.trace.lm_calls == len(script.requests) == 1 + 4 * 3 + 2 + 3
    assert prediction.trace.lm_calls_critical_path == 1 + 2 + 3 + 2


# --- review ----------------------------------------------------------------------------------------------------------


def test_a_step_that_fails_is_looked_for_again_revised_and_the_next_question_refined() -> None:
    wrong = ANSWERS | {"Who directed Vertigo?": "Dan", "When was Sir Alfred Hitchcock born?": "1899"}
    script, prediction = play(
        planner=planned(PLAN[0], PLAN[2]),
        step_answerer=reads(wrong),
        accuracy_judge=doubts("Who directed Vertigo?"),
        reviser=revised("Alfred Hitchcock", ["1"]),
        refiner={"refined_question": "When was Sir Alfred Hitchcock born?"},
    )
    assert queries(prediction) == ["Who directed Vertigo?", "Dan", "When was Sir Alfred Hitchcock born?"]
    assert script.asked("reviser")[0].inputs["draft"] == "Dan"
    assert script.asked("refiner")[0].inputs == {
        "question": QUESTION,
        "trajectory": '["#1 Who directed Vertigo? -> Alfred Hitchcock"]',  # with the correction
        "next_question": "When was #1 born?",
    }
    assert [step.accepted for step in steps(prediction, Revised)] == [True]
    assert facts(prediction) == [("vertigo", None), ("hitchcock", None)]
    assert prediction.trace.lm_calls == len(script.requests) == 1 + 3 + 4 + 3  # "Dan" cites nothing to be judged
    assert prediction.trace.lm_calls_critical_path == 1 + 3 + 3 + 2


@pytest.mark.parametrize(("misjudged", "hops"), [(0, 2), (1, 3), (-1, 1), (-3, 1), (3, 4)])
def test_alpha_and_exemplars_follow_the_estimated_number_of_hops(misjudged: int, hops: int) -> None:
    def tuned(program: ParRag) -> None:
        program.review.confidence.adaptive.value = True
        program.misjudged.value = misjudged

    _, prediction = play(set=tuned)
    assert Complexity(steps(prediction, Estimated)[0].probabilities).hops == 2
    assert {step.alpha for step in steps(prediction, Weighed)} == {Confidence().alpha(hops)}
    (recalled,) = steps(prediction, Recalled)
    shown = [each for each in ParRag().exemplars.memory.exemplars if each.question in recalled.questions]
    assert [each.hops for each in shown] == [hops]


# --- the final answer ------------------------------------------------------------------------------------------------


def test_without_a_plan_the_question_is_the_only_step() -> None:
    script, prediction = play(set=lambda program: setattr(program.planned, "value", False))
    assert "planner" not in script.order
    assert [request.inputs["question"] for request in script.asked("step_answerer")] == [QUESTION]
    assert not steps(prediction, Decomposed)
    assert not steps(prediction, Recalled)
    assert prediction.trace.lm_calls == len(script.requests)


def test_without_judges_every_answer_passes() -> None:
    script, prediction = play(set=lambda program: setattr(program.review.judges, "value", "none"))
    assert set(script.order) == {"planner", "refiner", "step_answerer", "answerer"}
    assert prediction.confidence == pytest.approx(0.9)  # the answerer's own
    assert prediction.stop_reason == "plan done"


@pytest.mark.parametrize(("accuracy", "stop"), [(0.2, "unconfident"), (1.0, "confident")])
def test_a_final_answer_is_judged_and_given_with_its_confidence(accuracy: float, stop: str) -> None:
    script, prediction = play(
        accuracy_judge=lambda r: {"accuracy": accuracy if r.inputs["question"] == QUESTION else 1.0},
        reviser=revised("Vertigo", ["1"]),
    )
    assert "reviser" not in script.order
    assert (prediction.answer, prediction.stop_reason) == ("Solaris", stop)
    assert prediction.status == ("verified" if accuracy == 1.0 else "in doubt")
    assert prediction.confidence == pytest.approx(0.5 * accuracy + 0.5)


# --- plan -----------------------------------------------------------------------------------------------------------


def test_answers_take_the_place_of_references() -> None:
    answers = {
        1: Cited("Ann", question="Who directed A?"),
        2: Cited("unknown", question="Who directed B?"),
        12: Cited("Twelve", question="x"),
    }
    assert bind("Is #1 older than #12?", answers) == "Is Ann older than Twelve?"
    assert (
        bind("Where was #2 born?", answers) == 'Where was the answer to "Who directed B" born?'
    )  # still something to search for
    assert bind("Where was #3 born?", answers) == "Where was #3 born?"
    assert bind("#1?", {1: Cited(r"\1 #1", question="x")}) == r"\1 #1?"  # an answer is no pattern


# --- the review of one answer ----------------------------------------------------------------------------------------

FILM = Passage.of("Vertigo", sentences=["Vertigo is a film.", "It was directed by Alfred Hitchcock."], id="film")
MAN = Passage.of("Alfred Hitchcock", sentences=["He came from Leytonstone."], id="man")
BOOK = Passage.of("Vertigo (novel)", sentences=["Sebald wrote Vertigo, too."], id="book")
ASKED = "Who directed Vertigo?"
CLAIM = Cited("Alfred Hitchcock", question=ASKED, cited=(Evidence(FILM),))
UNSURE = Cited("unknown", question=ASKED)
HALF = 2.5  # hops at which accuracy and credibility weigh the same
CITED = "[1] Vertigo\n1s1 Vertigo is a film.\n1s2 It was directed by Alfred Hitchcock."


def review(
    claim: Cited = CLAIM,
    hops: float = HALF,
    pool: list[Passage] | None = None,
    reviewer: Review | None = None,
    **replies: Reply | list[Reply],
) -> tuple[Script, Cited, Trace]:
    run = Run(pool=PassagePool([FILM, MAN, BOOK] if pool is None else pool))
    with playing(scripted(**replies)) as script, running(run):
        done: Cited = (reviewer or Review())(claim, hops, shown=2)
    return script, done, run.trace


def revision(decision: str = "revised", answer: str = "Sebald", cited: Any = ("1",)) -> dict[str, Any]:
    return {"reason": " Read again. ", "decision": decision, "answer": answer, "cited": list(cited)}


def of(trace: Trace, kind: type) -> list[Any]:
    return [step for step in trace.flat() if isinstance(step, kind)]


def test_both_judges_see_what_is_cited_and_nothing_else() -> None:
    script, done, trace = review()
    seen = {"question": ASKED, "evidence": CITED, "answer": "Alfred Hitchcock"}
    assert script.asked("accuracy_judge")[0].inputs == script.asked("attribution_judge")[0].inputs == seen
    assert done == CLAIM
    assert isinstance(trace.steps[0], Parallel)
    assert (trace.lm_calls, trace.lm_calls_critical_path, trace.searches) == (2, 1, 0)
    assert of(trace, Judged) == [Judged("accuracy", 0.9), Judged("attribution", 1.0, "attributable")]
    assert of(trace, Weighed) == [Weighed(0.5, 0.95, True, 2.5, 0.9, 1.0, "Alfred Hitchcock")]
    script, *_ = review(Cited("Sebald", question=ASKED))
    assert script.asked("accuracy_judge")[0].inputs["evidence"] == "(none)"


@pytest.mark.parametrize(("verdict", "credibility"), CREDIBILITY.items())
def test_confidence_is_accuracy_and_credibility(verdict: str, credibility: float) -> None:
    _, _, trace = review(attribution_judge={"attribution": verdict}, accuracy_judge={"accuracy": 0.8})
    (weighed,) = of(trace, Weighed)
    assert weighed.confidence == pytest.approx(0.5 * 0.8 + 0.5 * credibility)
    assert weighed.passed == (weighed.confidence >= 0.75) == (not of(trace, Revised))


def test_an_answer_that_cites_nothing_is_extrapolatory_unasked() -> None:
    script, _, trace = review(Cited("Alfred Hitchcock", question=ASKED))
    assert "attribution_judge" not in script.order
    assert of(trace, Weighed)[0].confidence == pytest.approx(0.5 * 0.9 + 0.5 * 0.5)


def test_an_accuracy_that_cannot_be_read_is_0_and_recorded() -> None:
    script, _, trace = review(accuracy_judge="I would rather\nnot say.")
    assert of(trace, Weighed)[0].confidence == pytest.approx(0.5)
    assert Judged("accuracy", 0.0, invalid=("I would rather not say.",)) in of(trace, Judged)
    assert trace.dropped == 1
    assert "reviser" in script.order


@pytest.mark.parametrize(("claim", "query"), [(CLAIM, "Alfred Hitchcock"), (UNSURE, ASKED)])
def test_it_looks_again_by_the_answer_or_by_the_question(claim: Cited, query: str) -> None:
    script, _, trace = review(claim, accuracy_judge={"accuracy": 0}, attribution_judge={"attribution": "contradictory"})
    assert [step.query for step in of(trace, Searched)] == [query]
    shown = script.asked("reviser")[0].inputs
    assert shown["draft"] == claim.text
    assert shown["sources"].count("\n[") == 1  # the best two of three that were found, and nothing else


def test_a_revised_answer_replaces_answer_and_citations() -> None:
    _, done, trace = review(UNSURE, pool=[BOOK], reviser=revision(answer="Sebald [1s1]", cited=["1", "7"]))
    assert done == Cited("Sebald", question=ASKED, cited=(Evidence(BOOK),))
    (step,) = of(trace, Revised)
    assert step == Revised("Sebald", "Read again.", True, (Evidence(BOOK).fact,), ("7", "1s1"))


@pytest.mark.parametrize("reply", [revision("unconfident"), revision("revised", "I don't know"), revision(answer="")])
def test_an_unconfident_or_empty_revision_changes_nothing(reply: dict[str, Any]) -> None:
    _, done, trace = review(accuracy_judge={"accuracy": 0}, reviser=reply, hops=1)
    assert done == CLAIM
    assert [step.accepted for step in of(trace, Revised)] == [False]


@pytest.mark.parametrize(("hops", "alpha"), [(1, 0.817574), (2, 0.622459), (2.5, 0.5), (3, 0.377541), (4, 0.182426)])
def test_alpha_by_hand(hops: float, alpha: float) -> None:
    assert Confidence().alpha(hops) == pytest.approx(alpha, abs=1e-6)
