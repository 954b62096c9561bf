"""Bootstrap intervals of means, paired comparisons of two runs, and the calibration error.

All functions are deterministic in ``seed``. Questions are the unit of resampling. NaN means that a question has no such
value (no gold sentences, for example); it is left out of the mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

RESAMPLES = 5_000
_BATCH = 2_000_000  # resampled values in memory at a time: 16 MB

Floats = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """A mean and its bootstrap interval, in the unit of the values."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Two runs on the questions they share; positive differences favour the first."""

    difference: Interval  # mean difference with its paired bootstrap interval
    p_permutation: float  # two-sided, from random sign flips of the differences; exact for few questions
    wins: int  # questions where the first run has the higher value
    ties: int  # questions with equal values
    losses: int  # questions where the second run has the higher value
    shown: float  # the smallest true difference that so many questions, which vary so, show at p < 0.05 in 80% of cases


def interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The mean of the values with its 95% percentile bootstrap interval."""
    return intervals({"": values}, seed=seed)[""]


def intervals(
    columns: Mapping[str, Sequence[float] | Floats], *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Interval]:
    """`interval` for several metrics, by name, with one value per question; metrics with values for the same questions
    share resamples."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    groups: dict[bytes, list[str]] = defaultdict(list)  # of names with values for the same questions
    for name, array in arrays.items():
        groups[np.isnan(array).tobytes()].append(name)
    by_name: dict[str, Interval] = {}
    for names in groups.values():
        table = np.stack([arrays[name] for name in names])
        rows = _bootstrap(table[:, ~np.isnan(table[0])], resamples, np.random.default_rng(seed))
        by_name.update(zip(names, rows, strict=True))
    return {name: by_name[name] for name in columns}


def compare(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> Comparison:
    """Compare two runs with one value per question, in the same order. NaN on either side drops the question.

    Raises:
        ValueError: the runs share no question with a value in both.
    """
    from scipy.stats import permutation_test

    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        raise ValueError("the runs share no question that has a value in both")
    first, second = np.random.default_rng(seed).spawn(2)
    [difference] = _bootstrap(differences[None], RESAMPLES, first)
    changed = differences[differences != 0]  # the sign of a tie does not matter
    p = 1.0
    if len(changed) > 1:  # the exact p-value of one difference is 1
        p = permutation_test(
            (changed,),
            np.sum,
            permutation_type="samples",
            vectorized=True,
            n_resamples=RESAMPLES,
            batch=max(1, _BATCH // len(changed)),
            rng=second,
        ).pvalue
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    shown = (1.96 + 0.84) * float(differences.std(ddof=1)) / sqrt(len(differences)) if len(differences) > 1 else nan
    return Comparison(difference, float(p), wins, len(differences) - wins - losses, losses, shown)


def holm(chances: Sequence[float]) -> list[float]:
    """p-values of several tests, corrected by Holm's method: below 0.05 with a chance of 5% of any false one."""
    order = sorted(range(len(chances)), key=lambda n: chances[n])
    corrected, largest = [0.0] * len(chances), 0.0
    for rank, n in enumerate(order):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[n]))
        corrected[n] = largest
    return corrected


def calibration_error(stated: Sequence[float] | Floats, right: Sequence[bool] | Floats) -> float:
    """The expected calibration error: the mean distance between the confidence of answers and the share of correct
    ones, over ten equally wide bins of confidence weighted by their answers (Guo et al., arXiv 1706.04599)."""
    gaps: dict[int, float] = defaultdict(float)
    for confidence, correct in zip(stated, right, strict=True):
        gaps[min(int(confidence * 10), 9)] += confidence - correct
    return sum(map(abs, gaps.values())) / len(stated)


def _bootstrap(table: Floats, resamples: int, rng: np.random.Generator) -> list[Interval]:
    """The means of the rows with their percentile intervals; NaN without a column."""
    from scipy.stats import bootstrap

    if not table.shape[1]:
        return [Interval(nan, nan, nan)] * len(table)
    table = np.ascontiguousarray(table)  # the order in memory decides about the last digit of a mean
    low = high = means = table.mean(axis=1)
    if table.shape[1] > 1:
        how: dict[str, Any] = {"n_resamples": resamples, "batch": max(1, _BATCH // table.size), "rng": rng}
        result = bootstrap((table,), np.mean, axis=-1, method="percentile", **how)  # 95%
        low, high = result.confidence_interval
    return [Interval(*map(float, ends)) for ends in zip(means, low, high, strict=True)]
