"""What a joint run is told to do, and on which questions."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.joint.plan import Plan, Splits, divide


def example(text: str) -> dspy.Example:
    return dspy.Example(question=text, answers=["x"]).with_inputs("question")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stages": ("prompts", "magic")}, "no stage 'magic'"),
        ({"stages": ()}, "at least one"),
        ({"stages": ("prompts", "prompts")}, "each stage once"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"trials": 1}, "trials must be at least 2"),
        ({"level": 0.0}, "level of a test"),
        ({"optimizer": "knn"}, "no artifact holds"),
    ],
)
def test_plans_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        Plan(**wrong)


def test_no_question_is_in_two_splits() -> None:
    one, two, three = map(example, ("One?", "Two?", "Three?"))
    Splits([one, one], [two], [three])
    with pytest.raises(PolyhopError, match="among the train and the test questions: 'One\\?'"):
        Splits([one], [two], [three, example("One?")])
    with pytest.raises(PolyhopError, match="no val questions"):
        Splits([one], [], [three])


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(0, 5))
def test_questions_are_dealt_out_whole(numbers: list[int], seed: int) -> None:
    questions = [example(f"What is {number}?") for number in numbers]
    parts = divide(questions, (0.5, 0.25, 0.25), seed)
    assert sorted(map(id, questions)) == sorted(id(each) for part in parts for each in part)
    texts = [{each.question for each in part} for part in parts]
    assert not texts[0] & texts[1]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]
    assert [[q.question for q in part] for part in parts] == [
        [q.question for q in part] for part in divide(questions, (0.5, 0.25, 0.25), seed)
    ]


def test_shares() -> None:
    questions = [example(f"What is {number}?") for number in range(100)]
    assert [len(part) for part in divide(questions, (0.6, 0.4))] == [60, 40]
    assert divide(questions, (0.6, 0.4), seed=1) != divide(questions, (0.6, 0.4), seed=2)
