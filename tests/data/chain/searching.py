"""What the tests of the chain retriever ask, and how they read what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyhop.data.chain import ChainRetriever
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.passages import Hit, Passage
from polyhop.data.pool import PassagePool

from .world import CASES

QUESTIONS = [case.question for case in CASES.values()]
GENERIC = {"director", "film", "school", "prize"}


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def over(*passages: Passage) -> ChainRetriever:
    return ChainRetriever(PassagePool(passages))


class Fixed:
    """Vectors of an index, whose cosine with any question is known by document."""

    def __init__(self, cosines: dict[int, float], source: BM25Index | PassagePool) -> None:
        self.cosines = cosines
        self.manifest = getattr(source, "manifest", None)
        self.asked: list[tuple[str, int]] = []

    def similarities(self, query: str, documents: Sequence[int]) -> Any:
        self.asked += [(query, document) for document in documents]
        return np.array([self.cosines.get(document, 0.0) for document in documents], np.float32)
