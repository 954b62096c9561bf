"""Calibration, worked by hand."""

from __future__ import annotations

import pytest

from polyhop.eval.report.calibration import STEADY, calibration


def test_by_hand() -> None:
    found = calibration([0.95, 0.95, 0.25, 0.25], [True, False, False, False], questions=8)
    assert found is not None
    assert [(each.low, each.high, each.answers, each.right) for each in found.bins] == [
        (0.2, 0.3, 2, 0.0),
        (0.9, 1.0, 2, 0.5),
    ]
    assert found.ece == pytest.approx((0.25 + 0.45) / 2)
    assert found.aurc == pytest.approx((1 / 2 + 1 / 2 + 2 / 3 + 3 / 4) / 4)  # of equals, the mean of both orders
    assert found.bins[1].interval == pytest.approx((0.0945, 0.9055), abs=5e-5)
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 2 * 0.25**2) / 4)
    assert [(point.coverage, point.risk, point.confidence) for point in found.curve] == [
        (0.25, 0.5, 0.95),
        (0.5, 0.75, 0.25),
    ]


def test_the_curve_is_drawn_where_it_is_steady() -> None:
    sure = [1 - n / 100 for n in range(30)]
    found = calibration(sure, [0.0] * 30, 60)
    assert found
    assert [round(60 * point.coverage) for point in found.steady] == list(range(STEADY, 31))
    few = calibration(sure[:3], [1.0] * 3, 60)
    assert few
    assert few.steady == [few.curve[-1]]


def test_the_area_is_small_if_the_wrong_answers_are_the_least_confident() -> None:
    good, bad = (calibration([0.9, 0.8, 0.7], right, 3) for right in ([True, True, False], [False, True, True]))
    assert good
    assert bad
    assert good.aurc == pytest.approx((0 + 0 + 1 / 3) / 3)
    assert bad.aurc == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_no_answer() -> None:
    assert calibration([], [], questions=3) is None


def test_the_error_of_a_bin_counts_by_its_answers() -> None:
    found = calibration([0.95] * 9 + [0.15], [1.0] * 9 + [1.0], 10)
    assert found is not None
    assert found.ece == pytest.approx(0.9 * 0.05 + 0.1 * 0.85)
