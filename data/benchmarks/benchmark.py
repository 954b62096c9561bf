"""What a benchmark is to the loader, and the steps that most benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from ..errors import Problem
from .question import Question
from .record import Malformed, Record

T = TypeVar("T")
Read = Callable[[Iterable[Record]], Iterator[Question | Problem]]


@dataclass(frozen=True)
class Benchmark:
    """How to read one benchmark.

    Attributes:
        name: As it is written on the command line and in results.
        title: As its authors write it.
        aliases: Other names it goes by.
        hub: Where it lies on the Hugging Face hub: ``OWNER/NAME[:CONFIG]``; None if it does not.
        split: The hub's split to evaluate on.
        recognises: Whether a record may be of this benchmark, judged by its fields.
        read: Makes questions of records, and problems of those that are malformed.
        has_contexts: Its questions come with passages of their own, so that the setting ``distractor`` exists.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    hub: str | None
    recognises: Callable[[Record], bool]
    read: Read
    has_contexts: bool = True
    split: str = "validation"


def one_each(read: Callable[[Record], Question], document: str | None = None) -> Read:
    """The reader of a benchmark whose records are questions, or documents with a list of questions under that name."""

    def read_all(records: Iterable[Record]) -> Iterator[Question | Problem]:
        for record in records:
            if document and record.has(document):
                yield from descend(record, document, lambda row: iter([attempt(read, row)]))
            else:
                yield attempt(read, record)

    return read_all


def attempt(read: Callable[[Record], Question], record: Record) -> Question | Problem:
    """The question that a record holds, or what is wrong with it."""
    try:
        return replace(read(record), where=record.place)
    except Malformed as error:
        return Problem(record.where, str(error))


def descend(record: Record, name: str, inner: Callable[[Record], Iterator[T]]) -> Iterator[T | Problem]:
    """Whatever ``inner`` makes of the objects in a list that the record must have."""
    try:
        rows = record.rows(name)
        if not rows:
            raise record.error(name, "is missing or empty")
    except Malformed as error:
        yield Problem(record.where, str(error))
        return
    for row in rows:
        yield from inner(row)
