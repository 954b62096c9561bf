"""Reciprocal rank fusion of several retrievers.

    both = FusedRetriever([BM25Index("indexes/hotpotqa"), DenseIndex("indexes/hotpotqa")])
    both.search("Which studio made the film Solaris?", k=5)

Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
SIGIR 2009: a passage scores the sum of 1 / (k + rank) over the rankings that contain it. Only ranks count, so the
retrievers' scores need not be comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .lucene.searcher import adapt
from .passages import Hit, Passage, Retriever, SearchTool, check_page


class FusedRetriever(SearchTool):
    """A `Retriever` that fuses the top hits of others.

    Ties go to the retriever named first, then to the better rank. Passages are identified by id.

    Args:
        retrievers: At least one; a `LuceneSearcher` of Pyserini is one, too.
        k: Larger values flatten the differences between ranks; the paper uses 60.
        depth: Hits taken from each retriever; it finds no others.

    Raises:
        ValueError: there is no retriever, ``k`` is negative, or ``depth`` is not positive.
    """

    def __init__(self, retrievers: Sequence[Retriever], k: int = 60, depth: int = 100) -> None:
        if not retrievers:
            raise ValueError("name at least one retriever to fuse")
        if k < 0 or depth < 1:
            raise ValueError(f"k must not be negative and depth must be positive, got k={k}, depth={depth}")
        self.retrievers: tuple[Retriever, ...] = tuple(map(adapt, retrievers))
        self.k, self.depth = k, depth

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        check_page(k, offset)
        passages: dict[str, Passage] = {}
        parts: dict[str, list[float]] = {}
        for retriever in self.retrievers:
            for hit in retriever.search(query, self.depth):
                passages.setdefault(hit.passage.id, hit.passage)
                parts.setdefault(hit.passage.id, []).append(1 / (self.k + hit.rank))
        # fsum does not depend on the order of the terms, so that ties are exact.
        scores = {id: math.fsum(terms) for id, terms in parts.items()}
        best = sorted(scores, key=lambda id: -scores[id])
        return [Hit(passages[id], scores[id], rank) for rank, id in enumerate(best, 1)][offset : offset + k]
