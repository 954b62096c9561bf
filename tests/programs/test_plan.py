"""Plans: which steps need which, which can be taken side by side, and what takes the place of a reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.programs.plan import MOST_STEPS, Claim, Plan, Step, bind, demonstrated, trajectory
from polyhop.signatures.replies import Steps


def plan(*questions: str) -> Plan:
    return Plan.of("Q?", Steps({"thought": "", "question": question} for question in questions))[0]


def levels(*questions: str) -> list[list[int]]:
    return [[step.number for step in level] for level in plan(*questions).levels()]


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
    assert Step(3, question).needs == needs


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
    assert levels(*questions) == expected


@given(st.lists(st.lists(st.integers(0, 10), max_size=3), min_size=1, max_size=MOST_STEPS))
def test_every_step_is_taken_once_and_after_what_it_needs(references: list[list[int]]) -> None:
    made = plan(*("Q " + " ".join(f"#{n}" for n in needed) for needed in references))
    done: set[int] = set()
    for level in made.levels():
        assert level
        assert all(set(step.needs) <= done for step in level)
        done |= {step.number for step in level}
    assert done == set(range(1, len(references) + 1))


def test_steps_without_a_question_do_not_count_and_white_space_is_folded() -> None:
    steps = Steps([{"thought": "x", "question": " "}, {"thought": " a\nb ", "question": " Who\nis it? "}])
    assert Plan.of("Q?", steps) == (Plan((Step(1, "Who is it?", "a b"),)), ())


def test_without_steps_the_question_is_the_only_one() -> None:
    for steps in (None, Steps(), Steps([{"thought": "x", "question": ""}])):
        assert Plan.of("Q?", steps) == (Plan((Step(1, "Q?"),)), ())


def test_a_runaway_plan_is_cut_and_the_rest_returned() -> None:
    many = [f"Who is {n}?" for n in range(MOST_STEPS + 50)]
    made, beyond = Plan.of("Q?", Steps({"thought": "", "question": question} for question in many))
    assert [step.question for step in made.steps] == many[:MOST_STEPS]
    assert list(beyond) == many[MOST_STEPS:]


def test_answers_take_the_place_of_references() -> None:
    claims = {1: Claim("Who directed A?", "Ann"), 2: Claim("Who directed B?", "unknown"), 12: Claim("x", "Twelve")}
    assert bind("Is #1 older than #12?", claims) == "Is Ann older than Twelve?"
    assert bind("Where was #2 born?", claims) == "Where was (Who directed B) born?"  # still something to search for
    assert bind("Where was #3 born?", claims) == "Where was #3 born?"
    assert bind("#1?", {1: Claim("x", r"\1 #1")}) == r"\1 #1?"  # an answer is no pattern


def test_a_trajectory_is_in_the_order_of_the_steps() -> None:
    assert trajectory({2: Claim("B?", "b"), 1: Claim("A?", "a")}) == ["#1 A? -> a", "#2 B? -> b"]


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
