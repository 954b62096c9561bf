"""A program that is not polyhop's, with tunables, and questions for which its best values are known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy

from polyhop.eval.workers import Processes
from polyhop.optimizers.tunables import TunableSearch
from polyhop.programs.trace import Trace
from polyhop.programs.tunable import choice, integer, real


class Hill(dspy.Module):
    """Its answer is a height, highest at width 0.7, rounds 4 and style "plain".

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


class Costly(dspy.Module):
    """More rounds are better, with diminishing returns, and each round is a call."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = integer(2, 1, 6)
        self.useless = real(0.5, 0.0, 1.0)

    def forward(self, question: str) -> dspy.Prediction:
        rounds = self.rounds.value
        trace = Trace(calls=rounds)
        noise = 0.05 * math.sin(float(question) * (1 + rounds))
        gained = {1: 0.2, 2: 0.5, 3: 0.8, 4: 0.9, 5: 0.901, 6: 0.902}[rounds]
        return dspy.Prediction(trace=trace, height=gained + noise)


class Parts(dspy.Module):
    """A `Hill` as a part, and a tunable of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.hill = Hill()
        self.lift = real(0.0, 0.0, 0.2)

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(height=self.hill(question=question).height + self.lift.value)


def wait(question: str) -> None:
    time.sleep(0.005)


def height(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    return float(prediction.height)


def numbered(count: int) -> list[dspy.Example]:
    return [dspy.Example(question=str(n)).with_inputs("question") for n in range(count)]


def run(storage: str, trials: int, workers: int, parallel: int, report: str) -> None:
    """A driver in a process of its own, to be killed; writes to ``report`` how many trials have ended."""
    search = TunableSearch(
        height,
        trials=trials,
        parallel_trials=parallel,
        executor=Processes(workers) if workers else None,
        storage=storage,
        seed=3,
        on_trial=lambda progress: _write(report, progress.done),
    )
    search.compile(Hill(wait), valset=numbered(30))


def _write(report: str, done: int) -> None:
    Path(report).write_text(str(done))
