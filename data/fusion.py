"""Reciprocal rank fusion: one ranking of several.

    both = FusedRetriever([BM25Index("indexes/hotpotqa"), DenseIndex("indexes/hotpotqa")])
    both.search("Which studio made the film Solaris?", k=5)

Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
SIGIR 2009: a passage scores the sum of 1 / (k + rank) over the rankings that have it. Scores of retrievers need not be
comparable, for only ranks count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .passages import Hit, Passage, Retriever


class FusedRetriever:
    """A `Retriever` that fuses the top of what others find. Any thread may use it if any thread may use them.

    Ties go to the retriever named first, and within one to the better rank.

    Args:
        retrievers: At least one. A passage is known by its id.
        k: How little the first ranks stand out; 60 is the paper's.
        depth: How many hits of each retriever count. There are no others, whatever is asked for.

    Raises:
        ValueError: there is no retriever, ``k`` is negative, or ``depth`` is not positive.
    """

    def __init__(self, retrievers: Sequence[Retriever], k: int = 60, depth: int = 100) -> None:
        if not retrievers:
            raise ValueError("name at least one retriever to fuse")
        if k < 0 or depth < 1:
            raise ValueError(f"k must not be negative and depth must be positive, got k={k}, depth={depth}")
        self.retrievers = tuple(retrievers)
        self.k, self.depth = k, depth

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        if k <= 0 or offset < 0:
            raise ValueError(f"k must be positive and offset not negative, got k={k}, offset={offset}")
        return self._fused([retriever.search(query, self.depth) for retriever in self.retrievers])[offset : offset + k]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k <= 0:
            raise ValueError(f"k must be positive, got k={k}")
        found = [retriever.search_many(queries, self.depth) for retriever in self.retrievers]
        return [self._fused(rankings)[:k] for rankings in zip(*found, strict=True)]

    def _fused(self, rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
        passages: dict[str, Passage] = {}
        parts: dict[str, list[float]] = {}
        for ranking in rankings:
            for hit in ranking:
                passages.setdefault(hit.passage.id, hit.passage)
                parts.setdefault(hit.passage.id, []).append(1 / (self.k + hit.rank))
        # fsum: the same ranks make the same score in whatever order they come, so that ties are ties.
        scores = {id: math.fsum(terms) for id, terms in parts.items()}
        best = sorted(scores, key=lambda id: -scores[id])
        return [Hit(passages[id], scores[id], rank) for rank, id in enumerate(best, 1)]
