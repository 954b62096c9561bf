"""What the tests of the chain retriever ask, and how they read what it finds."""

from __future__ import annotations

from collections.abc import Sequence

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Hit, Passage
from polyhop.data.pool import PassagePool

from .world import CASES

QUESTIONS = [case.question for case in CASES.values()]
GENERIC = {"director", "film", "school", "prize"}


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def over(*passages: Passage) -> ChainRetriever:
    return ChainRetriever(PassagePool(passages))
