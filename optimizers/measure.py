"""Scores and costs of a program, question by question, with any DSPy metric.

A question on which the program fails (an exception, a reply that cannot be parsed) scores 0. A `BaseException` that is
not an `Exception`, such as a spent budget, ends the measurement at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import dspy

from ..data.errors import PolyhopError
from ..engines.costs import Ledger
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..eval.executor import Job, Window, trace_counts

Metric = Callable[..., Any]
"""A DSPy metric: called with an example and a prediction, returns a number (or a `dspy.Prediction` with ``score``)."""


class Answered(NamedTuple):
    """A question that was answered, or failed. Costs are ``seconds``, ``lm_calls``, ``tokens_in``, ``tokens_out``,
    ``cost_usd`` where prices are known, and what a polyhop trace counts: there ``lm_calls`` includes cached replies.
    """

    number: int
    score: float
    costs: dict[str, float]
    failure: str | None


def answered(
    program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, order: Sequence[int], threads: int = 1
) -> Iterator[Answered]:
    """Run a program on questions and score its predictions, in the ``order`` of their numbers whatever the threads.

    Raises:
        PolyhopError: the metric raises or does not return a finite number: an error in the metric must not pass for a
            bad program.
    """
    learn_models(program)
    window: Window[Answered] = Window(threads)
    waiting, early = iter(order), dict[int, Answered]()
    try:
        for number in order:
            while number not in early:
                while not window.full and (n := next(waiting, None)) is not None:
                    window.start(_job(n, program, questions[n], metric))
                done = window.next()
                early[done.number] = done
            yield early.pop(number)
    finally:
        for _ in window.drain(0.0):  # cancels what still runs
            pass


def _job(number: int, program: dspy.Module, example: dspy.Example, metric: Metric) -> Job[Answered]:
    ledger = Ledger()

    def ask() -> Answered:
        start = perf_counter()
        try:
            with dspy.context(usage_tracker=ledger, disable_history=True):
                prediction = program(**example.inputs())
        except Exception as error:  # noqa: BLE001  # one question must not fail the others
            return Answered(number, 0.0, {**ledger.costs(), "seconds": perf_counter() - start}, explain(error))
        costs = {**ledger.costs(), **trace_counts(prediction), "seconds": perf_counter() - start}
        return Answered(number, scored(metric, example, prediction), costs, None)

    return Job(ask, ledger.abandoned.set, ask)  # there is no time limit


def named(metric: Metric) -> str:
    """The name of a metric."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def scored(metric: Metric, example: dspy.Example, prediction: Any) -> float:
    """The score of a prediction.

    Raises:
        PolyhopError: the metric raises or does not return a finite number.
    """
    try:
        said: Any = metric(example, prediction)
        score = float(said.score if isinstance(said, dspy.Prediction) else said)
        if not isfinite(score):
            raise ValueError(f"it returned {score}, which is not a finite number")
        return score
    except Exception as error:
        raise PolyhopError(f"the metric failed on {str(example.get('question'))[:80]!r}: {explain(error)}") from error
