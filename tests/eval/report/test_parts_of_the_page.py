"""Markup, chunks, scales and the front: what the page is made of."""

from __future__ import annotations

import gzip
import json
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
    [([0.33, 0.41], (0.32, 0.42)), ([0.0, 11.0], (0.0, 15.0)), ([], (0.0, 1.0)), ([3.0], (3.0, 3.05))],
)
def test_bounds_are_round_and_hold_the_values(values: list[float], expected: tuple[float, float]) -> None:
    low, high = bounds(values)
    assert (low, high) == pytest.approx(expected)
    assert low < high
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in values)


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
