"""Records of files and of Hugging Face datasets.

Files are JSON Lines, a JSON list, one JSON document, or a table with a header, plain or gzip. All are streamed, one
record at a time; of a document, one element of its list ``data``. A bad line or row is one skipped record; a bad list
or document is a damaged file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import ijson

from ..errors import DatasetError, Problem
from ..files import LARGEST_RECORD, bounded_lines, check_regular
from ..importing import installs
from ..tables import TableRows
from .rows import Malformed, Record

PREFIX = "hub:"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_SCALAR = rb'\s*"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[-+\w.]+)\s*,'
_LISTING = re.compile(rb'\{(?:%s)*\s*"(data|Data)"\s*:\s*\[' % _SCALAR)
"""The start of a document of SQuAD or TriviaQA: everything is in one list."""
_EXPECTED = "Expected JSON Lines, a JSON list, a JSON document, or a table (.csv, .tsv), plain or gzip."


def read_records(path: Path) -> Iterator[Record | Problem]:
    """The records of a file, and the problems of malformed ones.

    Places are ``"dev.jsonl:17"`` (a line) or ``"dev.json:record 17"``, from 1.
    """
    if path.is_dir():
        raise DatasetError(f"{path} is a folder: name a file in it, or hub:{path} if it holds a Hugging Face dataset.")
    if not path.exists():
        raise DatasetError(
            f"There is no file {path}. A dataset on the Hugging Face hub is written hub:OWNER/NAME[:CONFIG]."
        )
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{error}.") from error
    with _opened(path) as file:
        start = file.read(4096).lstrip()
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if start and {".csv", ".tsv"} & suffixes:
        return _table(path)
    if start.startswith(b"["):
        return _elements(path)
    if start.startswith(b"{"):
        if not {".jsonl", ".ndjson"} & suffixes and (listing := _LISTING.match(start)):
            return _elements(path, listing[1].decode())
        return _lines(path) if {".jsonl", ".ndjson"} & suffixes or _is_line(path) else _document(path)
    raise DatasetError(f"{path} {_what(start)}. {_EXPECTED}")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, unpacked, behind a byte order mark; errors become a `DatasetError`."""
    try:
        with path.open("rb") as packed:
            is_packed = packed.peek(2).startswith(_GZIP)
            with cast(IO[bytes], gzip.open(packed)) if is_packed else packed as file:
                if file.read(3) != _BOM:
                    file.seek(0)
                yield file
    except (ijson.JSONError, UnicodeDecodeError) as error:
        given = error.args[0] if isinstance(error, ijson.JSONError) else str(error)
        reason = (given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)).splitlines()[0]
        raise DatasetError(f"{path} is cut short or not JSON: {reason}.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} is damaged, cut short or cannot be read: {error}.") from error


def _what(start: bytes) -> str:
    if not start:
        return "is empty"
    if start.startswith(b"PAR1"):
        return "is a Parquet file: give its folder, as hub:FOLDER"
    if start.startswith(b"PK\x03\x04"):
        return "is a zip file: unpack it"
    return "has an unknown format"


def _is_line(path: Path) -> bool:
    """Whether the first line is a complete object, unlike in an indented document."""
    with _opened(path) as file:
        try:
            _parsed(file.readline(LARGEST_RECORD + 1))
        except Malformed:
            return False
    return True


def _lines(path: Path) -> Iterator[Record | Problem]:
    with _opened(path) as file:
        for number, line in enumerate(bounded_lines(file), 1):
            where = f"{path.name}:{number}"
            if line is None:
                yield Problem(where, f"larger than {LARGEST_RECORD >> 20} MB")
            elif line.strip():
                yield _record(partial(_parsed, line), where)


def _record(value: Any, where: str) -> Record | Problem:
    try:
        return Record(value() if callable(value) else value, where)
    except Malformed as error:
        return Problem(where, str(error))


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 (byte {error.start + 1} of the line)") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from error


def _elements(path: Path, name: str = "") -> Iterator[Record | Problem]:
    """The elements of a JSON list, or of a document's list, each as a document with this element."""
    with _opened(path) as file:
        for number, value in enumerate(ijson.items(file, f"{name}.item" if name else "item", use_float=True), 1):
            yield _record({name: [value]} if name else value, f"{path.name}:record {number}")


def _document(path: Path) -> Iterator[Record | Problem]:
    """A document as one record."""
    with _opened(path) as file:
        content = file.read(LARGEST_RECORD + 1)
        if len(content) > LARGEST_RECORD:
            raise DatasetError(f"{path} is one JSON object of more than {LARGEST_RECORD >> 20} MB. {_EXPECTED}")
        try:
            yield Record(_parsed(content), f"{path.name}:record 1")
        except Malformed as error:
            raise DatasetError(f"{path} is {error}.") from error


def _table(path: Path) -> Iterator[Record | Problem]:
    """The rows of a table whose first line names the columns; empty cells are left out."""
    line = 1
    with _opened(path) as file:
        try:
            rows = TableRows(io.TextIOWrapper(file, encoding="utf-8", newline=""))
            if "question" not in rows.columns:
                raise DatasetError(
                    f"{path} has no column 'question': its first line must name the columns, such as question, answer, "
                    f"gold. It names {', '.join(rows.columns)[:80]!r}."
                )
            line = 2
            for row in rows:
                where, line = f"{path.name}:{line}", rows.line_num + 2
                if len(row) > len(rows.columns):
                    excess = f"{len(row)} cells in {len(rows.columns)} columns"
                    yield Problem(where, f"{excess}: put quotes around what has a separator in it")
                elif any(cell.strip() for cell in row):
                    filled = zip(rows.columns, row, strict=False)  # missing cells are empty
                    yield Record({name: cell.strip() for name, cell in filled if cell.strip()}, where)
        except csv.Error as error:
            raise DatasetError(f"{path} is not a table from line {line} on: {error}.") from error


# --- the hub ---------------------------------------------------------------------------------------------------------


def hub_records(name: str, split: str) -> Iterator[Record | Problem]:
    """The records of one split of a Hugging Face dataset, or of a local folder that `datasets` can read.

    Args:
        name: ``OWNER/NAME`` or ``OWNER/NAME:CONFIG``, or a folder of Parquet or JSON files named after the splits.
        split: As `datasets.load_dataset` takes it: ``validation``, ``train[:500]``, ...
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise DatasetError(f"{PREFIX}{name} needs the package datasets: run `{installs('hub')}`.") from error

    path, _, config = name.partition(":")
    try:
        rows = iter(load_dataset(path, config or None, split=split))
    except Exception as error:  # the library and its downloads raise errors of many families
        raise DatasetError(
            f"The split {split!r} of the dataset {name!r} cannot be loaded: {type(error).__name__}: {error} "
            f"A hub name is written {PREFIX}OWNER/NAME[:CONFIG]."
        ) from error
    return (Record(row, f"{name}:{split}:{number}") for number, row in enumerate(rows, 1))
