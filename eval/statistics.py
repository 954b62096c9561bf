"""Bootstrap intervals of means and paired comparisons of two runs, with SciPy.

All functions are deterministic in ``seed``. Questions are the unit of resampling. NaN means that a question has no such
value (no gold sentences, for example); it is left out of the mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    p_bootstrap: float  # Two-sided, from the bootstrap distribution centred at 0
    p_permutation: float  # Two-sided, from random sign flips of the differences; exact for few questions
    wins: int  # questions where the first run has the higher value
    ties: int  # questions with equal values
    losses: int  # questions where the second run has the higher value


def interval(values: Sequence[float], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The mean of the values with its percentile bootstrap interval.

    Raises:
        ValueError: there are no values.
    """
    return intervals({"": values}, level=level, resamples=resamples, seed=seed)[""]


def intervals(
    columns: Mapping[str, Sequence[float] | Floats],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Interval]:
    """`interval` for several metrics of the same questions; metrics with values for the same questions share resamples.

    Args:
        columns: Metric name -> one value per question; all of the same length.

    Raises:
        ValueError: there are no values, or the columns differ in length.
    """
    arrays = {name: _array(values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"every metric needs one value per question, but the lengths differ: {lengths}")
    alike: dict[bytes, list[str]] = defaultdict(list)
    for name, array in arrays.items():
        alike[np.isnan(array).tobytes()].append(name)
    found: dict[str, Interval] = {}
    for names in alike.values():
        table = np.stack([arrays[name] for name in names])
        table = np.ascontiguousarray(table[:, ~np.isnan(table[0])])
        resampled = _resampled(table, resamples, np.random.default_rng(seed))
        low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=-1)
        for row, (name, mean) in enumerate(zip(names, _means(table), strict=True)):
            found[name] = Interval(float(mean), float(low[row]), float(high[row]))
    return {name: found[name] for name in columns}


def compare(
    ours: Sequence[float], theirs: Sequence[float], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Compare two runs question by question.

    Args:
        ours, theirs: One value per question, in the same order. NaN on either side drops the question.

    Raises:
        ValueError: the runs differ in length, or share no question with a value in both.
    """
    from scipy.stats import permutation_test

    if len(ours) != len(theirs):
        raise ValueError(f"every run needs one value per question, but they have {len(ours)} and {len(theirs)}")
    differences = _array(ours) - _array(theirs)
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        raise ValueError("the runs share no question that has a value in both")
    mean = float(differences.mean())
    first, second = np.random.default_rng(seed).spawn(2)
    resampled = _resampled(differences[None], resamples, first)[0]
    changed = differences[differences != 0]  # the sign of a tie does not matter
    p_permutation = 1.0
    if len(changed) > 1:  # the exact p-value of one difference is 1
        p_permutation = permutation_test(
            (changed,),
            np.sum,
            permutation_type="samples",
            vectorized=True,
            n_resamples=resamples,
            batch=max(1, _BATCH // len(changed)),
            rng=second,
        ).pvalue
    # Sums in another order differ in their last digits.
    extreme = np.abs(resampled - mean) >= abs(mean) - 1e-12 * max(1.0, abs(mean))
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Comparison(
        difference=Interval(mean, float(low), float(high)),
        p_bootstrap=float((1 + extreme.sum()) / (1 + len(resampled))),
        p_permutation=float(p_permutation),
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
    )


def holm(chances: Sequence[float]) -> list[float]:
    """p-values of several tests, corrected by Holm's method: below 0.05 with a chance of 5% of any false one."""
    order = sorted(range(len(chances)), key=lambda n: chances[n])
    corrected, largest = [0.0] * len(chances), 0.0
    for rank, n in enumerate(order):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[n]))
        corrected[n] = largest
    return corrected


def percentile_interval(values: Sequence[float] | Floats, rank: float) -> tuple[float, float]:
    """The 95% interval of a percentile: two order statistics, from the normal approximation of the binomial."""
    ordered = np.sort(_array(values))
    share, size = rank / 100, len(ordered)
    spread = 1.96 * (size * share * (1 - share)) ** 0.5
    low, high = int(np.floor(size * share - spread)), int(np.ceil(size * share + spread))
    return float(ordered[max(low, 0)]), float(ordered[min(high, size - 1)])


def _array(values: Sequence[float] | Floats) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        raise ValueError("there are no values")
    return array


def _means(table: Floats) -> Floats:
    return table.mean(axis=1) if table.shape[1] else np.full(len(table), np.nan)


def _resampled(table: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The bootstrap distribution of the row means: (rows, resamples)."""
    from scipy.stats import bootstrap

    if table.shape[1] < 2:  # nothing to resample, which SciPy refuses
        return np.repeat(_means(table)[:, None], resamples, axis=1)
    found = bootstrap(
        (table,),
        np.mean,
        axis=1,
        vectorized=True,
        method="percentile",
        n_resamples=resamples,
        batch=max(1, _BATCH // table.size),
        rng=rng,
    )
    distribution: Floats = found.bootstrap_distribution
    return distribution
