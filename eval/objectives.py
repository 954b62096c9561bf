"""The metrics as DSPy takes them: for ``dspy.Evaluate`` and for every teleprompter.

    dspy.Evaluate(devset=questions, metric=objectives.answer_f1)(program)
    dspy.BootstrapFewShot(metric=replace(objectives.joint_f1, threshold=0.9))

An objective is called with an example (``answers``, ``gold_passages``, ``gold_facts``) and a program's prediction and
returns a score in [0, 1]. While exemplars are collected DSPy hands over a trace and wants to know whether a run is
good enough to learn from: then it returns whether the score reaches the threshold. For GEPA give it words, too:
`polyhop.eval.feedback.with_feedback`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dspy

from . import metrics, scoring
from .gold import Gold, gold_of, passages_of


@dataclass(frozen=True)
class Objective:
    """A DSPy metric.

    Attributes:
        name: The metric's name in summaries.
        value: The score in [0, 1] of a prediction, given what is right.
        threshold: The score from which on a run may serve as an exemplar.
        needs: What of the gold it goes by, beside the answers; where no question has any of it, it measures nothing.
    """

    name: str
    value: Callable[[Gold, dspy.Prediction], float]
    threshold: float
    needs: str | None = None

    def __call__(self, example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float | bool:
        score = self.score(example, prediction)
        return score if trace is None else score >= self.threshold

    def applies(self, example: dspy.Example) -> bool:
        """Whether a question says what the score goes by."""
        return self.needs is None or bool(getattr(gold_of(example), self.needs))

    def score(self, example: dspy.Example, prediction: dspy.Prediction) -> float:
        return self.value(gold_of(example, passages_of(prediction)), prediction)


def _answer_em(gold: Gold, prediction: dspy.Prediction) -> float:
    return metrics.exact_match(prediction.answer, gold.answers)


def _answer_f1(gold: Gold, prediction: dspy.Prediction) -> float:
    return metrics.answer_f1(prediction.answer, gold.answers)


def _evidence_f1(gold: Gold, prediction: dspy.Prediction) -> float:
    return metrics.passage_scores(prediction.evidence, gold.passages).f1


def _fact_f1(gold: Gold, prediction: dspy.Prediction) -> float:
    return metrics.fact_scores(prediction.evidence, gold.facts).f1


answer_em = Objective("answer_em", _answer_em, threshold=1.0)
"""The answer is exactly right."""

answer_f1 = Objective("answer_f1", _answer_f1, threshold=0.8)
"""The words of the answer."""

evidence_f1 = Objective("evidence_f1", _evidence_f1, threshold=0.8, needs="passages")
"""The passages of the evidence."""

fact_f1 = Objective("fact_f1", _fact_f1, threshold=0.6, needs="facts")
"""The sentences of the evidence."""

joint_f1 = Objective("joint_f1", scoring.joint_f1, threshold=0.6, needs="passages")
"""Answer and sentences together, as HotpotQA joins them; with passages where no sentences are known."""
