"""The passages and documents in a file of records: JSON Lines, a JSON list, or a table with a column for texts.

Records can have the fields of polyhop, Pyserini, BEIR, LangChain, LlamaIndex, Haystack and MultiHop-RAG.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, cast

import ujson

from .converters import CONVERTERS, suffix_of
from .errors import CorpusError, Problem
from .files import LARGEST_RECORD, bounded_lines
from .passages import Passage
from .splitting import USUAL_PASSAGE, bounded_metadata
from .tables import TableRows

_LINES = (".jsonl", ".ndjson")
SUFFIXES = (*CONVERTERS, *_LINES)
"""Of the files of a folder that are read."""
LONGEST_ID = 512  # characters
Kind = Literal["document", "lines", "table", "benchmark"]
Made = tuple[str, Passage | str]
"""A place in a file, and the passage there or the reason why it is skipped."""

_LOOKED_AT = 100  # records, to tell what a file has
_TOO_LARGE = f"larger than {LARGEST_RECORD >> 20} MB: split it"
_GZIP = b"\x1f\x8b"
_CONTEXTS = re.compile(rb'"(?:context|paragraphs|data|document\w*)"\s*:')
_FILES = ("file_name", "filename", "source")  # in the metadata of other tools
# Of polyhop and LlamaIndex, LangChain, Haystack, Pyserini, MultiHop-RAG.
_TEXTS = ("text", "page_content", "content", "contents", "body")


def is_read(path: Path) -> bool:
    """Whether the name of a file in a folder is that of a kind that is read."""
    suffix = suffix_of(path)
    return (Path(path.stem).suffix.lower() in _LINES) if suffix == ".gz" else suffix in SUFFIXES


def kind_of(path: Path) -> Kind:
    """What a file has, judged by its suffix and its first bytes."""
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            try:
                return "document" if {*_TEXTS, "sentences"}.isdisjoint(TableRows(file).columns) else "table"
            except csv.Error as error:
                raise CorpusError(f"{path} is not a table: {error}.") from error
    if suffix in CONVERTERS:
        return "document"
    return _kind_of_records(path)


def _kind_of_records(path: Path) -> Kind:
    """Which kind of JSON a file has, judged by its first bytes."""
    expected = "Expected JSON Lines: one object with 'title' and 'text' (or 'sentences') a line, plain or gzip."
    try:
        with path.open("rb") as file:
            start = file.read(4096)
        if start.startswith(_GZIP):
            with gzip.open(path) as unpacked:
                start = unpacked.read(4096)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path} cannot be read: {error}.") from error
    if start.startswith(b"PAR1"):
        raise CorpusError(f"{path} is a Parquet file. {expected}")
    if b"\x00" in start:
        raise CorpusError(f"{path} is a binary file. {expected}")
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if first.startswith(b"[") or (first.startswith(b"{") and not _holds_passage(first.splitlines()[0])):
        from .benchmarks import holds_passages

        if holds_passages(path):
            return "benchmark"
    if first.startswith(b"[") and not any(f'"{name}"'.encode() in first for name in _TEXTS):
        raise CorpusError(f"{path} is a JSON array, but not of passages. {expected}")
    if first and not first.startswith(b"{") and not {".jsonl", ".ndjson", ".json"} & set(path.suffixes):
        raise CorpusError(f"{path} is in no format that is known here. {expected}")
    return "table" if first.startswith(b"[") else "lines"


def _holds_passage(line: bytes) -> bool:
    """Whether a line of JSON, possibly truncated, has the fields of `Passage.from_record`."""
    try:
        record = ujson.loads(line)
    except (ValueError, OverflowError):
        return line != b"{" and not _CONTEXTS.search(line)  # a brace alone opens an indented document
    return isinstance(record, dict) and not record.keys().isdisjoint((*_TEXTS, "sentences", "kwargs", "text_resource"))


# --- reading ---------------------------------------------------------------------------------------------------------


def are_documents(records: Iterator[Made]) -> tuple[bool, Iterator[Made]]:
    """Whether most of the first records of a file are too long for passages; and all records."""
    found: list[Made] = []
    size = 0
    while len(found) < _LOOKED_AT and size < 1 << 20 and (record := next(records, None)):
        found.append(record)
        size += len(record[1].text) if isinstance(record[1], Passage) else 0
    sizes = sorted(len(made.text.split()) for _, made in found if isinstance(made, Passage))
    return bool(sizes) and sizes[len(sizes) // 2] > USUAL_PASSAGE, chain(found, records)


def read_lines(path: Path, file: BufferedReader) -> Iterator[Made]:
    """The records of JSON Lines, plain or gzip."""
    packed = file.peek(2).startswith(_GZIP)
    lines = gzip.GzipFile(fileobj=file) if packed else file
    number = 0
    try:
        for number, line in enumerate(bounded_lines(cast(IO[bytes], lines)), 1):
            if line is None:
                yield str(number), _TOO_LARGE
            elif made := _read_record(line if number > 1 else line.removeprefix(b"\xef\xbb\xbf")):
                yield str(number), made
    except (OSError, EOFError, zlib.error) as error:
        damage = f"the gzip file is damaged or cut short after line {number}" if packed else "it cannot be read"
        raise CorpusError(f"{path}: {damage} ({error}).") from error


def _read_record(line: bytes) -> Passage | str | None:
    if not line.strip():
        return None
    try:
        record = ujson.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte {error.start + 1} of the line)"
    except (ValueError, OverflowError) as error:
        return f"not JSON: {error}"
    return _passage(record)


def _passage(record: Any) -> Passage | str:
    try:
        passage = Passage.from_record(_with_our_names(record) if isinstance(record, dict) else record)
    except ValueError as error:
        return str(error)
    return objection(passage) or passage


def _with_our_names(record: dict[str, Any]) -> Mapping[str, Any]:
    """Convert the fields of other tools. Pyserini's ``contents`` is a text, or a title and a text separated by a line
    break; LangChain also writes a record as the ``kwargs`` of another, LlamaIndex a text in a ``text_resource``."""
    if isinstance(record.get("kwargs"), dict):
        record = record["kwargs"]
    if isinstance(record.get("text_resource"), dict):
        record = record | record["text_resource"]
    metadata = record.get("metadata", record.get("meta"))
    name = next((name for name in _TEXTS if record.get(name) is not None), "text")
    found: dict[str, Any] = {key: record.get(key) for key in ("title", "sentences", "place")} | {
        "text": record.get(name)
    }
    found["id"] = next((record[key] for key in ("id", "_id", "id_") if record.get(key) is not None), None)
    found["metadata"] = bounded_metadata(metadata)
    if name == "contents" and isinstance(found["text"], str) and found["sentences"] is None:
        title, line_break, text = found["text"].partition("\n")
        if line_break and found["title"] is None:
            found["title"], found["text"] = title.strip().strip('"'), text
    if found["title"] is None and isinstance(metadata, dict):
        named = [metadata.get("title"), *(Path(str(metadata[key])).stem for key in _FILES if metadata.get(key))]
        found["title"] = next((title for title in named if title and isinstance(title, str)), None)
    return found


def read_table(path: Path) -> Iterator[Made]:
    """The records of a JSON list, or the rows of a table."""
    if path.suffix.lower() not in (".csv", ".tsv"):
        from .benchmarks.files import read_records

        for record in read_records(path):
            if isinstance(record, Problem):
                yield record.where.rpartition(":")[2], record.reason
            else:
                yield record.where.rpartition(":")[2], _passage(dict(record.fields))
        return
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = TableRows(file)
        try:
            for row in rows:
                filled = {name: cell for name, cell in zip(rows.columns, row, strict=False) if cell.strip()}
                if filled:
                    yield str(rows.line_num), _passage(filled)
        except csv.Error as error:
            raise CorpusError(f"{path} is not a table from line {rows.line_num} on: {error}.") from error


def objection(passage: Passage) -> str | None:
    if not passage.title and not passage.text:
        return "title and text are empty"
    if len(passage.id) > LONGEST_ID:
        return f"the id is longer than {LONGEST_ID} characters"
    return None
