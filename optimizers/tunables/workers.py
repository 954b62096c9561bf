"""Workers that share the questions of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...eval.workers import ATTEMPTS, Pool, WorkerLost, Workers
from ..measure import Measured, Metric, OnScore, measure
from .space import Values, with_values


@dataclass
class _Trial:
    """Asks questions of a trial in a worker, with DSPy's settings of the process that started it."""

    program: dspy.Module
    questions: Sequence[dspy.Example]
    metric: Metric
    settings: Mapping[str, Any]
    _tuned: tuple[Values, dspy.Module] | None = field(default=None, init=False)  # those of the last question

    def __call__(self, asked: tuple[Values, int]) -> Measured:
        values, number = asked
        tuned = self._tuned
        if tuned is None or tuned[0] != values:
            tuned = self._tuned = values, with_values(self.program, values)
        with dspy.context(**self.settings):
            return measure(tuned[1], self.questions, self.metric, order=[number])


class TrialPool(Pool[tuple[Values, int], Measured]):
    """Workers that hold a program and its questions; use it in a ``with`` block."""

    def __init__(
        self, program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, workers: Workers
    ) -> None:
        settings = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
        super().__init__(workers, _Trial(program, list(questions), metric, settings))

    def measure(self, values: Values, order: Sequence[int], on_score: OnScore) -> Measured:
        """`polyhop.optimizers.measure.measure` with these values of the tunables; raises what a worker raises."""
        measured = Measured()
        for (_, number), found in self.run((values, number) for number in order):
            if isinstance(found, WorkerLost):
                raise PolyhopError(
                    f"{ATTEMPTS} workers ended on the same question: if memory ran out, use fewer workers; the search "
                    "can be resumed"
                )
            measured.update(found)
            if not on_score(number, found.scores[number]):
                break
        self.forget()
        return measured
