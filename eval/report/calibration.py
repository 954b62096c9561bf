"""Whether a program knows how sure it can be: stated confidence against the share of right answers.

Over the answers that were given: a failure has no confidence, and "unknown" claims nothing. Right is an exact match.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BINS = 10

Floats = npt.NDArray[np.float64]


class Bin(NamedTuple):
    """Those answers whose confidence lies in [low, high), the last bin's in [low, high].

    Attributes:
        confidence: Their mean confidence.
        right: The share of them that is right, with its 95% Wilson interval.
    """

    low: float
    high: float
    answers: int
    confidence: float
    right: float
    interval: tuple[float, float]


class Covered(NamedTuple):
    """The surest answers: those of at least a ``confidence``.

    Attributes:
        coverage: Their share of all questions.
        risk: The share of them that is wrong.
    """

    coverage: float
    risk: float
    confidence: float


@dataclass(frozen=True)
class Calibration:
    """How well confidence tells right from wrong.

    Attributes:
        answers: How many there are.
        ece: Expected calibration error: the bins' mean distance between confidence and share of right answers.
        brier: Mean squared distance between confidence and being right (1) or wrong (0).
        curve: Risk against coverage, surest first; answers of equal confidence come together.
    """

    answers: int
    bins: tuple[Bin, ...]
    ece: float
    brier: float
    curve: tuple[Covered, ...]


def calibration(confidence: npt.ArrayLike, right: npt.ArrayLike, questions: int) -> Calibration | None:
    """Measure it over the answers that were given to some of ``questions``; None if there are none."""
    stated, truth = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if not len(stated):
        return None
    places = np.clip((stated * BINS).astype(int), 0, BINS - 1)
    bins = tuple(_bin(int(place), stated[places == place], truth[places == place]) for place in np.unique(places))
    return Calibration(
        answers=len(stated),
        bins=bins,
        ece=float(sum(each.answers * abs(each.confidence - each.right) for each in bins) / len(stated)),
        brier=float(((stated - truth) ** 2).mean()),
        curve=_curve(stated, truth, questions),
    )


def _bin(place: int, stated: Floats, truth: Floats) -> Bin:
    count, right = len(stated), int(truth.sum())
    return Bin(place / BINS, (place + 1) / BINS, count, float(stated.mean()), right / count, wilson(right, count))


def _curve(stated: Floats, truth: Floats, questions: int) -> tuple[Covered, ...]:
    order = np.argsort(-stated, kind="stable")
    stated, wrong = stated[order], np.cumsum(1.0 - truth[order])
    ends = np.append(np.flatnonzero(np.diff(stated)), len(stated) - 1)
    return tuple(
        Covered(float((end + 1) / questions), float(wrong[end] / (end + 1)), float(stated[end])) for end in ends
    )


def wilson(successes: int, count: int, z: float = 1.959964) -> tuple[float, float]:
    """The Wilson score interval of a share."""
    share, spread = successes / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
