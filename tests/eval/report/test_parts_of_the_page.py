"""Markup, chunks, scales and the front: what the page is made of."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode

import pytest

from polyhop.eval.report.chunks import SIZE, Chunks
from polyhop.eval.report.figures import Plot, Point, bounds, ticks
from polyhop.eval.report.html import Html, table, tag
from polyhop.eval.report.numbers import between, number, p_value
from polyhop.eval.report.tradeoff import front


def test_no_text_becomes_markup() -> None:
    hostile = "</td><script>alert('x')</script> & \"quoted\" \ud800 \0"
    made = tag("td", hostile, title=hostile)
    assert made.count("<") == made.count(">") == 2
    assert made.count('"') == 2
    assert made.isprintable()
    assert made.encode()
    assert table("x", [hostile], [[hostile, hostile]]).count("<script") == 0


def test_markup_stays_markup() -> None:
    assert tag("p", tag("b", "a < b"), " c", class_="x", hidden=True, id=None) == (
        '<p class="x" hidden><b>a &lt; b</b> c</p>'
    )
    assert tag("meta", name="a", http_equiv="b") == '<meta name="a" http-equiv="b">'
    assert isinstance(tag("p"), Html)


def test_chunks_hold_what_was_put_in() -> None:
    details = [{"n": n, "text": "</script>" * n} for n in range(2 * SIZE + 1)]
    with Chunks() as chunks:
        for each in details[:-1]:
            chunks.add(each)
        chunks.close()
        chunks.close()
        chunks.add(details[-1])
        chunks.close()
        packed = list(chunks)
        assert len(chunks) == len(packed) == 3
    assert not any("<" in chunk for chunk in packed)
    assert [each for chunk in packed for each in json.loads(gzip.decompress(b64decode(chunk)))] == details


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.33, 0.41], (0.32, 0.42)), ([0.0, 11.0], (0.0, 15.0)), ([], (0.0, 1.0)), ([3.0, 3.01], (3.0, 3.05))],
)
def test_bounds_are_round_and_hold_the_values(values: list[float], expected: tuple[float, float]) -> None:
    low, high = bounds(values)
    assert (low, high) == pytest.approx(expected)
    assert low < high
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in values)


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, (0.0, 1.0)), (0.97, (0.0, 1.0)), (3.0, (0.0, 3.0)), (-0.4, (-0.4, 0.0))]
)
def test_values_that_are_all_the_same_have_an_axis_from_zero(value: float, expected: tuple[float, float]) -> None:
    assert bounds([value, value]) == pytest.approx(expected)
    assert bounds([value], least=0.1) == pytest.approx(expected)
    assert 0.0 in ticks(*bounds([value]))


def test_numbers_of_an_axis_have_one_unit_and_stand_clear_of_its_name() -> None:
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


def test_ticks() -> None:
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(0.32, 0.42) == pytest.approx([0.32, 0.34, 0.36, 0.38, 0.40, 0.42])


def test_names_stand_on_no_mark_and_on_no_other_name() -> None:
    plot = Plot("A", "x", "y", (0, 10), (0, 1))
    plot.labels([(Point(5, 0.5, ""), "first"), (Point(5.2, 0.5, ""), "second"), (Point(5.1, 0.5, ""), "third")])
    drawn = plot.svg()
    assert "first" in drawn
    assert drawn.count(">second<") <= 1


def test_front() -> None:
    assert front([(1, 0.4), (2, 0.3), (2, 0.5), (3, 0.5), (2, 0.5)]) == [0, 2, 4]
    assert front([(1, 0.4)]) == [0]


def test_numbers_are_written_as_people_write_them() -> None:
    assert number("answer_f1", 0.4886) == "48.9"
    assert number("answer_f1", -0.0432, "+") == "−4.3"
    assert number("tokens", 13004.2) == "13,004"
    assert number("lm_calls", 5.06) == "5.06"
    assert [number("cost_usd", value) for value in (0, 0.0123, 1.5, 2e-6)] == ["$0", "$0.012", "$1.50", "$2.0e-06"]
    assert number("cost_usd", None) == number("answer_em", float("nan")) == "–"
    assert between("answer_em", 0.1, 0.25) == "10.0 to 25.0"
    assert p_value(0.0001) == "<0.001"
