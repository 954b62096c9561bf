"""Intervals and p-values of known cases."""

from __future__ import annotations

import math

import pytest

from polyhop.eval.statistics import calibration_error, compare, holm, interval, intervals

NAN = math.nan
stats = pytest.importorskip("scipy.stats")


def test_the_interval_of_a_mean_is_what_theory_says() -> None:
    # 300 of 1000 right: a standard error of sqrt(.3 * .7 / 1000) = 0.01449, so 0.3 -+ 1.96 * 0.01449 = [.2716, .3284].
    ends = interval([1.0] * 300 + [0.0] * 700)
    assert ends.mean == pytest.approx(0.3)
    assert ends[1:] == pytest.approx((0.2716, 0.3284), abs=0.003)


def test_same_seed_same_interval_whatever_stands_beside_it() -> None:
    values, others = [0.0, 1.0, 0.3, 0.8] * 5, [1.0, 0.0] * 10
    assert interval(values, seed=3) == interval(values, seed=3)
    assert interval(values, seed=3) != interval(values, seed=4)
    assert intervals({"b": others, "a": values}, seed=3)["a"] == pytest.approx(interval(values, seed=3))


def test_a_question_without_a_value_takes_no_part() -> None:
    by_name = intervals({"some": [1.0, NAN, 0.0, NAN] * 50, "all": [1.0] * 200, "none": [NAN] * 200}, resamples=500)
    assert by_name["some"].mean == 0.5
    assert by_name["some"].low < 0.45 < 0.55 < by_name["some"].high
    assert by_name["all"] == (1.0, 1.0, 1.0)
    assert all(math.isnan(value) for value in by_name["none"])


def test_a_clear_difference() -> None:
    result = compare([1.0] * 40 + [0.5] * 10, [0.0] * 38 + [1.0] * 2 + [0.5] * 10)
    assert (result.wins, result.ties, result.losses) == (38, 12, 0)
    assert result.difference.mean == pytest.approx(0.76)
    assert result.p_permutation == pytest.approx(2 / 5_001)
    other = compare([0.0] * 38 + [1.0] * 2 + [0.5] * 10, [1.0] * 40 + [0.5] * 10)
    assert (other.wins, other.losses, other.difference.mean) == pytest.approx((0, 38, -0.76))
    partly = compare([1.0, NAN, 0.0], [0.0, 1.0, NAN])  # a question without a value is dropped
    assert (partly.wins, partly.ties, partly.losses) == (1, 0, 0)


def test_runs_without_a_question_in_common_cannot_be_compared() -> None:
    for ours, theirs in (([NAN], [1.0]), ([], [])):
        with pytest.raises(ValueError, match="no question that has a value in both"):
            compare(ours, theirs)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0, 1.0, 1.0], 2 / 8),  # two of eight sign flips are as extreme
        ([-1.0, -1.0, -1.0], 2 / 8),
        ([3.0, 1.0, 1.0], 2 / 8),
        ([3.0, -1.0, 1.0], 6 / 8),  # sums of 5, 3, 3, 1 and their opposites; that of the runs is 3
        ([1.0, 0.0, 0.0], 1.0),  # ties do not count
        ([1.0], 1.0),
        ([0.0, 0.0], 1.0),
    ],
)
def test_few_differences_have_exact_two_sided_p_values(differences: list[float], p: float) -> None:
    assert compare(differences, [0.0] * len(differences)).p_permutation == pytest.approx(p)


def test_holm_corrects_for_all_tests() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.7, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_calibration_error_weighs_bins_by_their_answers() -> None:
    # Three answers of 0.9, two right: |0.9 - 2/3|; one of 0.2, right: |0.2 - 1|. (3 * 0.2333 + 0.8) / 4 = 0.375.
    assert calibration_error([0.9, 0.9, 0.9, 0.2], [True, True, False, True]) == pytest.approx(0.375)
    assert calibration_error([1.0, 0.95], [True, False]) == pytest.approx(0.475)  # one bin: |0.975 - 0.5|
    assert calibration_error([0.0, 1.0], [False, True]) == 0.0
