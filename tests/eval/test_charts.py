"""Charts: axes, labels, and escaping."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.eval.charts import Plot, Point, bounds, element, mark, standalone, ticks, whisker


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.33, 0.41], (0.32, 0.42)),
        ([0.0, 11.0], (0.0, 15.0)),
        ([], (0.0, 1.0)),
        ([3.0, 3.01], (3.0, 3.05)),
        ([0.0, 0.0], (0.0, 1.0)),
        ([0.97, 0.97], (0.0, 1.0)),
        ([3.0], (0.0, 3.0)),
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


def test_numbers_of_an_axis_have_one_unit_and_do_not_cover_its_name() -> None:
    def numbers(y_range: tuple[float, float], x_range: tuple[float, float]) -> tuple[list[str], list[str], float]:
        plot = Plot("A", "x", "y", x_range, y_range)
        drawn = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="(end|middle)">([^<]+)', plot.svg())
        ends = [(float(x), text) for x, class_, text in drawn if class_ == "end"]
        return [text for _, text in ends], [text for _, class_, text in drawn if class_ == "middle"], ends[0][0]

    short, tokens, right = numbers((0, 1), (0, 25_000))
    assert tokens == ["0", "5k", "10k", "15k", "20k", "25k"]
    assert short == ["0", "20", "40", "60", "80", "100"]
    long, few, further = numbers((0.96, 0.98), (0, 9_000))
    assert few == ["0", "2000", "4000", "6000", "8000"]
    assert max(map(len, long)) == 4
    assert further > right


def test_texts_are_escaped() -> None:
    hostile = "\"'><script>alert(1)</script></svg>"
    for drawn in (element("text", hostile, id=hostile), mark(0, note=hostile), whisker(0, 0, 0, (0, 1), 0, hostile)):
        assert "<script" not in drawn
        assert "".join(ElementTree.fromstring(drawn).itertext()) in (hostile, "")


def test_a_chart_as_a_file_has_its_own_colors() -> None:
    plot = Plot("A < B", "x", "y", (0, 1), (0, 1))
    plot.marks([Point(0.5, 0.5, "note")], 1)
    root = ElementTree.fromstring(standalone(plot.svg()))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert ".s2{fill:#" in (root.findtext("{http://www.w3.org/2000/svg}style") or "")
