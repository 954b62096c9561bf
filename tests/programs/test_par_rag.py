"""PAR-RAG: the plan, steps side by side, what is reviewed, revised and refined, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import ParRag
from polyhop.programs.complexity import Complexity
from polyhop.programs.confidence import Confidence
from polyhop.programs.par_rag import MAX_STEPS, CitedAnswer, PlanStep, bind, demonstrated, levels
from polyhop.programs.trace import (
    Decomposed,
    Estimated,
    Parallel,
    Recalled,
    Revised,
    Searched,
    StepAnswered,
    Weighed,
)

from .scripted import ADAPTERS, Reply, Request, Script, answer, facts, playing, queries, scripted, steps

QUESTION = "Which film has the younger director, Vertigo or Solaris?"
PLAN = [
    {"thought": "Needs nothing before it.", "question": "Who directed Vertigo?"},
    {"thought": "Needs nothing before it.", "question": "Who directed Solaris?"},
    {"thought": "Needs the answer of step 1.", "question": "When was #1 born?"},
    {"thought": "Needs the answer of step 2.", "question": "When was #2 born?"},
]
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
    given: dict[str, Any] = {"planner": {"steps": PLAN}, "step_answerer": reads(), "answerer": answer("Solaris")}
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
    assert steps(prediction, Decomposed) == [
        Decomposed(tuple(s["question"] for s in PLAN), (), tuple(s["thought"] for s in PLAN))
    ]
    assert [step.number for step in steps(prediction, StepAnswered)] == [1, 2, 3, 4]
    assert prediction.trace.lm_calls == len(script.requests) == 1 + 4 * 3 + 2 + 3
    assert prediction.trace.lm_calls_critical_path == 1 + 2 + 3 + 2


# --- complexity, exemplars, plan -------------------------------------------------------------------------------------


def test_without_a_plan_the_question_is_the_only_step() -> None:
    script, prediction = play(set=lambda program: setattr(program.planned, "value", False))
    assert "planner" not in script.order
    assert [request.inputs["question"] for request in script.asked("step_answerer")] == [QUESTION]
    assert not steps(prediction, Decomposed)
    assert not steps(prediction, Recalled)
    assert prediction.trace.lm_calls == len(script.requests)


# --- act -------------------------------------------------------------------------------------------------------------


def test_an_unknown_answer_is_described_to_the_steps_that_need_it() -> None:
    _, prediction = play(
        step_answerer={"cited": ["1"], "answer": "I don't know"},
        refiner=lambda request: {"refined_question": request.inputs["next_question"]},
    )
    assert 'When was the answer to "Who directed Vertigo" born?' in queries(prediction)
    assert facts(prediction) == []  # what is not known rests on nothing


# --- failures, roles, state ------------------------------------------------------------------------------------------


# --- review ----------------------------------------------------------------------------------------------------------


def test_a_step_that_fails_is_looked_for_again_revised_and_the_next_question_refined() -> None:
    wrong = ANSWERS | {"Who directed Vertigo?": "Dan", "When was Sir Alfred Hitchcock born?": "1899"}
    script, prediction = play(
        planner={"steps": [PLAN[0], PLAN[2]]},
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


def test_without_judges_every_answer_passes() -> None:
    script, prediction = play(set=lambda program: setattr(program.review.judges, "value", "none"))
    assert set(script.order) == {"planner", "refiner", "step_answerer", "answerer"}
    assert prediction.confidence == pytest.approx(0.9)  # the answerer's own
    assert prediction.stop_reason == "plan done"


# --- the final answer ------------------------------------------------------------------------------------------------


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


# --- where it searches -----------------------------------------------------------------------------------------------


def test_the_review_looks_in_a_sparse_retriever() -> None:
    pool, other = PassagePool(POOL), PassagePool(POOL[:1])
    assert ParRag(pool).review.search.retriever is pool
    assert ParRag(pool, review_retriever=other).review.search.retriever is other
    assert ParRag(ChainRetriever(pool)).review.search.retriever is pool
    assert ParRag(ChainRetriever()).review.search.retriever is None
    program = ParRag(ChainRetriever())
    with playing(scripted(planner={"steps": PLAN[:1]}, answerer=answer("x"))):
        first, second, *_ = steps(program(question=QUESTION, pool=POOL), Searched)
    assert first.reasons  # a chain through the question's own pool ...
    assert not second.reasons  # ... and BM25 over it


# --- plan -----------------------------------------------------------------------------------------------------------


def plan(*questions: str) -> list[PlanStep]:
    return [PlanStep(number, question) for number, question in enumerate(questions, 1)]


@given(st.lists(st.lists(st.integers(0, 10), max_size=3), min_size=1, max_size=MAX_STEPS))
def test_every_step_is_taken_once_and_after_what_it_needs(references: list[list[int]]) -> None:
    made = plan(*("Q " + " ".join(f"#{n}" for n in needed) for needed in references))
    done: set[int] = set()
    for level in levels(made):
        assert level
        assert all(set(step.needs) <= done for step in level)
        done |= {step.number for step in level}
    assert done == set(range(1, len(references) + 1))


def test_answers_take_the_place_of_references() -> None:
    answers = {
        1: CitedAnswer("Who directed A?", "Ann"),
        2: CitedAnswer("Who directed B?", "unknown"),
        12: CitedAnswer("x", "Twelve"),
    }
    assert bind("Is #1 older than #12?", answers) == "Is Ann older than Twelve?"
    assert (
        bind("Where was #2 born?", answers) == 'Where was the answer to "Who directed B" born?'
    )  # still something to search for
    assert bind("Where was #3 born?", answers) == "Where was #3 born?"
    assert bind("#1?", {1: CitedAnswer("x", r"\1 #1")}) == r"\1 #1?"  # an answer is no pattern


def test_an_exemplar_says_what_each_step_depends_on() -> None:
    shown = demonstrated(["Who is A?", "Who is B?", "Where was #1 born?", "Is #1 older than #2?", "#1, #2 and #3?"])
    assert shown[2] == {"thought": "Needs the answer of step 1.", "question": "Where was #1 born?"}
    assert [step["thought"] for step in shown] == [
        "Needs nothing before it.",
        "Needs nothing before it.",
        "Needs the answer of step 1.",
        "Needs the answers of steps 1 and 2.",
        "Needs the answers of steps 1, 2 and 3.",
    ]
