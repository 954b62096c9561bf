"""What a chain is searched in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from ..passages import Hit, Passage
from .store import Store


class ChainSource(Protocol):
    """What a chain can be searched in: `BM25Index`, or `PassagePool` for a question's own passages."""

    k1: float
    b: float

    @property
    def store(self) -> Store:
        """The words of all passages."""
        ...

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> Self: ...

    def pinned(self) -> Self:
        """The present state of the collection, which does not change."""
        ...

    def ranking(self, query: str, k: int, offset: int = 0) -> list[tuple[int, float]]:
        """The rows of the passages of rank ``offset + 1`` to ``offset + k`` in the store, with their scores."""
        ...

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """See `Retriever.search`."""
        ...

    def stored(self, rows: Sequence[int]) -> list[Passage]:
        """The passages of some rows."""
        ...
