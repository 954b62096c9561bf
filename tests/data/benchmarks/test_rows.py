"""The fields of records: what they accept, and what they say about wrong values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from polyhop.data.benchmarks.rows import Malformed, Record

from .records import as_record


def rows(value: Any, **more: Any) -> list[Record]:
    return as_record({"rows": value}).rows("rows", "title", "n", **more)


@pytest.mark.parametrize(
    "table",
    [
        [{"title": "a", "n": 1}, {"title": "b", "n": 2, "more": None}],
        [["a", 1], ("b", 2)],
        {"title": ["a", "b"], "n": [1, 2]},
        '[["a", 1], ["b", 2]]',
        '{"title": ["a", "b"], "n": [1, 2]}',
    ],
)
def test_a_table_has_several_layouts(table: Any) -> None:
    assert [(row.text("title"), row.get("n", kind=int)) for row in rows(table)] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("table", [None, [], {}, {"title": []}, "[]"])
def test_an_empty_table(table: Any) -> None:
    assert rows(table, default=[]) == []
    with pytest.raises(Malformed, match="^rows is missing"):
        rows(table)


def test_values_are_cleaned_and_nulls_are_missing() -> None:
    record = as_record({"id": 7, "x": "a\ud800b\x00", "y": None, "z": "", "texts": '["a", ""]', "python": "['a']"})
    assert (record.id("id"), record.text("x"), record.text("y", "x"), record.text("y", default=None)) == (
        "7",
        "a\ufffdb ",
        "a\ufffdb ",
        None,
    )
    assert (record.text("z", blank=True), record.texts("texts"), record.texts("python")) == ("", ("a", ""), ("a",))


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda record: record.text("missing", "other"), "missing is missing"),
        (lambda record: record.text("blank"), "blank is empty"),
        (lambda record: record.text("other", "number"), "number must be a string, not a number"),
        (lambda record: record.get("flag", kind=int), "flag must be an integer, not true or false"),
        (lambda record: record.get("number", kind=bool), "number must be true or false, not a number"),
        (lambda record: record.id("object"), "object must be a string, not an object"),
        (lambda record: record.texts("mixed"), "mixed must be a list of strings"),
        (lambda record: record.texts("blank"), "blank must be a list of strings"),
        (lambda record: record.texts("blanks"), "blanks is missing or empty"),
        (lambda record: record.rows("number"), "number must be a list, not a number"),
        (lambda record: record.rows("mixed"), "mixed[0] must be an object, not a string"),
        (lambda record: record.rows("pairs", "a"), "pairs[1] must be [a], but has 2 items"),
        (lambda record: record.rows("object"), "object must be a list, or an object of equally long lists"),
        (lambda record: record.rows("objects")[1].get("n"), "objects[1].n is missing"),
        (lambda record: as_record([]), "the record must be an object, not a list"),
    ],
)
def test_wrong_values_are_named(read: Callable[[Record], Any], reason: str) -> None:
    fields = {
        "blank": " ", "number": 1.5, "flag": True, "mixed": ["a", 1], "blanks": [" "], "pairs": [["x"], ["x", "y"]],
        "object": {"a": [1], "b": []}, "objects": [{"n": 1}, {"n": None}],
    }  # fmt: skip
    with pytest.raises(Malformed) as raised:
        read(as_record(fields))
    assert str(raised.value) == reason
