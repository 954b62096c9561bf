"""Workers that share the questions of trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...eval.workers import ATTEMPTS, Pool, WorkerLost, Workers
from ..measure import Measured, Metric, OnScore, measure
from .space import Values, with_values


@dataclass(eq=False)
class Asked:
    """A trial, whose questions are asked in this order until ``on_score`` returns False."""

    number: int
    values: Values
    order: Sequence[int]
    on_score: OnScore
    measured: Measured = field(default_factory=Measured)


Draw = Callable[[], Asked | None]
"""Returns the next trial; None if there is none, or none before another one has ended."""


@dataclass
class _Trial:
    """Asks questions of a trial in a worker, with DSPy's settings of the process that started it."""

    program: dspy.Module
    questions: Sequence[dspy.Example]
    metric: Metric
    settings: Mapping[str, Any]
    _tuned: tuple[Values, dspy.Module] | None = field(default=None, init=False)  # those of the last question

    def __call__(self, asked: tuple[int, Values, int]) -> Measured:
        _, values, question = asked
        tuned = self._tuned
        if tuned is None or tuned[0] != values:
            tuned = self._tuned = values, with_values(self.program, values)
        with dspy.context(**self.settings):
            return measure(tuned[1], self.questions, self.metric, order=[question])


class TrialPool(Pool[tuple[int, Values, int], Measured]):
    """Workers that hold a program and its questions; use it in a ``with`` block."""

    def __init__(
        self, program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, workers: Workers
    ) -> None:
        settings = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
        super().__init__(workers, _Trial(program, list(questions), metric, settings))

    def measure(self, values: Values, order: Sequence[int], on_score: OnScore) -> Measured:
        """`polyhop.optimizers.measure.measure` with these values of the tunables; raises what a worker raises."""
        return next(self.trials(partial(next, iter([Asked(0, values, order, on_score)]), None))).measured

    def trials(self, draw: Draw) -> Iterator[Asked]:
        """Yield trials in the order in which they end; a worker that is free gets questions of the next one."""
        running: dict[int, Asked] = {}

        def questions() -> Iterator[tuple[int, Values, int] | None]:
            while True:
                if (trial := draw()) is None:
                    yield None
                    continue
                running[trial.number] = trial
                for question in trial.order:
                    if trial.number in running:
                        yield trial.number, trial.values, question

        for (number, _, question), found in self.run(questions()):
            if (trial := running.get(number)) is None:
                continue  # it has ended early
            if isinstance(found, WorkerLost):
                raise PolyhopError(
                    f"{ATTEMPTS} workers ended on the same question: if memory ran out, use fewer workers; the search "
                    "can be resumed"
                )
            trial.measured.update(found)
            goes_on = trial.on_score(question, found.scores[question])
            if not goes_on or len(trial.measured.scores) == len(trial.order):
                del running[number]
                yield trial
