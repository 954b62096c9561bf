"""A field is read, or it is said what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from polyhop.data.benchmarks.record import Malformed, Record

from .records import as_record


@pytest.mark.parametrize(
    "table",
    [
        [{"title": "a", "n": 1}, {"title": "b", "n": 2}],
        [["a", 1], ["b", 2]],
        [("a", 1), ("b", 2)],
        {"title": ["a", "b"], "n": [1, 2]},
        '[["a", 1], ["b", 2]]',
        '{"title": ["a", "b"], "n": [1, 2]}',
    ],
)
def test_a_table_reads_the_same_in_every_layout(table: Any) -> None:
    rows = as_record({"t": table}).rows("t", "title", "n")
    assert [(row.text("title"), row.integer("n")) for row in rows] == [("a", 1), ("b", 2)]


def test_nothing_is_an_empty_table() -> None:
    assert as_record({"a": None, "b": [], "c": {}, "d": {"x": []}}).rows("missing") == []
    assert [as_record({"a": None, "b": [], "c": {}, "d": {"x": []}}).rows(name) for name in "abcd"] == [[]] * 4


@pytest.mark.parametrize(
    ("value", "read", "reason"),
    [
        ({}, lambda r: r.text("x", "y"), "x is missing"),
        ({"x": None}, lambda r: r.text("x"), "x is missing"),
        ({"x": " "}, lambda r: r.text("x"), "x is empty"),
        ({"y": 3}, lambda r: r.text("x", "y"), "y must be a string, not a number"),
        ({"x": True}, lambda r: r.integer("x"), "x must be an integer, not true or false"),
        ({"x": 1.5}, lambda r: r.integer("x"), "x must be an integer, not a number"),
        ({}, lambda r: r.integer("x"), "x must be an integer, not null"),
        ({"x": "yes"}, lambda r: r.flag("x", default=True), "x must be true or false, not a string"),
        ({"x": "a"}, lambda r: r.texts("x"), "x must be a list of strings"),
        ({"x": ["a", 1]}, lambda r: r.texts("x"), "x must be a list of strings"),
        ({"x": {}}, lambda r: r.id("x"), "x must be a string, not an object"),
        ({}, lambda r: r.id("x"), "x is missing"),
        ({"x": 1}, lambda r: r.rows("x"), "x must be a list, not a number"),
        ({"x": "{"}, lambda r: r.rows("x"), "x is a string, but not of JSON"),
        ({"x": [1]}, lambda r: r.rows("x"), r"x\[0\] must be an object, not a number"),
        ({"x": [["a"]]}, lambda r: r.rows("x", "title", "n"), r"x\[0\] must be \[title, n\], but has 1 items"),
        ({"x": {"a": [1], "b": []}}, lambda r: r.rows("x"), "x: the columns a, b differ in length"),
        ({"x": {"a": 1}}, lambda r: r.rows("x"), "x must be a list, or an object of lists"),
        ({"x": [{"y": [{}]}]}, lambda r: r.rows("x")[0].rows("y")[0].text("z"), r"x\[0\].y\[0\].z is missing"),
        ({"x": []}, lambda r: r.within("x"), "x must be an object, not a list"),
    ],
)
def test_what_is_wrong_is_said(value: Any, read: Callable[[Record], object], reason: str) -> None:
    with pytest.raises(Malformed, match=f"^{reason}"):
        read(as_record(value))


def test_ids_may_be_numbers() -> None:
    assert as_record({"id": 7}).id("_id", "id") == "7"


def test_texts_can_be_written_to_files() -> None:
    assert as_record({"x": "a\ud800b\x00"}).text("x") == "a\ufffdb "
