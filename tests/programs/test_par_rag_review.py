"""PAR-RAG's review: of steps, and of the final answer; where it searches."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.pool import PassagePool
from polyhop.programs import ParRag
from polyhop.programs.par_rag import MAX_STEPS, PlanStep, bind, demonstrated, levels, read_plan, trajectory
from polyhop.programs.review import CitedAnswer
from polyhop.programs.trace import Judged, Refined, Revised, Searched, Weighed
from polyhop.signatures.replies import Steps

from .par_rag_script import ANSWERS, PLAN, POOL, QUESTION, doubts, facts, play, queries, reads, revised, steps
from .scripted import Request, answer, playing, scripted

# --- review ----------------------------------------------------------------------------------------------------------


def test_a_step_that_fails_is_looked_for_again_revised_and_the_next_question_refined() -> None:
    wrong = ANSWERS | {"Who directed Vertigo?": "Dan", "When was Sir Alfred Hitchcock born?": "1899"}
    script, prediction = play(
        planner={"steps": [PLAN[0], PLAN[2]]},
        step_answerer=reads(wrong),
        accuracy_judge=doubts("Who directed Vertigo?"),
        reviser=revised("Alfred Hitchcock", ["1s2"]),
        refiner={"refined_question": "When was Sir Alfred Hitchcock born?"},
    )
    assert queries(prediction) == ["Who directed Vertigo?", "Dan", "When was Sir Alfred Hitchcock born?"]
    assert script.asked("reviser")[0].inputs["draft"] == "Dan"
    assert script.asked("refiner")[0].inputs == {
        "question": QUESTION,
        "trajectory": '["#1 Who directed Vertigo? -> Alfred Hitchcock"]',  # with the correction
        "next_question": "When was #1 born?",
    }
    assert steps(prediction, Refined) == [Refined(2, "When was Sir Alfred Hitchcock born?")]
    assert [step.accepted for step in steps(prediction, Revised)] == [True]
    assert facts(prediction) == [("vertigo", 1), ("hitchcock", 0)]
    assert prediction.trace.lm_calls == len(script.requests) == 1 + 3 + 4 + 3  # "Dan" cites nothing to be judged
    assert prediction.trace.lm_calls_critical_path == 1 + 3 + 3 + 2


def test_only_the_questions_that_need_a_revised_answer_are_refined() -> None:
    script, prediction = play(
        accuracy_judge=doubts("Who directed Solaris?"), reviser=revised("Alexander Sokurov", ["1s1"])
    )
    assert [step.number for step in steps(prediction, Refined)] == [4]
    assert len(script.asked("refiner")) == 1


def test_a_refined_question_may_still_refer_or_be_empty() -> None:
    for reply in ("When was #2 born?", "", None):
        _, prediction = play(
            dspy.JSONAdapter(),
            accuracy_judge=doubts("Who directed Solaris?"),
            reviser=revised("Andrei Tarkovsky", ["1s1"]),
            refiner={"refined_question": reply},
        )
        assert queries(prediction)[-1] == "When was Andrei Tarkovsky born?"


def test_an_unconfident_revision_keeps_the_answer_and_refines_nothing() -> None:
    script, prediction = play(accuracy_judge=doubts("Who directed Solaris?"))
    assert "reviser" in script.order
    assert "refiner" not in script.order
    assert prediction.stop_reason == "confident"
    assert ("solaris", 0) in facts(prediction)


def test_an_unknown_step_is_looked_for_again_by_its_question() -> None:
    script, prediction = play(planner={"steps": PLAN[:1]}, step_answerer={"cited": [], "answer": "I don't know"})
    assert queries(prediction)[:2] == ["Who directed Vertigo?"] * 2
    assert "Who directed Vertigo?" not in {r.inputs["question"] for r in script.asked("accuracy_judge")}


def test_a_judge_that_cannot_be_read_scores_0() -> None:
    _, prediction = play(accuracy_judge="Well,\nhard to say.")
    assert {step.score for step in steps(prediction, Judged) if step.aspect == "accuracy"} == {0.0}
    assert prediction.confidence == pytest.approx(0.5)
    assert prediction.trace.dropped == 5


def test_without_review_every_answer_passes() -> None:
    script, prediction = play(set=lambda program: setattr(program.reviewed, "value", False))
    assert set(script.order) == {"planner", "step_answerer", "answerer"}
    assert prediction.confidence == pytest.approx(0.9)  # the answerer's own
    assert prediction.stop_reason == "plan done"
    assert prediction.trace.lm_calls == len(script.requests) == 6


def test_the_threshold_is_read_at_every_call() -> None:
    program = ParRag()
    program.review.confidence.adaptive.value = False
    for threshold, stop in ((0.9, "confident"), (0.97, "unconfident")):
        program.review.confidence.threshold.value = threshold
        with playing(scripted(planner={"steps": PLAN}, step_answerer=reads(), answerer=answer("Solaris"))):
            assert program(question=QUESTION, pool=POOL).stop_reason == stop


def test_a_draft_that_is_confirmed_changes_no_question() -> None:
    _, prediction = play(accuracy_judge=doubts("Who directed Solaris?"), reviser=revised("Andrei Tarkovsky", ["1s1"]))
    assert steps(prediction, Refined) == []


# --- the final answer ------------------------------------------------------------------------------------------------


def test_a_final_answer_that_fails_is_revised_once_and_judged_again() -> None:
    def judge(request: Request) -> dict[str, Any]:
        return {"accuracy": 0.0 if request.inputs["answer"] == "Solaris" else 0.8}

    script, prediction = play(
        planner={"steps": PLAN[:1]}, accuracy_judge=judge, reviser=revised("Vertigo", ["1s2", "2s1"])
    )
    assert script.order[-6:-3] != script.order[-3:]
    assert script.order[-3] == "reviser"
    assert sorted(script.order[-2:]) == ["accuracy_judge", "attribution_judge"]
    assert queries(prediction)[-1] == "Solaris"
    assert (prediction.answer, prediction.stop_reason) == ("Vertigo", "revised")
    assert prediction.confidence == pytest.approx(0.5 * 0.8 + 0.5 * 1.0)
    assert facts(prediction) == [("vertigo", 1), ("solaris", 0)]  # the steps' citations, then the revision's
    assert prediction.trace.lm_calls == len(script.requests)
    assert len(steps(prediction, Weighed)) == 3


def test_a_final_answer_that_stays_unconvincing_is_given_with_its_confidence() -> None:
    _, prediction = play(accuracy_judge=doubts(QUESTION))
    assert (prediction.answer, prediction.stop_reason) == ("Solaris", "unconfident")
    assert prediction.confidence == pytest.approx(0.5)


def test_an_unknown_final_answer_is_looked_for_by_the_question() -> None:
    _, prediction = play(answerer=answer("unknown"), reviser=revised("Solaris", ["2s1"]))
    assert queries(prediction)[-1] == QUESTION
    assert (prediction.answer, prediction.stop_reason) == ("Solaris", "revised")


def test_nothing_found_is_unknown_and_no_call_is_paid_to_read_nothing() -> None:
    script, prediction = play(pool=[], answerer=answer("London"))
    assert script.order == ["planner"]
    assert (prediction.answer, prediction.evidence, prediction.ranking) == ("unknown", (), ())
    assert (prediction.confidence, prediction.stop_reason) == (0.0, "nothing found")


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


def test_no_retriever_and_no_pool() -> None:
    with playing(scripted()), pytest.raises(PolyhopError, match="nothing to search"):
        ParRag()(question=QUESTION)


# --- plan -----------------------------------------------------------------------------------------------------------


def plan(*questions: str) -> list[PlanStep]:
    return read_plan("Q?", Steps({"thought": "", "question": question} for question in questions))[0]


@pytest.mark.parametrize(
    ("question", "needs"),
    [
        ("Who directed A?", ()),
        ("Where was #1 born?", (1,)),
        ("Is #2 older than #1, or #2?", (2, 1)),
        ("Who married #3?", ()),  # itself
        ("Who married #4 or #0?", ()),  # later, and none
        ("Who sang #1s?", ()),  # a name, no reference
    ],
)
def test_a_step_needs_the_earlier_steps_that_it_refers_to(question: str, needs: tuple[int, ...]) -> None:
    assert PlanStep(3, question).needs == needs


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        (["A?"], [[1]]),
        (["A?", "B?", "#1?", "#2?"], [[1, 2], [3, 4]]),
        (["A?", "#1?", "#2?"], [[1], [2], [3]]),
        (["A?", "#1?", "C?", "#2 and #3?"], [[1, 3], [2], [4]]),
        (["#2?", "B?"], [[1, 2]]),  # a reference forward is none
    ],
)
def test_independent_steps_are_of_one_level(questions: list[str], expected: list[list[int]]) -> None:
    assert [[step.number for step in level] for level in levels(plan(*questions))] == expected


@given(st.lists(st.lists(st.integers(0, 10), max_size=3), min_size=1, max_size=MAX_STEPS))
def test_every_step_is_taken_once_and_after_what_it_needs(references: list[list[int]]) -> None:
    made = plan(*("Q " + " ".join(f"#{n}" for n in needed) for needed in references))
    done: set[int] = set()
    for level in levels(made):
        assert level
        assert all(set(step.needs) <= done for step in level)
        done |= {step.number for step in level}
    assert done == set(range(1, len(references) + 1))


def test_steps_without_a_question_do_not_count_and_white_space_is_folded() -> None:
    steps = Steps([{"thought": "x", "question": " "}, {"thought": " a\nb ", "question": " Who\nis it? "}])
    assert read_plan("Q?", steps) == ([PlanStep(1, "Who is it?", "a b")], ())


def test_without_steps_the_question_is_the_only_one() -> None:
    for empty in (Steps(), Steps([{"thought": "x", "question": ""}])):
        assert read_plan("Q?", empty) == ([PlanStep(1, "Q?")], ())


def test_a_runaway_plan_is_cut_and_the_rest_returned() -> None:
    many = [f"Who is {n}?" for n in range(MAX_STEPS + 50)]
    made, beyond = read_plan("Q?", Steps({"thought": "", "question": question} for question in many))
    assert [step.question for step in made] == many[:MAX_STEPS]
    assert list(beyond) == many[MAX_STEPS:]


def test_answers_take_the_place_of_references() -> None:
    answers = {
        1: CitedAnswer("Who directed A?", "Ann"),
        2: CitedAnswer("Who directed B?", "unknown"),
        12: CitedAnswer("x", "Twelve"),
    }
    assert bind("Is #1 older than #12?", answers) == "Is Ann older than Twelve?"
    assert bind("Where was #2 born?", answers) == "Where was (Who directed B) born?"  # still something to search for
    assert bind("Where was #3 born?", answers) == "Where was #3 born?"
    assert bind("#1?", {1: CitedAnswer("x", r"\1 #1")}) == r"\1 #1?"  # an answer is no pattern


def test_a_trajectory_is_in_the_order_of_the_steps() -> None:
    assert trajectory({2: CitedAnswer("B?", "b"), 1: CitedAnswer("A?", "a")}) == ["#1 A? -> a", "#2 B? -> b"]


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
