"""How the documents of an index are tied, and which retriever that speaks for.

The chain retriever goes from one document to the next by hyperlinks and names. Where documents have none, it can only
rank words, as BM25 does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.chain.store import Store
from ..data.chain.words import STARTS, place_numbers, without_flags

CHAIN, BM25 = "chain", "bm25"

_BATCH = 500  # passages read together
_LONGEST_TITLE = 7  # words of a title or alias that is looked for
_TIED = 0.2  # share of tied documents from which on the chain has enough to follow


class Linkage(NamedTuple):
    """The ties of an index, from whole documents drawn by chance; lower bounds if not all documents were drawn, since
    the others may link to them, too."""

    passages: int  # of the index
    documents: int
    sampled: int  # documents
    linking: float  # the share of them with a hyperlink to another document of the index
    linked: float  # the share that a hyperlink of another document leads to
    mentioned: float  # the share whose title or alias (as the chain retriever knows them) another document mentions
    tied: float  # the share of which one of the three is true

    @property
    def retriever(self) -> str:
        """What the ties speak for; only questions can tell."""
        return CHAIN if self.tied >= _TIED else BM25


def linkage_of(store: Store, sample: int = 5_000) -> Linkage:
    """The ties of at most so many passages, or of the first document if that is longer."""
    there = store.documents[store.documents > 0]
    if not len(there):
        raise ValueError("the index is empty")
    numbers, sizes = np.unique(there, return_counts=True)  # hashes, so their order is one by chance
    drawn = numbers[: max(1, int(np.searchsorted(np.cumsum(sizes), sample, "right")))]
    rows = np.flatnonzero((store.documents > 0) & (store.documents <= drawn[-1])).tolist()
    linking, linked, mentioned = set[int](), set[int](), set[int]()
    for at in range(0, len(rows), _BATCH):
        records = store.records(rows[at : at + _BATCH])
        links, words = records.links, without_flags(records.words)
        source = records.documents.repeat(records.linked)
        target, which = store.find(place_numbers(links["document"], 0))
        other = store.documents[target] != source[which]
        linking |= set(source[which][other].tolist())
        linked |= set(store.documents[target][other].tolist())
        target, spans = store.titles_in(words, (records.words & STARTS) > 0, _LONGEST_TITLE)
        source = records.documents.repeat(records.sizes)[spans[:, 0]]
        mentioned |= set(store.documents[target][store.documents[target] != source].tolist())
    known = set(drawn.tolist())
    shares = [len(each & known) / len(known) for each in (linking, linked, mentioned, linking | linked | mentioned)]
    return Linkage(len(there), len(numbers), len(known), *shares)
