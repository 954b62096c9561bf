"""Scores and costs of a program, question by question: what optimizers compare.

    measured = measure(program, questions, metrics.evidence_f1, threads=8)
    print(measured.score, measured.cost("lm_calls"), measured.failures)

A question on which the program fails (an exception, a reply that cannot be parsed) scores 0 and is listed among the
failures. A `BaseException` that is not an `Exception`, such as `BudgetSpent`, ends the measurement at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from time import perf_counter
from typing import Any

import dspy
import numpy as np

from ..data.errors import PolyhopError
from ..engines.costs import Ledger
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..eval.executor import Job, Window

Metric = Callable[..., Any]
"""A DSPy metric: called with an example and a prediction, returns a number (or a `dspy.Prediction` with ``score``)."""

OnScore = Callable[[int, float], bool]
"""Called with the number and the score of a question; returns whether to continue."""

COUNTED = ("lm_calls", "lm_calls_critical_path", "searches")
"""Costs that a program's trace counts; cached replies have no others."""


@dataclass(frozen=True)
class Measured:
    """Scores and costs by question number; every question that was answered has a score, failed ones 0.

    Costs are ``seconds``, ``lm_calls``, ``tokens_in``, ``tokens_out``, ``cost_usd`` where prices are known, and what a
    polyhop trace counts. With a trace, ``lm_calls`` includes replies from a cache.
    """

    scores: dict[int, float] = field(default_factory=dict)
    costs: dict[int, dict[str, float]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The mean over the questions."""
        return float(np.mean(list(self.scores.values())))

    def cost(self, name: str) -> float:
        """The mean of a cost over the questions that have it; NaN if none has.

        A failed question counts with its cost until it failed.
        """
        values = [costs[name] for costs in self.costs.values() if name in costs]
        return float(np.mean(values)) if values else float("nan")

    def only(self, numbers: Iterable[int]) -> Measured:
        """The part about some of the questions, by number."""
        part, kept = Measured(), sorted(numbers)
        for name in ("scores", "costs", "failures"):
            values = getattr(self, name)
            getattr(part, name).update({number: values[number] for number in kept if number in values})
        return part

    def update(self, other: Measured) -> None:
        """Add other questions."""
        self.scores.update(other.scores)
        self.costs.update(other.costs)
        self.failures.update(other.failures)


def measure(
    program: dspy.Module,
    questions: Sequence[dspy.Example],
    metric: Metric,
    *,
    threads: int = 1,
    order: Sequence[int] | None = None,
    on_score: OnScore = lambda number, score: True,
) -> Measured:
    """Run a program on questions and score its predictions.

    Args:
        threads: Questions answered at the same time.
        order: The numbers of the questions, in the order in which they are started; all by default.
        on_score: Called as each question is done, in the order of completion.

    Raises:
        PolyhopError: there are no questions, or the metric raises or does not return a finite number: an error in the
            metric must not pass for a bad program.
    """
    numbers = list(range(len(questions)) if order is None else order)
    if not numbers:
        raise PolyhopError("there are no questions to measure a program on")
    learn_models(program)
    measured = Measured()
    window: Window[tuple[int, float, dict[str, float], str | None]] = Window(threads)

    def take() -> bool:
        number, score, costs, failure = window.next()
        measured.scores[number], measured.costs[number] = score, costs
        if failure is not None:
            measured.failures[number] = failure
        return on_score(number, score)

    try:
        for number in numbers:
            if window.full and not take():
                return measured
            window.start(_task(number, program, questions[number], metric))
        while window.busy and take():
            pass
    finally:
        for _ in window.drain(0.0):
            pass  # cancels what still runs
    return measured


def _task(
    number: int, program: dspy.Module, example: dspy.Example, metric: Metric
) -> Job[tuple[int, float, dict[str, float], str | None]]:
    ledger = Ledger()

    def ask() -> tuple[int, float, dict[str, float], str | None]:
        start = perf_counter()
        try:
            with dspy.context(usage_tracker=ledger, disable_history=True):
                prediction = program(**example.inputs())
        except Exception as error:  # noqa: BLE001  # one question must not fail the others
            return number, 0.0, {**ledger.costs(), "seconds": perf_counter() - start}, explain(error)
        seconds = perf_counter() - start
        trace = prediction.get("trace")
        counted = {name: getattr(trace, name) for name in COUNTED if hasattr(trace, name)}
        return number, scored(metric, example, prediction), {**ledger.costs(), **counted, "seconds": seconds}, None

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
