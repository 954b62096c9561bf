"""How the documents of an index are tied, and which retriever suits them.

The chain retriever goes from one document to the next by hyperlinks and names. Where documents have none, or where the
documents that a question needs are not tied, it can only rank words, as BM25 does. `linkage_of` counts the ties of an
index; `trial_of` tries the retrievers on questions with gold passages.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import dspy
import numpy as np

from ..data.chain import ChainRetriever
from ..data.chain.store import Store
from ..data.chain.words import STARTS, place_numbers, without_flags
from ..data.passages import one_a_document
from .gold import gold_facts
from .statistics import Comparison, compare

CUTOFF = 5  # of the trial
CHAIN, BM25, BY_DOCUMENT = "chain", "bm25", "bm25, one hit a document"

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


class Trial(NamedTuple):
    """Retrievers on questions with gold documents."""

    questions: int  # those with gold documents in the index
    without: int  # those without, though they can be answered
    recall: dict[str, float]  # the mean Recall@5 of each retriever, by document
    all_gold: dict[str, float]  # how often all gold documents are among five hits
    better: str  # the better retriever beside chain
    versus: Comparison  # chain against it, by recall, question by question

    @property
    def retriever(self) -> str | None:
        """The one to use; None if the test shows no clear difference."""
        if self.versus.p_permutation >= 0.05:
            return None
        return CHAIN if self.versus.difference.mean > 0 else self.better


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


def trial_of(questions: Iterable[dspy.Example], index: Any) -> Trial:
    """Try BM25 and the chain retriever.

    Args:
        index: A `BM25Index`.

    Raises:
        ValueError: no question has a gold document in the index.
    """
    searches = {
        CHAIN: ChainRetriever(index).search,
        BM25: index.search,
        BY_DOCUMENT: partial(one_a_document, index.search),
    }
    shares, without = list[list[float]](), 0
    for example in questions:
        known = [each for fact in gold_facts(example) for each in index.named(fact.title) if fact.passage.matches(each)]
        if gold := {passage.document for passage in known}:
            found = ({hit.passage.document for hit in search(example.question, CUTOFF)} for search in searches.values())
            shares.append([len(each & gold) / len(gold) for each in found])
        elif example.get("answerable") is not False:
            without += 1
    if not shares:
        raise ValueError("no question has a gold document in the index")
    columns = dict(zip(searches, np.array(shares).T, strict=True))
    recall = {name: float(column.mean()) for name, column in columns.items()}
    better = max((BY_DOCUMENT, BM25), key=recall.__getitem__)
    versus = compare(columns[CHAIN].tolist(), columns[better].tolist())
    all_gold = {name: float((column == 1).mean()) for name, column in columns.items()}
    return Trial(len(shares), without, recall, all_gold, better, versus)
