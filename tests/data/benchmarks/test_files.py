"""Files are read in every layout, and every damage is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.benchmarks import files
from polyhop.data.benchmarks.files import read_records
from polyhop.data.benchmarks.rows import Record
from polyhop.data.errors import DatasetError, Problem

from .records import lines, write

RECORDS = [{"n": 1, "text": "a ] b"}, {"n": 2, "text": 'é " \\ ,'}, {"n": 3, "text": ""}]
ANY_RECORD = st.dictionaries(
    st.text(max_size=3), st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1) | st.lists(st.booleans()), max_size=3
)


def values(path: Path) -> list[Any]:
    return [record.fields if isinstance(record, Record) else record for record in read_records(path)]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", lines(RECORDS)),
        ("a.jsonl", "\ufeff" + lines(RECORDS).replace("\n", "\r\n\r\n")),
        ("a.json", lines(RECORDS)),
        ("a.json", json.dumps(RECORDS)),
        ("a.json", "\ufeff \n" + json.dumps(RECORDS, indent=2, ensure_ascii=False) + "\n"),
        ("a.jsonl", json.dumps(RECORDS)),
    ],
)
def test_lines_and_lists(tmp_path: Path, name: str, content: str, suffix: str) -> None:
    assert values(write(tmp_path / (name + suffix), content)) == RECORDS


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("around", [({}, {}), ({"version": "v2.0", "n": 1.5}, {"domain": ["web"]})])
def test_a_document_is_a_record_for_each_element(tmp_path: Path, indent: int | None, around: Any) -> None:
    before, after = around
    path = write(tmp_path / "a.json", json.dumps({**before, "data": RECORDS, **after}, indent=indent))
    assert values(path) == [{"data": [record]} for record in RECORDS]


def test_a_document_without_such_a_list_is_one_record(tmp_path: Path) -> None:
    whole = {"a": {"data": [1]}, "data": {"b": 2}}
    assert values(write(tmp_path / "a.json", json.dumps(whole, indent=1))) == [whole]


def test_a_large_document_without_such_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_RECORD", 1 << 20)
    path = write(tmp_path / "a.json", '{"a":\n"' + "x" * (1 << 20) + '"}')
    with pytest.raises(DatasetError, match="one JSON object of more than 1 MB"):
        values(path)


def test_a_document_that_is_cut_short(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cut short"):
        values(write(tmp_path / "a.json", json.dumps({"data": RECORDS})[:-3]))


@given(records=st.lists(ANY_RECORD, max_size=6), indent=st.sampled_from([None, 0, 3]))
def test_a_list_has_the_values_of_its_lines(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], indent: int | None
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "list.json", json.dumps(records, indent=indent))
    assert values(path) == records
    assert values(write(path.with_name("lines.jsonl"), lines(records) or "{}\n")) == (records or [{}])


def test_bad_lines_are_problems(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": \n[1]\n{"n": "\xff"}\n{"n": 5}\n' + b"[" * 100_000 + b"\n")
    first, broken, listed, coded, last, deep = values(path)
    assert (first, last) == ({"n": 1}, {"n": 5})
    assert broken.where == "a.jsonl:2"
    assert broken.reason.startswith("not JSON: Expecting value")
    assert listed == Problem("a.jsonl:3", "the record must be an object, not a list")
    assert coded == Problem("a.jsonl:4", "not UTF-8 (byte 8 of the line)")
    assert deep.reason.startswith("not JSON: ")


def test_bad_elements_are_problems(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '[{"n": 1}, 17, "x", null, {"n": 2}]')
    assert values(path) == [
        {"n": 1},
        Problem("a.json:record 2", "the record must be an object, not a number"),
        Problem("a.json:record 3", "the record must be an object, not a string"),
        Problem("a.json:record 4", "the record must be an object, not null"),
        {"n": 2},
    ]


@pytest.mark.parametrize(
    "content", ['[{"n": 1}, {"n"', '[{"n": 1}', '[{"n": 1},]', '[{"n": 1} {"n": 2}]', "[,]", '[{"n": }]']
)
def test_a_broken_list_is_damage(tmp_path: Path, content: str) -> None:
    with pytest.raises(DatasetError, match=r"a\.json is cut short or not JSON: "):
        values(write(tmp_path / "a.json", content))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz"])
def test_a_truncated_gzip_is_damage(tmp_path: Path, name: str) -> None:
    records = [{"n": number, "text": str(number**9)} for number in range(5000)]
    whole = gzip.compress((lines(records) if "jsonl" in name else json.dumps(records)).encode())
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="is damaged, cut short"):
        values(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"PAR1\x15", "is a Parquet file: give its folder, as hub:FOLDER"),
        (b"PK\x03\x04", "is a zip file: unpack it"),
        (b"id,question\n", "has an unknown format"),
        (b"\x1f\x8bnonsense", "is damaged, cut short or cannot be read"),
        (b'[{"a": "\xff"}]', "invalid bytes in UTF8"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=reason):
        values(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"There is no file .*missing\.json.* hub:OWNER/NAME"):
        read_records(tmp_path / "missing.json")
    with pytest.raises(DatasetError, match="is a folder: name a file in it"):
        read_records(tmp_path)
