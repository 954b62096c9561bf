"""Calibration: the stated confidence of answers against the share of correct ones (exact match).

Failed questions and the answer "unknown" are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

BINS = 10
STEADY = 20
"""Number of answers at which the risk-coverage curve starts."""

Floats = npt.NDArray[np.float64]


class Bin(NamedTuple):
    """The answers with a confidence in [low, high); the last bin includes its end."""

    low: float
    high: float
    answers: int
    confidence: float  # mean confidence
    right: float  # share of correct answers, with its 95% Wilson interval
    interval: tuple[float, float]


class Covered(NamedTuple):
    """The answers with at least some ``confidence``."""

    coverage: float  # their share of all questions
    risk: float  # share of wrong ones among them
    confidence: float


@dataclass(frozen=True)
class Calibration:
    """How well confidence separates correct from wrong answers.

    Attributes:
        ece: Expected calibration error: mean distance over the bins between confidence and share of correct answers.
        aurc: Area under the risk-coverage curve: the mean, over all numbers of answers, of the share of wrong ones
            among so many of the most confident (Geifman et al., arXiv 1805.08206). Low if wrong answers are the least
            confident; of equal confidences, the mean over their orders.
    """

    answers: int
    bins: tuple[Bin, ...]
    ece: float
    aurc: float
    brier: float  # mean squared distance between confidence and correctness (1 or 0)
    curve: tuple[Covered, ...]  # risk against coverage, highest confidence first; equal confidences are one point

    @property
    def steady(self) -> list[Covered]:
        """The curve from the first `STEADY` answers on; before, single answers make it jump."""
        per_answer = self.curve[-1].coverage / self.answers
        points = [point for point in self.curve if point.coverage > (STEADY - 0.5) * per_answer]
        return points or [self.curve[-1]]

    def risk_at(self, coverage: float) -> float | None:
        """The risk at the first point with at least this coverage."""
        return next((point.risk for point in self.curve if point.coverage >= coverage), None)


def calibration(confidence: npt.ArrayLike, right: npt.ArrayLike, questions: int) -> Calibration | None:
    """The calibration of the answers to some of ``questions``; None without answers."""
    stated, truth = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if not len(stated):
        return None
    places = np.clip((stated * BINS).astype(int), 0, BINS - 1)
    bins = tuple(_bin(int(place), stated[places == place], truth[places == place]) for place in np.unique(places))
    return Calibration(
        answers=len(stated),
        bins=bins,
        ece=float(sum(each.answers * abs(each.confidence - each.right) for each in bins) / len(stated)),
        aurc=_area(stated, truth),
        brier=float(((stated - truth) ** 2).mean()),
        curve=_curve(stated, truth, questions),
    )


def _bin(place: int, stated: Floats, truth: Floats) -> Bin:
    count, right = len(stated), int(truth.sum())
    interval = binomtest(right, count).proportion_ci(method="wilson")
    ends = (float(interval.low), float(interval.high))
    return Bin(place / BINS, (place + 1) / BINS, count, float(stated.mean()), right / count, ends)


def _area(stated: Floats, truth: Floats) -> float:
    """scikit-learn has no such metric."""
    _, group, size = np.unique(-stated, return_inverse=True, return_counts=True)
    wrong = (np.bincount(group, 1.0 - truth) / size)[np.sort(group)]
    return float((np.cumsum(wrong) / np.arange(1, len(wrong) + 1)).mean())


def _curve(stated: Floats, truth: Floats, questions: int) -> tuple[Covered, ...]:
    order = np.argsort(-stated, kind="stable")
    stated, wrong = stated[order], np.cumsum(1.0 - truth[order])
    ends = np.append(np.flatnonzero(np.diff(stated)), len(stated) - 1)
    return tuple(
        Covered(float((end + 1) / questions), float(wrong[end] / (end + 1)), float(stated[end])) for end in ends
    )
