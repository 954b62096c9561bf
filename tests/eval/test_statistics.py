"""Intervals and p-values: known cases, and their behaviour on simulated data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polyhop.eval.statistics import compare, interval, intervals, percentile_interval

NAN = math.nan
stats = pytest.importorskip("scipy.stats")


def test_a_constant_has_no_spread() -> None:
    assert interval([0.5] * 7) == (0.5, 0.5, 0.5)
    assert interval([1.0]) == (1.0, 1.0, 1.0)


def test_the_interval_of_a_mean_is_what_theory_says() -> None:
    # 300 of 1000 right: a standard error of sqrt(.3 * .7 / 1000) = 0.01449, so 0.3 -+ 1.96 * 0.01449 = [.2716, .3284].
    found = interval([1.0] * 300 + [0.0] * 700)
    assert found.mean == pytest.approx(0.3)
    assert found[1:] == pytest.approx((0.2716, 0.3284), abs=0.003)
    narrower = interval([1.0] * 300 + [0.0] * 700, level=0.8)  # 1.2816 standard errors
    assert narrower[1:] == pytest.approx((0.2814, 0.3186), abs=0.003)


def test_same_seed_same_interval_whatever_stands_beside_it() -> None:
    values, others = [0.0, 1.0, 0.3, 0.8] * 5, [1.0, 0.0] * 10
    assert interval(values, seed=3) == interval(values, seed=3)
    assert interval(values, seed=3) != interval(values, seed=4)
    assert intervals({"b": others, "a": values}, seed=3)["a"] == pytest.approx(interval(values, seed=3))


def test_a_question_without_a_value_takes_no_part() -> None:
    found = intervals({"some": [1.0, NAN, 0.0, NAN] * 50, "all": [1.0] * 200, "none": [NAN] * 200}, resamples=500)
    assert found["some"].mean == 0.5
    assert found["some"].low < 0.45 < 0.55 < found["some"].high
    assert found["all"] == (1.0, 1.0, 1.0)
    assert all(math.isnan(value) for value in found["none"])


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(200):
        found = interval(rng.exponential(size=80).tolist(), resamples=400, seed=seed)
        covered += found.low <= 1.0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99  # 95%, less what the percentile method loses on 80 skewed values


def test_a_clear_difference() -> None:
    result = compare([1.0] * 40 + [0.5] * 10, [0.0] * 38 + [1.0] * 2 + [0.5] * 10)
    assert (result.wins, result.ties, result.losses) == (38, 12, 0)
    assert result.difference.mean == pytest.approx(0.76)
    assert result.p_bootstrap == pytest.approx(1 / 5_001)
    assert result.p_permutation == pytest.approx(2 / 5_001)
    other = compare([0.0] * 38 + [1.0] * 2 + [0.5] * 10, [1.0] * 40 + [0.5] * 10)
    assert (other.wins, other.losses, other.difference.mean) == pytest.approx((0, 38, -0.76))


def test_runs_that_are_equal() -> None:
    result = compare([0.1, 0.7], [0.1, 0.7])
    assert result.difference == (0.0, 0.0, 0.0)
    assert result.p_bootstrap == result.p_permutation == 1.0


def test_the_permutation_test_is_exact_in_the_limit() -> None:
    ours, theirs = [0.9, 0.8, 0.4, 0.7, 0.6, 0.9, 0.3, 0.8], [0.5, 0.9, 0.2, 0.4, 0.6, 0.1, 0.4, 0.3]
    differences = np.array(ours) - np.array(theirs)
    exact = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert compare(ours, theirs).p_permutation == pytest.approx(exact, abs=0.015)


def test_p_values_are_uniform_where_nothing_differs() -> None:
    rng = np.random.default_rng(6)
    results = [
        compare(rng.random(60).tolist(), rng.random(60).tolist(), resamples=300, seed=seed) for seed in range(200)
    ]
    for found in ([r.p_permutation for r in results], [r.p_bootstrap for r in results]):
        assert stats.kstest(found, "uniform").pvalue > 0.001
        assert 0.01 <= np.mean(np.array(found) < 0.05) <= 0.11


def test_nan_drops_the_question_from_a_comparison() -> None:
    result = compare([1.0, NAN, 0.0], [0.0, 1.0, NAN])
    assert (result.wins, result.ties, result.losses) == (1, 0, 0)


def test_errors() -> None:
    for call in (lambda: interval([]), lambda: compare([], [])):
        with pytest.raises(ValueError, match="no values"):
            call()
    with pytest.raises(ValueError, match="no question that has a value in both"):
        compare([NAN], [1.0])
    with pytest.raises(ValueError, match="one value per question"):
        compare([1.0], [1.0, 2.0])
    assert intervals({}) == {}


def test_percentile_interval_holds_the_percentile_and_narrows_with_the_number_of_values() -> None:
    few, many = ([float(n) for n in range(size)] for size in (100, 10_000))
    low, high = percentile_interval(few, 50)
    assert (low, high) == (40.0, 60.0)  # 100 * 0.5 -+ 1.96 * sqrt(100 * 0.5 * 0.5) = 40.2 and 59.8
    low, high = percentile_interval(many, 50)
    assert (low, high) == (4902.0, 5098.0)  # 5000 -+ 98
    assert percentile_interval([1.0], 95) == (1.0, 1.0)
