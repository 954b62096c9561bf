"""What a corpus says, passage by passage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyhop.data.documents.corpus import Entry
from polyhop.data.passages import Passage


def placed(entries: Iterable[Entry]) -> Iterator[tuple[Passage, str]]:
    """The passages with their places."""
    for entry in entries:
        for passage in entry.passages or ():
            yield passage, entry.where
