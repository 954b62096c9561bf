"""A program of a user's own that has tunables, and questions on which the best of its values are known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import dspy

from polyhop.optimizers.tuning import TunableSearch
from polyhop.programs.tunable import choice, integer, real


class Hill(dspy.Module):
    """No class of polyhop's: its answer is a height, highest at width 0.7, rounds 4 and style "plain".

    Args:
        on_question: Called with each question.
    """

    def __init__(self, on_question: Callable[[str], Any] = len) -> None:
        super().__init__()
        self.width = real(0.1, 0.0, 1.0)
        self.rounds = integer(2, 1, 6)
        self.style = choice("fancy", ("fancy", "plain"))
        self.on_question = on_question

    def forward(self, question: str) -> dspy.Prediction:
        self.on_question(question)
        height = 1.0 - (self.width.value - 0.7) ** 2 - 0.03 * abs(self.rounds.value - 4)
        height -= 0.05 * (self.style.value == "fancy")
        return dspy.Prediction(height=height * (1 - 0.1 * math.sin(float(question))))


class Slow(Hill):
    """Takes its time for a question."""

    def __init__(self, seconds: float) -> None:
        super().__init__(self._wait)
        self.seconds = seconds

    def _wait(self, question: str) -> None:
        time.sleep(self.seconds)


def height(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    return float(prediction.height)


def numbered(count: int) -> list[dspy.Example]:
    return [dspy.Example(question=str(n)).with_inputs("question") for n in range(count)]


def slow(seconds: float, count: int) -> tuple[dspy.Module, list[dspy.Example]]:
    return Slow(seconds), numbered(count)


def told(search: TunableSearch) -> list[tuple[Any, ...]]:
    """All that was tried and what came of it."""
    assert search.outcome is not None
    return [(t.slot, t.state, t.values, dict(t.scores), t.failures) for t in search.outcome.trials]


def work(say: Connection, storage: str, trials: int, seconds: float) -> None:
    """A worker in a process of its own, to be killed; says how many trials have ended."""
    search = TunableSearch(
        height,
        trials=trials,
        storage=storage,
        grace=2,
        on_trial=lambda progress: say.send(progress.done),
        seed=3,
    )
    say.send(0)
    search.compile(Slow(seconds), valset=numbered(30))
    say.close()
