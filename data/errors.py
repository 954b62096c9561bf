"""The errors of the data layer. Each message says what to do; none hides its cause."""

from __future__ import annotations

from typing import NamedTuple


class PolyhopError(Exception):
    """The base of every error that polyhop raises on purpose."""


class CorpusError(PolyhopError):
    """A corpus cannot be read: a missing path, an unknown format, no passage in it, or (when strict) a bad record."""


class DatasetError(PolyhopError):
    """Questions cannot be read: an unknown benchmark, a missing or damaged file, or (when strict) a bad record."""


class IndexFault(PolyhopError):
    """An index is missing, unfinished, damaged, or written by an incompatible version."""


class JavaError(PolyhopError):
    """Java is missing or too old, the virtual machine does not start, or the process was forked after it had."""


class Problem(NamedTuple):
    """A record that was left out: where it stands (``"corpus.jsonl:17"``) and why."""

    where: str
    reason: str
