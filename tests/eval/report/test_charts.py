"""Axes, numbers, the Pareto front, and escaping."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.eval.report import between, name, number, p_value
from polyhop.eval.report.charts import Plot, Point, bounds, element, front, mark, ticks, whisker


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.33, 0.41], (0.32, 0.42)),
        ([0.0, 11.0], (0.0, 15.0)),
        ([], (0.0, 1.0)),
        ([3.0, 3.01], (3.0, 3.05)),
        ([0.97, 0.97], (0.0, 1.0)),
        ([-0.4], (-0.4, 0.0)),
    ],
)
def test_bounds(values: list[float], expected: tuple[float, float]) -> None:
    assert bounds(values) == pytest.approx(expected)


@given(st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), min_size=1))
def test_bounds_hold_the_values_and_have_a_few_ticks(values: list[float]) -> None:
    low, high = bounds(values)
    assert low < high
    slack = 1e-6 * (high - low)
    assert all(low - slack <= value <= high + slack for value in values)
    assert 2 <= len(ticks(low, high)) <= 7


def test_the_numbers_and_marks_of_a_plot() -> None:
    plot = Plot("A", "x", "y", (0, 25_000), (0, 1))
    plot.mark(Point(12_500, 0.5, "note", 0.25, 1.0), 1)
    svg = plot.svg()
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert [text for text in texts if text[0].isdigit()] == [
        *("0", "20", "40", "60", "80", "100"),
        *("0", "5k", "10k", "15k", "20k", "25k"),
        "2",  # the number of the run
    ]
    assert 'transform="translate(220.0,120.0)"' in svg  # the middle of 60 to 380, and of 228 to 12
    assert '<line x1="220.0" x2="220.0" y1="174.0" y2="12.0" class="s2 bar">' in svg


def test_texts_are_escaped() -> None:
    hostile = "\"'><script>alert(1)</script></svg>"
    for drawn in (element("text", hostile, id=hostile), mark(0, note=hostile), whisker(0, 0, 0, (0, 1), 0, hostile)):
        assert "<script" not in drawn
        ElementTree.fromstring(drawn)


def test_front() -> None:
    assert front([(1, 0.4), (2, 0.3), (2, 0.5), (3, 0.5), (2, 0.5)]) == [0, 2, 4]
    assert front([(1, 0.4)]) == [0]


@pytest.mark.parametrize(
    ("metric", "value", "sign", "expected"),
    [
        ("answer_f1", 0.4886, "", "48.9"),
        ("answer_f1", -0.0432, "+", "−4.3"),
        ("tokens", 13004.2, "", "13,004"),
        ("lm_calls", 5.06, "", "5.06"),
        ("seconds_p50", 12.34, "+", "+12.3"),
        ("cost_usd", 0, "", "$0"),
        ("cost_usd", -0.0123, "+", "−$0.012"),
        ("cost_usd", 1.5, "+", "+$1.50"),
        ("cost_usd", 2e-6, "", "$2.0e-06"),
        ("cost_usd", None, "", "–"),
        ("answer_em", float("nan"), "", "–"),
    ],
)
def test_numbers(metric: str, value: float | None, sign: str, expected: str) -> None:
    assert number(value, metric, sign) == expected


def test_intervals_p_values_and_names() -> None:
    assert between((0.1, 0.25), "answer_em") == "10.0 to 25.0"
    assert [p_value(0.0001), p_value(0.25)] == ["<0.001", "0.250"]
    assert [name("passage_recall@5"), name("seconds_p50")] == ["Recall@5", "Seconds, median"]
