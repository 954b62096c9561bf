"""Plans: which steps need which, which can be taken side by side, and what takes the place of a reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.programs.par_rag import MAX_STEPS, PlanStep, bind, demonstrated, levels, read_plan, trajectory
from polyhop.programs.review import CitedAnswer
from polyhop.signatures.replies import Steps


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
    for steps in (Steps(), Steps([{"thought": "x", "question": ""}])):
        assert read_plan("Q?", steps) == ([PlanStep(1, "Q?")], ())


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
