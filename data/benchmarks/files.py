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

from ..errors import DatasetError, Problem
from ..files import LARGEST_RECORD, bounded_lines, check_regular
from .records import Malformed, Record

PREFIX = "hub:"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 18  # characters
_SCALAR = r'\s*"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[-+\w.]+)\s*,'
_LISTING = re.compile(rf'\{{(?:{_SCALAR})*\s*"(data|Data)"\s*:\s*(?=\[)')
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
        start = file.read(4096).removeprefix(_BOM).lstrip()
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if start and {".csv", ".tsv"} & suffixes:
        return _table(path, tabs=".tsv" in suffixes)
    if start.startswith(b"["):
        return _list(path)
    if start.startswith(b"{"):
        if {".jsonl", ".ndjson"} & suffixes:
            return _lines(path)
        listing = _LISTING.match(start.decode("utf-8", "replace"))
        return _document(path) if listing or not _is_line(path) else _lines(path)
    raise DatasetError(f"{path} {_what(start)}. {_EXPECTED}")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, unpacked; errors become a `DatasetError`."""
    try:
        with path.open("rb") as packed:
            if packed.peek(2).startswith(_GZIP):
                with gzip.open(packed) as file:
                    yield cast(IO[bytes], file)
            else:
                yield packed
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} is damaged, cut short or cannot be read: {error}.") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8: {error}.") from error


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
        line = file.readline(LARGEST_RECORD + 1)
        if len(line) > LARGEST_RECORD:  # a document, or a line that is skipped
            return False
        try:
            json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return False
    return True


def _lines(path: Path) -> Iterator[Record | Problem]:
    with _opened(path) as file:
        for number, line in enumerate(bounded_lines(file), 1):
            where = f"{path.name}:{number}"
            if line is None:
                yield Problem(where, f"larger than {LARGEST_RECORD >> 20} MB")
            elif line.strip():
                try:
                    yield Record(_parsed(line), where)
                except Malformed as error:
                    yield Problem(where, str(error))


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 (byte {error.start + 1} of the line)") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from error


def _table(path: Path, tabs: bool) -> Iterator[Record | Problem]:
    """The rows of a table whose first line names the columns; empty cells are left out."""
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        header = text.readline(LARGEST_RECORD)
        delimiter = "\t" if tabs else ";" if ";" in header and "," not in header else ","
        columns = [name.strip().casefold() for name in next(csv.reader([header], delimiter=delimiter), [])]
        if "question" not in columns:
            raise DatasetError(
                f"{path} has no column 'question': its first line must name the columns, such as question, answer, "
                f"gold. It is {header.strip()[:80]!r}."
            )
        rows = csv.reader(iter(partial(text.readline, LARGEST_RECORD), ""), delimiter=delimiter)
        line = 2
        try:
            for row in rows:
                where, line = f"{path.name}:{line}", rows.line_num + 2
                if len(row) > len(columns):
                    excess = f"{len(row)} cells in {len(columns)} columns"
                    yield Problem(where, f"{excess}: put quotes around what has a {delimiter!r} in it")
                elif any(cell.strip() for cell in row):
                    filled = zip(columns, row, strict=False)  # missing cells are empty
                    yield Record({name: cell.strip() for name, cell in filled if cell.strip()}, where)
        except csv.Error as error:
            raise DatasetError(f"{path} is not a table from line {line} on: {error}.") from error


def _document(path: Path) -> Iterator[Record | Problem]:
    """A document as records: one for each element of the list in which it has everything, or itself."""
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig")
        start = text.read(_CHUNK)
        if listing := _LISTING.match(start.lstrip()):
            elements = _elements(path, text, start.lstrip()[listing.end() :])
            for number, element in enumerate(elements, 1):
                yield Record({listing[1]: [element]}, f"{path.name}:record {number}")
            return
        content = start + text.read(LARGEST_RECORD)
        if len(content) > LARGEST_RECORD:
            raise DatasetError(f"{path} is one JSON object of more than {LARGEST_RECORD >> 20} MB. {_EXPECTED}")
        try:
            yield Record(json.loads(content), f"{path.name}:record 1")
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{path} is not JSON: {error}.") from error


def _list(path: Path) -> Iterator[Record | Problem]:
    with _opened(path) as file:
        for number, value in enumerate(_elements(path, io.TextIOWrapper(file, encoding="utf-8-sig")), 1):
            where = f"{path.name}:record {number}"
            try:
                yield Record(value, where)
            except Malformed as error:
                yield Problem(where, str(error))


def _elements(path: Path, file: io.TextIOWrapper, text: str = "") -> Iterator[Any]:
    """The elements of a JSON list that begins with ``text``: decode what was read so far, and read more when it is
    incomplete."""
    position, separator, more = 0, "[", True
    while True:
        value: Any = None
        try:
            value, end = _element(text, position, separator)
        except (ValueError, RecursionError) as error:
            if not more:
                raise DatasetError(f"{path} is cut short or not a JSON list: {error}.") from error
            end = len(text)
        if more and end == len(text):  # possibly incomplete
            if len(text) - position > LARGEST_RECORD:
                raise DatasetError(f"{path} has a record of more than {LARGEST_RECORD >> 20} MB, or is damaged.")
            chunk = file.read(max(_CHUNK, len(text) - position))
            text, position, more = text[position:] + chunk, 0, bool(chunk)
        elif value is _END:
            return
        else:
            yield value
            position, separator = end, ","


_END = object()
_SPACE = re.compile(r"\s*")
_decode = json.JSONDecoder().raw_decode


def _element(text: str, position: int, separator: str) -> tuple[Any, int]:
    """The element behind the separator, or `_END`, and the position after it."""
    position = _after_space(text, position)
    if separator == "," and text.startswith("]", position):
        return _END, position + 1
    if not text.startswith(separator, position):
        raise json.JSONDecodeError(f"Expecting '{separator}'", text, position)
    position = _after_space(text, position + 1)
    if separator == "[" and text.startswith("]", position):
        return _END, position + 1
    return _decode(text, position)


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


# --- the hub ---------------------------------------------------------------------------------------------------------


def hub_records(name: str, split: str) -> Iterator[Record | Problem]:
    """The records of one split of a Hugging Face dataset, or of a local folder that `datasets` can read.

    Args:
        name: ``OWNER/NAME`` or ``OWNER/NAME:CONFIG``, or a folder of Parquet or JSON files named after the splits.
        split: As `datasets.load_dataset` takes it: ``validation``, ``train[:500]``, ...
    """
    rows = _load(name, split)
    return (Record(row, f"{name}:{split}:{number}") for number, row in enumerate(rows, 1))


def _load(name: str, split: str) -> Iterator[Any]:
    from datasets import Dataset, load_dataset

    path, _, config = name.partition(":")
    try:
        rows: Dataset = load_dataset(path, config or None, split=split)
    except Exception as error:  # the library and its downloads raise errors of many families
        raise DatasetError(
            f"The split {split!r} of the dataset {name!r} cannot be loaded: {type(error).__name__}: {error} "
            f"A hub name is written {PREFIX}OWNER/NAME[:CONFIG]."
        ) from error
    return iter(rows)
