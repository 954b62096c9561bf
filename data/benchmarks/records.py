"""Records of benchmark files: their field types, their validation with pydantic, and the registry of benchmarks.

A benchmark is a subclass of `BenchmarkQuestion` with `register` above it: the fields of a record, and the question that
they make.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StrictStr, ValidationError, model_validator

from ..errors import DatasetError, Problem
from ..passages import Passage
from ..text import clean
from .question import QuestionRecord

M = TypeVar("M", bound=BaseModel)
SAMPLE = "sample"
LONGEST_QUESTION = 20_000  # characters
LONGEST_ID = 512


class Malformed(ValueError):
    """A record that is not in the benchmark's format; the message says why."""


@dataclass(frozen=True)
class Record:
    """A JSON object with its place: a file and a line or record number, and a path inside the record."""

    fields: Mapping[str, Any]
    where: str
    path: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Mapping):
            raise Malformed(f"{self.path or 'the record'} must be an object, not {json_kind(self.fields)}")

    @property
    def place(self) -> str:
        return f"{self.where}, {self.path}" if self.path else self.where

    def has(self, *names: str) -> bool:
        """Whether any of these fields has a value."""
        return any(self.fields.get(name) is not None for name in names)

    def problem(self, error: Malformed) -> Problem:
        return Problem(self.where, f"{self.path}.{error}" if self.path else str(error))

    def parse(self, model: type[M]) -> M:
        """The record as a model."""
        try:
            return model.model_validate(self.fields)
        except ValidationError as error:
            raise Malformed(_first_error(error)) from None
        except UnicodeEncodeError:  # a message names it, and pydantic keeps messages as UTF-8
            raise Malformed("a name in it has a lone surrogate") from None

    def children(self, name: str) -> Iterator[Record | Problem]:
        """The objects in a list, and the problems of what is none."""
        rows = self.fields.get(name)
        path = f"{self.path}.{name}" if self.path else name
        if not isinstance(rows, list) or not rows:
            yield Problem(self.where, f"{path} {'is missing or empty' if not rows else 'must be a list'}")
            return
        for number, row in enumerate(rows):
            try:
                yield Record(row, self.where, f"{path}[{number}]")
            except Malformed as error:
                yield Problem(self.where, str(error))


def _bounded(question: QuestionRecord) -> QuestionRecord:
    for name, most in (("question", LONGEST_QUESTION), ("id", LONGEST_ID)):
        if (length := len(getattr(question, name))) > most:
            raise Malformed(f"{name} has {length:,} characters, more than {most:,}")
    return question


def _first_error(error: ValidationError) -> str:
    problem = error.errors()[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    kind = problem["type"]
    if kind == "missing":
        return f"{path} is missing"
    if kind == "value_error":
        return f"{path} {problem['ctx']['error']}".lstrip()
    expected = {
        "string_type": "a string",
        "int_type": "an integer",
        "bool_type": "true or false",
        "list_type": "a list",
        "model_type": "an object",
    }
    if kind in expected:
        return f"{path or 'the record'} must be {expected[kind]}, not {json_kind(problem['input'])}"
    return f"{path}: {problem['msg']}"


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


# --- field types -----------------------------------------------------------------------------------------------------


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _integer_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _list_of_strings(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise ValueError("must be a list of strings")
    return list(value)


def _not_empty(rows: list[Any]) -> list[Any]:
    if not rows:
        raise ValueError("is missing or empty")
    return rows


AnyText = Annotated[StrictStr, AfterValidator(clean)]
Text = Annotated[AnyText, AfterValidator(_not_blank)]
Id = Annotated[Text, BeforeValidator(_integer_as_text)]
Texts = Annotated[list[AnyText], BeforeValidator(_list_of_strings)]
NotEmpty = AfterValidator(_not_empty)


def table(*columns: str) -> BeforeValidator:
    """Accept every layout in which benchmarks are distributed.

    A list of objects; a list of lists, whose items are the ``columns``; an object of equally long columns, as on the
    Hugging Face hub; or any of these as a JSON string.
    """

    def rows(value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"is a string, but not of JSON: {error}") from error
        if isinstance(value, Mapping):
            return _transposed(value)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise ValueError(f"must be a list, not {json_kind(value)}")
        return [_named(row, columns, number) for number, row in enumerate(value)]

    return BeforeValidator(rows)


def _named(row: Any, columns: Sequence[str], number: int) -> Any:
    if not isinstance(row, list | tuple) or not columns:
        return row
    if len(row) != len(columns):
        raise ValueError(f"must have [{', '.join(columns)}] in each row, but row {number} has {len(row)} items")
    return dict(zip(columns, row, strict=True))


def _transposed(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not all(isinstance(column, list | tuple) for column in columns.values()):
        raise ValueError("must be a list, or an object of lists")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"has columns of different lengths: {', '.join(columns)}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class RecordModel(BaseModel):
    """The fields of an object in a record. A null counts as missing."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, Mapping) else data


# --- benchmarks ------------------------------------------------------------------------------------------------------


class BenchmarkQuestion(RecordModel):
    """A record of a benchmark: the fields of its questions."""

    benchmark: ClassVar[Benchmark]

    def to_question(self) -> QuestionRecord:
        """The question of the record; raises `Malformed` for what the field types cannot check."""
        raise NotImplementedError

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        """Whether a record may be of this benchmark, judged by its fields."""
        raise NotImplementedError

    @classmethod
    def expand(cls, records: Iterable[Record]) -> Iterator[Record | Problem]:
        """One record per question, for benchmarks that nest several in one."""
        return iter(records)


@dataclass(frozen=True)
class Benchmark:
    """A registered benchmark."""

    name: str  # on the command line and in results
    title: str  # as its authors write it
    format: type[BenchmarkQuestion] = field(repr=False)
    aliases: tuple[str, ...] = ()  # other names
    hub: str | None = None  # `OWNER/NAME[:CONFIG]` on the Hugging Face hub, if it is there
    has_contexts: bool = True  # its questions have passages of their own, so the setting `distractor` exists
    split: str = "validation"  # the hub's split to evaluate on

    def read(self, records: Iterable[Record]) -> Iterator[QuestionRecord | Problem]:
        """The questions of some records, and the problems of malformed ones."""
        for record in self.format.expand(records):
            if isinstance(record, Problem):
                yield record
                continue
            try:
                yield _bounded(replace(record.parse(self.format).to_question(), where=record.place))
            except Malformed as error:
                yield record.problem(error)

    def recognizes(self, record: Record) -> bool:
        return self.format.recognizes(record)


BENCHMARKS: dict[str, Benchmark] = {}
B = TypeVar("B", bound=type[BenchmarkQuestion])


def register(name: str, title: str, **settings: Any) -> Callable[[B], B]:
    """Register a record class as a benchmark; the settings are the attributes of `Benchmark`."""

    def add(format: B) -> B:
        BENCHMARKS[name] = Benchmark(name, title, format, **settings)
        return format

    return add


def find_benchmark(name: str) -> Benchmark:
    """The benchmark with a name or alias; case, spaces, hyphens and underscores are ignored."""
    for benchmark in BENCHMARKS.values():
        if _folded(name) in {_folded(known) for known in (benchmark.name, benchmark.title, *benchmark.aliases)}:
            return benchmark
    raise DatasetError(f"There is no benchmark {name!r}. Known are {', '.join(BENCHMARKS)} and {SAMPLE}.")


def recognize(record: Record) -> list[Benchmark]:
    """The benchmarks that a record may be of, judged by its fields; a plain question may also be the user's own."""
    likely = [each for each in BENCHMARKS.values() if each.recognizes(record)]
    plain = all(each.name in ("nq", "own") for each in likely)
    return [each for each in likely if plain or each.name != "own"]


def _folded(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


class PassageRecord(RecordModel):
    """A passage as people write it: ``{id?, title?, text}`` or ``{id?, title?, sentences}``."""

    id: Id | None = None
    title: AnyText = ""
    text: Text | None = None
    sentences: Texts | None = None

    @model_validator(mode="before")
    @classmethod
    def _beir_id(cls, data: Any) -> Any:
        return {"id": data.get("_id"), **data} if isinstance(data, Mapping) and data.get("id") is None else data

    def to_passage(self) -> Passage:
        if self.sentences is not None:
            return Passage.of(self.title, sentences=self.sentences, id=self.id)
        if self.text is None:
            raise Malformed("text is missing")
        return Passage.of(self.title, self.text, id=self.id)
