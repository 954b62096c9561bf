"""Records of benchmark files, their fields, and the registry of benchmarks.

A benchmark is a function from a `Record` to a `QuestionRecord`, with `register` above it. A record's methods read its
fields; what is missing or of another kind raises `Malformed`, whose message names the field.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import DatasetError, Problem
from ..text import clean
from .question import QuestionRecord

SAMPLE = "sample"
LONGEST_QUESTION = 20_000  # characters
LONGEST_ID = 512

_REQUIRED: Any = object()
_KINDS = {str: "a string", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}


class Malformed(ValueError):
    """A record that is not in the benchmark's format; the message says why."""


@dataclass(frozen=True)
class Record:
    """A JSON object with its place: a file and a line or record number, and a path inside the record.

    A null counts as missing. Where a method takes several names, the first one that has a value counts.
    """

    fields: Mapping[str, Any]
    where: str
    path: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Mapping):
            raise Malformed(f"{self.path or 'the record'} must be an object, not {json_kind(self.fields)}")

    def named(self, name: str) -> str:
        """A field with its path, for messages."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, *names: str) -> bool:
        """Whether any of these fields has a value."""
        return any(self.fields.get(name) is not None for name in names)

    def get(self, *names: str, kind: type | None = None, default: Any = _REQUIRED) -> Any:
        """A value, of one kind of JSON."""
        name = next((name for name in names if self.fields.get(name) is not None), None)
        if name is None:
            if default is _REQUIRED:
                raise Malformed(f"{self.named(names[0])} is missing")
            return default
        value = self.fields[name]
        if kind and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise Malformed(f"{self.named(name)} must be {_KINDS[kind]}, not {json_kind(value)}")
        return value

    def text(self, *names: str, default: Any = _REQUIRED, blank: bool = False) -> Any:
        """A text; one that must be there must not be blank, unless ``blank``."""
        value = self.get(*names, kind=str, default=default)
        if default is _REQUIRED and not blank and not value.strip():
            raise Malformed(f"{self.named(names[0])} is empty")
        return clean(value) if isinstance(value, str) else value

    def id(self, *names: str, default: Any = _REQUIRED) -> Any:
        """A text, or an integer as a text."""
        value = self.get(*names, default=default)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(*names) if self.has(*names) else default

    def texts(self, *names: str, default: Any = _REQUIRED, blank: bool = False) -> tuple[str, ...]:
        """A list of texts, which may be written as a text, in JSON or Python. In one that must be there, a text must
        not be blank, unless ``blank``."""
        value = _unwritten(self.get(*names, default=default))
        if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
            raise Malformed(f"{self.named(names[0])} must be a list of strings")
        if default is _REQUIRED and not blank and not any(text.strip() for text in value):
            raise Malformed(f"{self.named(names[0])} is missing or empty")
        return tuple(map(clean, value))

    def rows(self, name: str, *columns: str, default: Any = _REQUIRED) -> list[Record]:
        """The objects of a table, in every layout in which benchmarks are distributed: a list of objects; a list of
        lists, whose items are the ``columns``; an object of equally long columns, as on the Hugging Face hub; or any of
        these as a text of JSON. A required table has a row."""
        value, path = _unwritten(self.get(name, default=default)), self.named(name)
        if isinstance(value, Mapping):
            lists = list(value.values())
            if not all(isinstance(column, list | tuple) and len(column) == len(lists[0]) for column in lists):
                raise Malformed(f"{path} must be a list, or an object of equally long lists")
            value = [dict(zip(value, row, strict=True)) for row in zip(*lists, strict=True)]
        if not isinstance(value, list | tuple):
            raise Malformed(f"{path} must be a list, not {json_kind(value)}")
        if default is _REQUIRED and not value:
            raise Malformed(f"{path} is missing or empty")
        found = []
        for number, row in enumerate(value):
            if isinstance(row, list | tuple) and columns:
                if len(row) != len(columns):
                    raise Malformed(f"{path}[{number}] must be [{', '.join(columns)}], but has {len(row)} items")
                row = dict(zip(columns, row, strict=True))
            found.append(Record(row, self.where, f"{path}[{number}]"))
        return found

    def nested(self, *names: str) -> Iterator[Record | Problem]:
        """The objects in lists of lists, each with the fields of the objects around it; a bad list is a problem."""
        if not names:
            yield self
            return
        around = {name: value for name, value in self.fields.items() if name != names[0]}
        try:
            rows = self.rows(names[0])
        except Malformed as error:
            yield Problem(self.where, str(error))
            return
        for row in rows:
            yield from replace(row, fields={**around, **row.fields}).nested(*names[1:])


def _unwritten(value: Any) -> Any:
    """A value that is written as a text, in JSON or Python; any other value as it is."""
    for parse in (json.loads, ast.literal_eval) if isinstance(value, str) else ():
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(value)
    return value


def json_kind(value: object) -> str:
    """What JSON calls the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "a list"


# --- benchmarks ------------------------------------------------------------------------------------------------------

Format = Callable[[Record], QuestionRecord]


@dataclass(frozen=True)
class Benchmark:
    """A registered benchmark."""

    name: str  # on the command line and in results
    title: str  # as its authors write it
    question: Format = field(repr=False)  # of a record
    knows: Callable[[Record], bool] = field(repr=False)  # whether a record may be of it, judged by its fields
    unnest: Callable[[Iterable[Record]], Iterable[Record | Problem]] = field(
        default=lambda records: records, repr=False
    )
    """One record per question, for benchmarks that nest several in one."""
    aliases: tuple[str, ...] = ()  # other names
    hub: str | None = None  # `OWNER/NAME[:CONFIG]` on the Hugging Face hub, if it is there
    has_contexts: bool = False  # its questions have passages of their own, so the setting `distractor` exists
    split: str = "validation"  # the hub's split to evaluate on

    def read(self, records: Iterable[Record]) -> Iterator[QuestionRecord | Problem]:
        """The questions of some records, and the problems of malformed ones."""
        for record in self.unnest(records):
            if isinstance(record, Problem):
                yield record
                continue
            try:
                place = f"{record.where}, {record.path}" if record.path else record.where
                question = replace(self.question(record), where=place)
                for name, most in (("question", LONGEST_QUESTION), ("id", LONGEST_ID)):
                    if (length := len(getattr(question, name))) > most:
                        raise Malformed(f"{name} has {length:,} characters, more than {most:,}")
                yield question
            except Malformed as error:
                yield Problem(record.where, str(error))


BENCHMARKS: dict[str, Benchmark] = {}


def register(name: str, title: str, **settings: Any) -> Callable[[Format], Format]:
    """Register a function as the format of a benchmark; the settings are the attributes of `Benchmark`."""

    def add(question: Format) -> Format:
        BENCHMARKS[name] = Benchmark(name, title, question, **settings)
        return question

    return add


def find_benchmark(name: str) -> Benchmark:
    """The benchmark with a name or alias; case, spaces, hyphens and underscores are ignored."""
    for benchmark in BENCHMARKS.values():
        if _folded(name) in map(_folded, (benchmark.name, benchmark.title, *benchmark.aliases)):
            return benchmark
    raise DatasetError(f"There is no benchmark {name!r}. Known are {', '.join(BENCHMARKS)} and {SAMPLE}.")


def recognize(record: Record) -> list[Benchmark]:
    """The benchmarks that a record may be of, judged by its fields; a plain question may also be the user's own."""
    likely = [each for each in BENCHMARKS.values() if each.knows(record)]
    plain = all(each.name in ("nq", "own") for each in likely)
    return [each for each in likely if plain or each.name != "own"]


def _folded(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
