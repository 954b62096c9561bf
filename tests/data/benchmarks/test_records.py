"""The field types of records: what they accept, and what they say about wrong values."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, Field, StrictBool, StrictInt

from polyhop.data.benchmarks.formats import TwoWiki
from polyhop.data.benchmarks.records import AnyText, Id, Malformed, NotEmpty, RecordModel, Text, Texts, table

from .records import TWOWIKI_COLUMNS, as_record


class Row(RecordModel):
    title: Text
    n: StrictInt


class Fields(RecordModel):
    x: Text = Field(default="x", validation_alias=AliasChoices("x", "y"))
    id: Id = "0"
    any: AnyText = ""
    number: StrictInt = 0
    flag: StrictBool = True
    texts: Texts = Field(default=[])
    full: Annotated[Texts, NotEmpty] = Field(default=["a"])
    rows: Annotated[list[Row], table("title", "n")] = Field(default=[])


def read(**fields: Any) -> Fields:
    return as_record(fields).parse(Fields)


@pytest.mark.parametrize(
    "rows",
    [
        [{"title": "a", "n": 1}, {"title": "b", "n": 2, "more": None}],
        [["a", 1], ["b", 2]],
        [("a", 1), ("b", 2)],
        {"title": ["a", "b"], "n": [1, 2]},
        '[["a", 1], ["b", 2]]',
        '{"title": ["a", "b"], "n": [1, 2]}',
    ],
)
def test_a_table_has_several_layouts(rows: Any) -> None:
    assert [(row.title, row.n) for row in read(rows=rows).rows] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("rows", [None, [], {}, {"title": []}, "[]", "null"])
def test_an_empty_table(rows: Any) -> None:
    assert read(rows=rows).rows == []


def test_values_are_cleaned_and_nulls_are_missing() -> None:
    assert read(id=7).id == "7"
    assert read(x="a\ud800b\x00").x == "a\ufffdb "
    assert read(x=None, y="z").x == "z"
    assert read(x=None).x == "x"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"x": " "}, "x is empty"),
        ({"y": 3}, "y must be a string, not a number"),
        ({"any": None, "number": True}, "number must be an integer, not true or false"),
        ({"number": 1.5}, "number must be an integer, not a number"),
        ({"flag": "yes"}, "flag must be true or false, not a string"),
        ({"texts": "a"}, "texts must be a list of strings"),
        ({"texts": ["a", 1]}, "texts must be a list of strings"),
        ({"full": []}, "full is missing or empty"),
        ({"id": {}}, "id must be a string, not an object"),
        ({"rows": 1}, "rows must be a list, not a number"),
        ({"rows": "{"}, "rows is a string, but not of JSON"),
        ({"rows": [1]}, r"rows\[0\] must be an object, not a number"),
        ({"rows": [["a"]]}, r"rows must have \[title, n\] in each row, but row 0 has 1 items"),
        ({"rows": {"a": [1], "b": []}}, "rows has columns of different lengths: a, b"),
        ({"rows": {"a": 1}}, "rows must be a list, or an object of lists"),
        ({"rows": [{"title": "a"}]}, r"rows\[0\]\.n is missing"),
    ],
)
def test_wrong_values_are_named(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Malformed, match=f"^{reason}"):
        read(**fields)


def test_names_that_are_not_unicode_are_a_problem_of_the_record() -> None:
    facts = {"title": ["Mia Venn"], "\ud800": [0, 1]}
    with pytest.raises(Malformed, match="lone surrogate"):
        as_record({**TWOWIKI_COLUMNS, "supporting_facts": facts}).parse(TwoWiki)
