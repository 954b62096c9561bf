"""The errors of the data layer; each message says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pydantic import ValidationError


class PolyhopError(Exception):
    """The base class of polyhop's errors."""


class DataError(PolyhopError):
    """A corpus or questions cannot be read: a missing path, an unknown format, nothing in it, a damaged file, or (when
    strict) a bad record."""


class IndexFault(PolyhopError):
    """An index is missing, unfinished, damaged, or written by an incompatible version."""


class JavaError(PolyhopError):
    """Java is missing or too old, does not start, or was started before the process was forked."""


class Problem(NamedTuple):
    """A skipped record or file: its place (``"corpus.jsonl:17"``), the reason, and which kind of reason it is.

    Attributes:
        kind: "damaged" (it should have been read), "partial" (part of it is lost), "duplicate" (another says the
            same) or "other" (of a kind that nobody expects to be read, such as pictures).
        version: Of a file that would be skipped again (see `polyhop.data.documents.corpus.Corpus`).
        other: The id of the document that says the same.
    """

    where: str
    reason: str
    kind: Literal["damaged", "partial", "duplicate", "other"] = "damaged"
    version: str = ""
    other: str = ""


def first_error(error: ValidationError) -> str:
    """The first problem that pydantic found in a file, and its place: ``"metrics.answer_f1: Field required"``."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
