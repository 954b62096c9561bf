"""Records of files: JSON Lines, a JSON list, one JSON document, or a table with a header, plain or gzip.

All are streamed, one record at a time; of a document, one element of its list ``data``. A bad line or row is one
skipped record; a bad list or document is a damaged file.
"""

from __future__ import annotations

import ast
import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import ijson
import ujson

from .errors import DataError, Problem
from .files import LARGEST_RECORD, LINES, bounded_lines, table_rows
from .passages import Passage
from .text import clean, plain

LONGEST_ID = 512  # characters
TEXTS = ("text", "page_content", "content", "contents", "body")
"""The field of a text: of polyhop and LlamaIndex, LangChain, Haystack, Pyserini, MultiHop-RAG."""

_FILES = ("file_name", "filename", "source")  # in the metadata of other tools
_GZIP, _BOM = b"\x1f\x8b", b"\xef\xbb\xbf"
_LISTING = re.compile(rb'\{(?:\s*"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[-+\w.]+)\s*,)*\s*"(data|Data)"\s*:\s*\[')
"""The start of a document of SQuAD or TriviaQA: everything is in one list."""
_DEEPEST = 200  # levels of a JSON list
_REQUIRED: Any = object()
_KINDS = {str: "a string", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}

T = TypeVar("T")


class Malformed(ValueError):
    """A record that is not in the format; the message says why."""


class Record(dict[str, Any]):
    """A JSON object, without nulls, and its place: a file and a line or record number.

    What is missing or of another kind raises `Malformed`. Of several names, the first one that has a value counts.
    """

    def __init__(self, fields: object, where: str) -> None:
        if not isinstance(fields, Mapping):
            raise Malformed("a record must be an object")
        super().__init__((name, value) for name, value in fields.items() if value is not None)
        self.where = where

    def has(self, *names: str) -> bool:
        """Whether it has any of these."""
        return not self.keys().isdisjoint(names)

    def value(self, *names: str, kind: type | None = None, default: Any = _REQUIRED) -> Any:
        """A value, of one kind of JSON."""
        value = next((self[name] for name in names if name in self), default)
        if value is _REQUIRED:
            raise Malformed(f"{names[0]} is missing")
        is_bool = type(value) is bool
        if kind and value is not default and (not isinstance(value, kind) or is_bool is not (kind is bool)):
            raise Malformed(f"{names[0]} must be {_KINDS[kind]}")
        return value

    def text(self, *names: str, default: Any = _REQUIRED, blank: bool = False) -> Any:
        """A text; one that must be there must not be blank, unless ``blank``."""
        value = self.value(*names, kind=str, default=default)
        if default is _REQUIRED and not blank and not value.strip():
            raise Malformed(f"{names[0]} is empty")
        return clean(value) if isinstance(value, str) else value

    def id(self, *names: str, default: Any = _REQUIRED) -> Any:
        """A text, or an integer as a text."""
        value = self.value(*names, default=default)
        return str(value) if type(value) is int else self.text(*names, default=default)

    def texts(self, *names: str, default: Any = _REQUIRED, blank: bool = False) -> tuple[str, ...]:
        """A list of texts, which may be written as a text, in JSON or Python. In one that must be there, a text must
        not be blank, unless ``blank``."""
        value = _unwritten(self.value(*names, default=default))
        if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
            raise Malformed(f"{names[0]} must be a list of strings")
        if default is _REQUIRED and not blank and not any(text.strip() for text in value):
            raise Malformed(f"{names[0]} is empty")
        return tuple(map(clean, value))

    def rows(self, name: str, *columns: str, default: Any = _REQUIRED) -> list[Record]:
        """The objects of a table, in every layout in which benchmarks are distributed: a list of objects; a list of
        lists, whose items are the ``columns``; an object of equally long columns, as on the Hugging Face hub; or any of
        these as a text of JSON. A required table has a row."""
        value = _unwritten(self.value(name, default=default))
        try:
            if isinstance(value, Mapping):
                value = [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
            rows = [dict(zip(columns, row, strict=True)) if isinstance(row, list | tuple) else row for row in value]
            if isinstance(value, str) or (default is _REQUIRED and not rows):
                raise ValueError("it is empty")
            return [Record(row, self.where) for row in rows]
        except (TypeError, ValueError) as error:
            raise Malformed(f"{name} must be a list of objects: {error}") from None

    def passage(self) -> Passage:
        """The passage that a record is, with the fields of polyhop or of other tools. Pyserini's ``contents`` is a
        text, or a title and a text separated by a line break; LangChain also writes a record as the ``kwargs`` of
        another, LlamaIndex a text in a ``text_resource``."""
        fields = self
        for inner in ("kwargs", "text_resource"):
            if isinstance(more := fields.get(inner), dict):
                fields = Record(more if inner == "kwargs" else {**fields, **more}, self.where)
        metadata = fields.get("metadata", fields.get("meta"))
        name = next((name for name in TEXTS if name in fields), "text")
        title, text, sentences = fields.get("title"), fields.get(name), fields.get("sentences")
        if isinstance(text, list) and sentences is None:  # as in the corpora of HotpotQA and of DSPy's tutorials
            text, sentences = None, text
        if name == "contents" and isinstance(text, str) and sentences is None:
            first, line_break, rest = text.partition("\n")
            if line_break and title is None:
                title, text = first.strip().strip('"'), rest
        if title is None and isinstance(metadata, dict):
            named = [metadata.get("title"), *(Path(str(metadata[key])).stem for key in _FILES if metadata.get(key))]
            title = next((title for title in named if title and isinstance(title, str)), None)
        ours = {"title": title, "text": text, "sentences": sentences, "place": fields.get("place")}
        ours |= {"id": fields.value("id", "_id", "id_", default=None), "metadata": bounded_metadata(metadata)}
        try:
            passage = Passage.from_record(ours)
        except ValueError as error:
            raise Malformed(str(error)) from None
        if not passage.title and not passage.text:
            raise Malformed("title and text are empty")
        if len(passage.id) > LONGEST_ID:
            raise Malformed(f"the id is longer than {LONGEST_ID} characters")
        return replace(passage, id=plain(passage.id))  # two that look the same are the same


def read_each(
    read: Callable[[Record], Iterable[T]], records: Iterable[Record | Problem], on_problem: Callable[[Problem], None]
) -> Iterator[T]:
    """What is read of each record; what is malformed is reported."""
    for record in records:
        try:
            if isinstance(record, Problem):
                on_problem(record)
            else:
                yield from read(record)
        except (Malformed, AttributeError, LookupError, TypeError) as error:
            on_problem(Problem(record.where, str(error)))


def bounded_metadata(metadata: object) -> dict[str, Any] | None:
    """What a corpus says about a document, if it is a small object of JSON: every passage carries it."""
    if isinstance(metadata, dict) and metadata:
        with suppress(ValueError, RecursionError):
            text = json.dumps(metadata, ensure_ascii=False, default=str)
            if len(text) <= 2000:
                return json.loads(clean(text))
    return None


def _unwritten(value: Any) -> Any:
    """A value that is written as a text, in JSON or Python; any other value as it is."""
    for parse in (json.loads, ast.literal_eval) if isinstance(value, str) else ():
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(value)
    return value


# --- files -----------------------------------------------------------------------------------------------------------

_Placed = Iterator[tuple[str, Any]]  # the place of a value in its file, and the value or a `Malformed`


def read_records(
    path: Path, name: str = "", on_read: Callable[[int], None] = lambda position: None
) -> Iterator[Record | Problem]:
    """The records of a file, and the problems of malformed ones.

    Args:
        name: Of the file in places, which are ``"dev.jsonl:17"`` (a line) or ``"dev.json:record 17"``, from 1.
        on_read: Called after each record with the number of bytes that are read of the file.

    Raises:
        DataError: there is no such file, it is of an unknown kind; while it is read, it is damaged.
    """
    if not path.is_file():  # nor a pipe, which can be read once
        hub = "A dataset on the Hugging Face hub is written hub:OWNER/NAME[:CONFIG], one in a folder hub:FOLDER."
        problem = f"{path} is no regular file." if path.exists() else f"There is no file {path}."
        raise DataError(f"{problem} {hub}")
    with _opened(path) as (_, file):
        layout = _layout(file, {suffix.lower() for suffix in path.suffixes})

    def records() -> Iterator[Record | Problem]:
        with _opened(path) as (packed, file):
            for place, value in layout(file):
                where = f"{name or path.name}:{place}"
                try:
                    yield Problem(where, str(value)) if isinstance(value, Malformed) else Record(value, where)
                except Malformed as error:
                    yield Problem(where, str(error))
                on_read(packed.tell())

    return records()


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file, and the file unpacked, behind a byte order mark; errors become a `DataError`."""
    try:
        with path.open("rb") as packed:
            is_packed = packed.peek(2).startswith(_GZIP)
            with cast(IO[bytes], gzip.open(packed)) if is_packed else packed as file:
                if file.read(3) != _BOM:
                    file.seek(0)
                yield packed, file
    except (OSError, EOFError, ValueError, zlib.error, csv.Error, ijson.JSONError) as error:
        message = error.args[0] if isinstance(error, ijson.JSONError) else str(error)
        reason = (message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)).splitlines()[0]
        raise DataError(f"{path} cannot be read: {reason}.") from error


def _layout(file: IO[bytes], suffixes: set[str]) -> Callable[[IO[bytes]], _Placed]:
    start = file.read(4096).lstrip()
    is_lines = not suffixes.isdisjoint(LINES)
    if start and not suffixes.isdisjoint((".csv", ".tsv")):
        return _rows
    if start.startswith(b"["):
        return _elements
    if start.startswith(b"{"):
        if not is_lines and (listing := _LISTING.match(start)):
            return lambda file: _elements(file, listing[1].decode())
        file.seek(0)
        # Unlike in an indented document, the first line of JSON Lines is a complete object.
        is_lines = is_lines or not isinstance(_parsed(file.readline(LARGEST_RECORD + 1).removeprefix(_BOM)), Malformed)
        return _lines if is_lines else _document
    if start and is_lines:  # the first line is bad
        return _lines
    what = {b"": "it is empty", b"PAR1": "it is a Parquet file: give its folder, as hub:FOLDER"}
    raise ValueError(
        what.get(start[:4], "expected JSON Lines, a JSON list, a JSON document, or a table (.csv, .tsv), plain or gzip")
    )


def _lines(file: IO[bytes]) -> _Placed:
    for number, line in enumerate(bounded_lines(file), 1):
        if line is None:
            yield str(number), Malformed(f"larger than {LARGEST_RECORD >> 20} MB: split it")
        elif b"\x00" in line:
            raise ValueError("it is a binary file")
        elif line.strip():
            yield str(number), _parsed(line)


def _parsed(line: bytes) -> Any:
    """The value, or a `Malformed`."""
    try:
        return ujson.loads(line.decode())
    except (ValueError, OverflowError) as error:
        return Malformed(f"not JSON: {error}")


def _elements(file: IO[bytes], name: str = "") -> _Placed:
    """The elements of a JSON list, or of a document's list, each as a document with this element."""
    events = ijson.parse(_bounded(ijson.basic_parse(file, use_float=True)))
    for number, value in enumerate(ijson.items(events, f"{name}.item" if name else "item"), 1):
        yield f"record {number}", {name: [value]} if name else value


def _bounded(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Events of JSON that is not nested too deep: ijson keeps the names of all levels for each of them."""
    depth = 0
    for event in events:
        depth += event[0].startswith("start_") - event[0].startswith("end_")
        if depth > _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST} levels")
        yield event


def _document(file: IO[bytes]) -> _Placed:
    """A document as one record."""
    content = file.read(LARGEST_RECORD + 1)
    if len(content) > LARGEST_RECORD:
        raise ValueError(f"it is one JSON object of more than {LARGEST_RECORD >> 20} MB")
    if isinstance(value := _parsed(content), Malformed):
        raise value
    yield "record 1", value


def _rows(file: IO[bytes]) -> _Placed:
    """The rows of a table by the folded names of its columns."""
    for line, row in table_rows((line or b"\n").decode() for line in bounded_lines(file)):
        excess = "more cells than columns: put quotes around what has a separator in it"
        fields = {name and name.casefold(): cell for name, cell in row}
        yield str(line), Malformed(excess) if None in fields else fields
