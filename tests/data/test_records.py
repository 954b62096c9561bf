"""Records are read from files in every layout, and every damage of a file or a field is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import DataError, Problem
from polyhop.data.records import Malformed, Record, bounded_metadata, read_records

RECORDS = [{"n": 1, "text": "a ] b"}, {"n": 2, "text": 'é " \\ ,'}, {"n": 3, "text": ""}]
WHOLE = {"a": {"data": [1]}, "data": {"b": 2}}
ANY_RECORD = st.dictionaries(
    st.text(max_size=3), st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1) | st.lists(st.booleans()), max_size=3
)


def lines(records: list[Any]) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def values(path: Path, content: str | bytes) -> list[Any]:
    """The fields of the records in a file of this content, and the problems."""
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return [dict(record) if isinstance(record, Record) else record for record in read_records(path)]


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.jsonl", lines(RECORDS), RECORDS),
        ("a.jsonl", "\ufeff" + lines(RECORDS).replace("\n", "\r\n\r\n"), RECORDS),
        ("a.json", lines(RECORDS), RECORDS),
        ("a.json", json.dumps(RECORDS), RECORDS),
        ("a.json", json.dumps(WHOLE, indent=1), [WHOLE]),
        ("a.csv", '\ufeffA,b\n" x ",\n,\n"y\nz",1\n', [{"a": "x"}, {"a": "y\nz", "b": "1"}]),
        *(
            (
                "a.json",
                json.dumps({**before, "data": RECORDS, **after}, indent=indent),
                [{"data": [r]} for r in RECORDS],
            )
            for before, after in (({"version": "v2.0", "n": 1.5}, {"domain": ["web"]}),)
            for indent in (None, 1)
        ),
    ],
)
def test_every_layout(tmp_path: Path, name: str, content: str, found: list[Any], packed: str) -> None:
    assert values(tmp_path / (name + packed), content) == found


@given(records=st.lists(ANY_RECORD, max_size=6), indent=st.sampled_from([None, 0, 3]))
def test_a_list_has_the_values_of_its_lines(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], indent: int | None
) -> None:
    folder = tmp_path_factory.getbasetemp()
    assert values(folder / "list.json", json.dumps(records, indent=indent)) == records
    assert values(folder / "lines.jsonl", lines(records) or "{}\n") == (records or [{}])


def test_bad_records_are_problems(tmp_path: Path) -> None:
    content = b'{"n": 1}\n{"n": \n[1]\n{"n": "\xff"}\n{"n": 5}\n' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"\n"
    first, *problems, last, deep = values(tmp_path / "a.jsonl", content)
    assert (first, last) == ({"n": 1}, {"n": 5})
    assert [(problem.where, problem.reason.partition(": ")[0]) for problem in (*problems, deep)] == [
        ("a.jsonl:2", "not JSON"),
        ("a.jsonl:3", "a record must be an object"),
        ("a.jsonl:4", "not JSON"),
        ("a.jsonl:6", "not JSON"),
    ]
    one, *problems, two = values(tmp_path / "a.json", '[{"n": 1}, 17, "x", null, {"n": 2}]')
    assert (one, two) == ({"n": 1}, {"n": 2})
    assert [problem.where for problem in problems] == [f"a.json:record {n}" for n in (2, 3, 4)]
    good, bad = values(tmp_path / "a.csv", ",a\n1,2\n1,2,3\n")  # a column may have no name
    assert (good, bad.where) == ({"": "1", "a": "2"}, "a.csv:3")


def test_a_large_record_is_not_read(tmp_path: Path) -> None:
    large = b"x" * (33 << 20)
    assert values(tmp_path / "a.jsonl", b'{"a": "' + large) == [Problem("a.jsonl:1", "larger than 32 MB: split it")]
    with pytest.raises(DataError, match="one JSON object of more than 32 MB"):
        values(tmp_path / "a.json", b'{"a":\n"' + large)
    with pytest.raises(DataError, match=r"q\.csv cannot be read"):
        values(tmp_path / "q.csv", b'question,answer\n"' + large[: 31 << 20])


PACKED = gzip.compress(lines([{"n": number, "text": str(number**9)} for number in range(5000)]).encode())


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        *(("a.json", content, "it is empty") for content in (b"", b" \n")),
        ("a.json", b"PAR1\x15", "it is a Parquet file: give its folder, as hub:FOLDER"),
        ("a.json", b"id,question\n", "expected JSON Lines"),
        ("a.jsonl", b"\x7fELF\x00\x00", "it is a binary file"),
        ("a.json", b"\x1f\x8bnonsense", ""),
        ("a.jsonl", PACKED[: len(PACKED) // 2], "Compressed file ended"),
        ("a.json", b'[{"a": "\xff"}]', ".*invalid bytes in UTF8"),
        *(("a.json", content, "") for content in (b'[{"n": 1}, {"n"', b'[{"n": 1},]', b'[{"n": 1} {"n": 2}]')),
        ("a.json", json.dumps({"data": RECORDS})[:-3].encode(), ""),
        ("a.json", b'{"a":\n', "not JSON"),
        *((name, b"[" * 60_000, "nested deeper than 200 levels") for name in ("a.json", "a.jsonl")),  # 9 GB of names
    ],
)
def test_a_damaged_file(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=rf"/{name} cannot be read: {reason}"):
        values(tmp_path / name, content)


# --- fields ----------------------------------------------------------------------------------------------------------


def test_values_are_cleaned_and_nulls_are_missing() -> None:
    fields = {"id": 7, "x": "a\ud800b\x00", "y": None, "z": "", "texts": '["a", ""]', "python": "['a']"}
    record = Record(fields, "file:1")
    cleaned = "a\ufffdb "
    assert (record.id("id"), record.text("x"), record.text("y", "x"), record.text("y", default=None)) == (
        *("7", cleaned, cleaned),
        None,
    )
    assert (record.text("z", blank=True), record.texts("texts"), record.texts("python")) == ("", ("a", ""), ("a",))


@pytest.mark.parametrize(
    "read",
    [
        lambda record: record.text("missing", "other"),
        lambda record: record.text("blank"),
        lambda record: record.text("other", "number"),
        lambda record: record.value("flag", kind=int),
        lambda record: record.value("number", kind=bool),
        lambda record: record.id("object"),
        lambda record: record.id("flag"),
        lambda record: record.texts("mixed"),
        lambda record: record.texts("blanks"),
        lambda record: record.rows("number"),
        lambda record: record.rows("blank"),
        lambda record: record.rows("mixed"),
        lambda record: record.rows("pairs", "a"),
        lambda record: record.rows("object"),
        lambda record: record.rows("objects")[1].value("n"),
        lambda record: Record([], "file:1"),
    ],
)
def test_wrong_values_are_refused(read: Callable[[Record], Any]) -> None:
    fields = {
        "blank": " ", "number": 1.5, "flag": True, "mixed": ["a", 1], "blanks": [" "], "pairs": [["x"], ["x", "y"]],
        "object": {"a": [1], "b": []}, "objects": [{"n": 1}, {"n": None}],
    }  # fmt: skip
    with pytest.raises(Malformed):
        read(Record(fields, "file:1"))


def test_metadata_is_kept_if_it_is_small() -> None:
    assert [*map(bounded_metadata, ({"a": "x"}, {"a": "x" * 5000}, ["a"]))] == [{"a": "x"}, None, None]
