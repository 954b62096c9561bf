"""A program that is not polyhop's, with tunables, and questions for which its best values are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dspy

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

    def __init__(self, on_question: Callable[[str], Any] = len) -> None:
        super().__init__()
        self.rounds = integer(2, 1, 6)
        self.useless = real(0.5, 0.0, 1.0)
        self.on_question = on_question

    def forward(self, question: str) -> dspy.Prediction:
        self.on_question(question)
        rounds = self.rounds.value
        noise = 0.05 * math.sin(float(question) * (1 + rounds))
        gained = {1: 0.2, 2: 0.5, 3: 0.8, 4: 0.9, 5: 0.901, 6: 0.902}[rounds]
        return dspy.Prediction(trace=SimpleNamespace(lm_calls=rounds), height=gained + noise)


def height(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    return float(prediction.height)


def numbered(count: int) -> list[dspy.Example]:
    return [dspy.Example(question=str(n)).with_inputs("question") for n in range(count)]
