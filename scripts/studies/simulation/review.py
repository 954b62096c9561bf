"""Judges alone: does an alpha that follows the complexity (`Confidence`) pay when judges make errors?

PAR-RAG assumes that a judge of accuracy follows every hop and errs at each of them, while a judge of attribution only
compares citations with a statement. This is an assumption, not a finding; `ASSUMPTIONS` also has the opposite, two
judges with equal error rates. Right and wrong answers of every question are judged; half of the wrong ones contradict
the evidence, half go beyond it. The complexity is the question's number of hops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....programs.confidence import CREDIBILITY, Confidence
from .agents import certainty

ALPHAS = ("adaptive", "fixed")

_DRAWS = 10  # right and wrong answers of each question
_COIN = 0.5  # the worst error rate

Floats = npt.NDArray[np.float64]

ASSUMPTIONS: dict[str, Callable[[float, int], float]] = {
    "the judge of accuracy errs at every hop": lambda rate, hops: min(_COIN, 1 - (1 - rate) ** hops),
    "both judges err alike": lambda rate, hops: rate,
}
"""The error rate of the judge of accuracy by the rate of the judge of attribution and the hops of the question."""


class Review(NamedTuple):
    """How well a confidence separates right from wrong answers, one value per question.

    Attributes:
        auc: The question's contribution to the AUC, which is the mean.
        error: The share of its answers that are accepted but wrong, or rejected but right.
    """

    auc: list[float]
    error: list[float]


def review(hops: Sequence[int], rate: float, assumption: str, seed: int = 0) -> dict[str, Review]:
    """Both `ALPHAS` on the same verdicts.

    Args:
        hops: Per question.
        rate: The error rate of the judge of attribution.
    """
    dice = np.random.default_rng(seed)
    accuracy_errs = np.array([ASSUMPTIONS[assumption](rate, n) for n in hops])[:, None, None]
    shape = (len(hops), _DRAWS, 2)  # a question's draws of a right and of a wrong answer
    right = np.broadcast_to(np.array([True, False]), shape)
    accuracy = certainty(right ^ (dice.random(shape) < accuracy_errs), dice.random(shape))
    carried = right ^ (dice.random(shape) < rate)
    refused = np.where(~right & (dice.random(shape) < 0.5), CREDIBILITY["contradictory"], CREDIBILITY["extrapolatory"])
    credibility = np.where(carried, CREDIBILITY["attributable"], refused)
    return {kind: _reviewed(Confidence(adaptive=kind == "adaptive"), hops, accuracy, credibility) for kind in ALPHAS}


def _reviewed(confidence: Confidence, hops: Sequence[int], accuracy: Floats, credibility: Floats) -> Review:
    values, passed = np.empty(accuracy.shape), np.empty(accuracy.shape, dtype=bool)
    for place in np.ndindex(accuracy.shape):
        weighed = confidence(hops[place[0]], float(accuracy[place]), float(credibility[place]))
        values[place], passed[place] = weighed.confidence, weighed.passed
    right, wrong = values[..., 0], values[..., 1]
    # Each answer's chance against all of the other kind. A question that is drawn twice counts twice on both sides: so
    # the mean of these sums has the interval of the AUC (to first order, as DeLong has it).
    above, below = _above(right, wrong), 1 - _above(wrong, right)
    auc = (above + below).mean(axis=1) - above.mean()
    error = (~passed[..., 0] * 0.5 + passed[..., 1] * 0.5).mean(axis=1)
    return Review(auc.tolist(), error.tolist())


def _above(values: Floats, others: Floats) -> Floats:
    """For each value, the share of smaller others; equal ones count half."""
    ordered = np.sort(others.ravel())
    less = np.searchsorted(ordered, values, "left")
    not_more = np.searchsorted(ordered, values, "right")
    return (less + not_more) / 2 / ordered.size
