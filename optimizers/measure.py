"""Scores and costs of a program, question by question, with any DSPy metric.

A question on which the program fails (an exception, a reply that cannot be parsed) scores 0. A `BaseException` that is
not an `Exception`, such as a spent budget, ends the measurement at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import dspy

from ..data.errors import PolyhopError
from ..engines.costs import Ledger
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..eval.executor import trace_counts
from ..eval.metrics import arguments, score_of
from ..programs.program import ask

T = TypeVar("T")

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
    ledgers = [Ledger() for _ in order]
    tasks = [
        partial(_answer, n, program, questions[n], metric, ledger) for n, ledger in zip(order, ledgers, strict=True)
    ]
    try:
        yield from in_threads(tasks, threads)
    finally:
        for ledger in ledgers:  # cancels what still runs
            ledger.abandoned.set()


def in_threads(tasks: Sequence[Callable[[], T]], threads: int) -> Iterator[T]:
    """The results of tasks in their order, in the context of the caller. Those that have not begun when this is closed,
    or when one fails, never begin."""
    ahead = 2 * threads - 1  # tasks that have begun or wait, so that a slow one does not leave threads idle
    with ThreadPoolExecutor(threads) as pool:
        futures = deque(pool.submit(copy_context().run, task) for task in tasks[:ahead])
        try:
            for n in range(len(tasks)):
                yield futures.popleft().result()
                futures.extend(pool.submit(copy_context().run, task) for task in tasks[n + ahead : n + ahead + 1])
        finally:
            for future in futures:
                future.cancel()


def _answer(number: int, program: dspy.Module, example: dspy.Example, metric: Metric, ledger: Ledger) -> Answered:
    start = perf_counter()
    try:
        with dspy.context(usage_tracker=ledger, disable_history=True, trace=None):
            prediction = ask(program, example)
    except Exception as error:  # noqa: BLE001  # one question must not fail the others
        return Answered(number, 0.0, {**ledger.costs(), "seconds": perf_counter() - start}, explain(error))
    costs = {**ledger.costs(), **trace_counts(prediction), "seconds": perf_counter() - start}
    return Answered(number, scored(metric, example, prediction), costs, None)


def named(metric: Metric) -> str:
    """The name of a metric."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def scored(metric: Metric, example: dspy.Example, prediction: Any) -> float:
    """The score of a prediction.

    Raises:
        PolyhopError: the metric raises or does not return a finite number.
    """
    try:
        return score_of(metric(*arguments(metric, example, prediction)))
    except PolyhopError:
        raise
    except Exception as error:
        raise PolyhopError(f"the metric failed on {str(example.get('question'))[:80]!r}: {explain(error)}") from error
