"""The errors of the data layer; each message says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pydantic import ValidationError


class PolyhopError(Exception):
    """The base class of polyhop's errors."""


class CorpusError(PolyhopError):
    """A corpus cannot be read: a missing path, an unknown format, no passage in it, or (when strict) a bad record."""


class DatasetError(PolyhopError):
    """Questions cannot be read: an unknown benchmark, a missing or damaged file, or (when strict) a bad record."""


class IndexFault(PolyhopError):
    """An index is missing, unfinished, damaged, or written by an incompatible version."""


class JavaError(PolyhopError):
    """Java is missing or too old, does not start, or was started before the process was forked."""


class Problem(NamedTuple):
    """A skipped record: its place (``"corpus.jsonl:17"``) and the reason."""

    where: str
    reason: str


def first_error(error: ValidationError) -> str:
    """The first problem that pydantic found in a file, and its place: ``"metrics.answer_f1: Field required"``."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
