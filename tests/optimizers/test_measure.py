"""Scores and costs of a program, question by question."""

from __future__ import annotations

import math

import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.measure import measure
from polyhop.programs.trace import Trace

from ..faults.faults import error
from ..faults.schedule import Always
from ..faults.server import Server

QUESTIONS = [dspy.Example(question=f"What is {n}?", answer=str(n)).with_inputs("question") for n in range(6)]


class Counting(dspy.Module):
    """Knows the answers to the questions with an even number, and cannot bear number 3."""

    def forward(self, question: str) -> dspy.Prediction:
        number = int(question.split()[-1].rstrip("?"))
        if number == 3:
            raise RuntimeError("three is too much")
        return dspy.Prediction(answer=str(number - number % 2), trace=Trace())


def exact(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    return float(example.answer == prediction.answer)


@pytest.mark.parametrize("threads", [1, 4])
def test_each_question_has_its_score_and_a_failed_one_is_a_failure(threads: int) -> None:
    measured = measure(Counting(), QUESTIONS, exact, threads=threads)
    assert measured.scores == {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 1.0, 5: 0.0}
    assert measured.score == 0.5
    assert measured.failures == {3: "RuntimeError: three is too much"}
    assert measured.cost("searches") == 0
    assert measured.cost("seconds") > 0
    assert math.isnan(measured.cost("dollars"))


@pytest.mark.parametrize("own", [True, False], ids=["its own model", "the default"])
def test_a_failure_is_told_without_the_key_of_a_model(own: bool) -> None:
    key = f"planted-{own}-0123456789"
    program = dspy.Predict("question -> answer")
    with Server([(Always(), error("echo", 401, f"no such key: {key}"))]) as server:
        lm = dspy.LM("openai/x", engine="lm15", api_base=server.url, api_key=key, cache=False, num_retries=0)
        if own:
            program.set_lm(lm)
        with dspy.context(lm=None if own else lm):
            measured = measure(program, QUESTIONS[:1], exact)
    assert "no such key: ***" in measured.failures[0]
    assert key not in measured.failures[0]


def test_questions_are_asked_in_the_order_given_until_told_to_stop() -> None:
    told: list[tuple[int, float]] = []

    def until_two(number: int, score: float) -> bool:
        told.append((number, score))
        return len(told) < 2

    measured = measure(Counting(), QUESTIONS, exact, order=[4, 1, 0], on_score=until_two)
    assert told == [(4, 1.0), (1, 0.0)]
    assert set(measured.scores) == {4, 1}


def test_a_metric_may_return_a_prediction_with_a_score() -> None:
    measured = measure(Counting(), QUESTIONS[:1], lambda example, prediction: dspy.Prediction(score=0.25, feedback="."))
    assert measured.scores == {0: 0.25}


def test_a_metric_that_fails_is_an_error_and_no_score() -> None:
    def broken(example: dspy.Example, prediction: dspy.Prediction) -> float:
        raise ValueError("no such field")

    with pytest.raises(PolyhopError, match="the metric failed on 'What is 0\\?': ValueError: no such field"):
        measure(Counting(), QUESTIONS, broken)


def test_nothing_to_ask_is_an_error() -> None:
    with pytest.raises(PolyhopError, match="no questions"):
        measure(Counting(), [], exact)


@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_no_exception_ends_it_at_once(threads: int) -> None:
    class Spent(BaseException):
        pass

    class Spending(dspy.Module):
        def forward(self, question: str) -> dspy.Prediction:
            raise Spent

    with pytest.raises(Spent):
        measure(Spending(), QUESTIONS, exact, threads=threads)
