"""The hyperlinks of the passages around a question."""

from __future__ import annotations

import numpy as np

from .arrays import Floats, Hashes, Ints, place_numbers
from .store import Records, Store

# Certainty that a link means a passage: of the kinds in text, to see also and in contents; to a place, that it means
# the passage before or after it, or another of that document; to a document, that it means one that does not open it.
_KINDS = np.array([1.0, 1.0, 0.3])
_NEXT_TO, _SAME_PAGE, _WHOLE_PAGE = 0.6, 0.4, 0.6


class Hyperlinks:
    """Those of the nodes of a `Graph`, one after another.

    Attributes:
        spans: The (start, end) of each in the words of the graph.
    """

    def __init__(self) -> None:
        self._first = np.zeros(1, np.int64)  # of each node, and the end
        self.spans, self._kinds = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        self._documents, self._anchors = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self._rows = np.zeros(0, np.int64)  # of the place that each names; -1 for none

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, records: Records, size: int, store: Store) -> None:
        """Add those of further nodes, whose words begin at ``size``."""
        join, documents = np.concatenate, records.targets
        found = np.full(len(documents), -1)
        if len(found):
            # The document, which a wiki's link names in another way; then the place in it, if it is known.
            for anchors in (np.zeros_like(records.anchors), records.anchors):
                rows, which = store.placed(place_numbers(documents, anchors))
                found[which[::-1]] = rows[::-1]
                documents = np.where(found >= 0, store.documents(found.clip(0)), documents)
        self._first = join([self._first, np.cumsum(records.linked) + self._first[-1]])
        self.spans, self._kinds = join([self.spans, records.links + size]), join([self._kinds, records.kinds])
        self._documents = join([self._documents, documents])
        self._anchors = join([self._anchors, records.anchors])
        self._rows = join([self._rows, found])

    def rows(self, node: int) -> list[int]:
        """The rows of the places that a node links to."""
        rows = self._rows[self._first[node] : self._first[node + 1]]
        found: list[int] = rows[rows >= 0].tolist()
        return found

    def of(self, node: int, documents: Hashes) -> tuple[Ints, Ints]:
        """The links from a node to some documents, and which document each is."""
        links = np.arange(self._first[node], self._first[node + 1])
        link, which = np.nonzero(self._documents[links, None] == documents[None])
        return links[link], which

    def to(self, document: np.uint64, first: int) -> tuple[Ints, Ints]:
        """The links to a document from the nodes from a number on, and the node of each."""
        links = np.arange(self._first[first], len(self))
        links = links[self._documents[links] == document]
        return links, self._first.searchsorted(links, "right") - 1

    def certainty(self, links: Ints, rows: Ints) -> Floats:
        """That links mean the passages of some rows, which are in the documents that they name."""
        aims = self._rows[links]
        near = np.where(np.abs(rows - aims) <= 1, _NEXT_TO, _SAME_PAGE)
        meant = np.where(rows == aims, 1.0, np.where(self._anchors[links] > 0, near, _WHOLE_PAGE))
        found: Floats = meant * _KINDS[self._kinds[links]]
        return found
