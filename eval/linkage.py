"""How the documents of an index are tied, and which retriever suits them.

The chain retriever goes from one document to the next by hyperlinks and names. Where documents have none, or where the
documents that a question needs are not tied, it can only rank words, as BM25 does. `linkage_of` counts the ties of an
index; `trial_of` tries the retrievers on questions with gold passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import sqrt
from typing import Any

import dspy
import numpy as np

from ..data.chain import ChainRetriever
from ..data.chain.arrays import Bools, Hashes, Ints, hash_runs, spread
from ..data.chain.reading import STARTS, document_number, without_flags
from ..data.chain.store import Store
from ..data.passages import one_a_document
from .gold import gold_facts
from .statistics import Comparison, compare

SAMPLE = 5_000  # passages
CUTOFF = 5  # of the trial
CHAIN, BM25, BY_DOCUMENT = "chain", "bm25", "bm25, one hit a document"

_BATCH = 500  # passages read together
_LONGEST_TITLE = 7  # words of a title or alias that is looked for
_TIED = 0.2  # share of tied documents from which on the chain has enough to follow
_POWER = 1.96 + 0.84  # standard errors of a difference that a test at 5% shows in 80% of all samples


@dataclass(frozen=True)
class Linkage:
    """The ties of an index, from whole documents drawn by chance.

    Attributes:
        passages, documents: Of the index.
        sampled: The documents drawn.
        linking: The share of them with a hyperlink to another document of the index.
        linked: The share that a hyperlink of another document leads to.
        mentioned: The share whose title or alias (as the chain retriever knows them) another document mentions.
        tied: The share of which one of the three is true.

    `linked`, `mentioned` and `tied` are lower bounds if not all documents were drawn: the others may link to them, too.
    """

    passages: int
    documents: int
    sampled: int
    linking: float
    linked: float
    mentioned: float
    tied: float

    @property
    def retriever(self) -> str:
        """What the ties speak for; only questions can tell."""
        return CHAIN if self.tied >= _TIED else BM25


@dataclass(frozen=True)
class Trial:
    """Retrievers on questions with gold documents.

    Attributes:
        questions: Those with gold documents in the index.
        without: Those without.
        pairs: Pairs of gold documents of one question.
        linked, tied: The shares of pairs tied by a hyperlink, and by that or by a title; NaN without pairs.
        recall, all_gold: The means of each retriever: Recall@5 by document, and all gold documents among five hits.
        versus: Chain against the better of the two others, by recall, question by question.
        better: That other.
    """

    questions: int
    without: int
    pairs: int
    linked: float
    tied: float
    recall: Mapping[str, float]
    all_gold: Mapping[str, float]
    versus: Comparison
    better: str
    smallest: float  # the least difference in recall that so many questions show in 80% of all cases

    @property
    def retriever(self) -> str | None:
        """The one to use; None if the test shows no clear difference."""
        if self.versus.p_permutation >= 0.05:
            return None
        return CHAIN if self.versus.difference.mean > 0 else self.better


def linkage_of(store: Store, sample: int = SAMPLE) -> Linkage:
    """The ties of at most so many passages, or of the first document if that is longer."""
    if not len(store):
        raise ValueError("the index is empty")
    document = store.documents(np.arange(len(store)))
    numbers, sizes = np.unique(document, return_counts=True)  # hashes, so their order is one by chance
    drawn = numbers[: max(1, int(np.searchsorted(np.cumsum(sizes), sample, "right")))]
    links, mentions = _ties(store, np.flatnonzero(document <= drawn[-1]))

    def share(*found: Hashes) -> float:
        return len(np.intersect1d(drawn, np.concatenate(found))) / len(drawn)

    return Linkage(
        len(store),
        len(numbers),
        len(drawn),
        share(links[:, 0]),
        share(links[:, 1]),
        share(mentions[:, 1]),
        share(links.ravel(), mentions[:, 1]),
    )


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
    wanted, shares, without = list[list[str]](), list[list[float]](), 0
    for example in questions:
        known = [each for fact in gold_facts(example) for each in index.named(fact.title) if fact.passage.matches(each)]
        gold = list(dict.fromkeys(passage.document for passage in known))
        if not gold:
            without += 1
            continue
        wanted.append(gold)
        found = [{hit.passage.document for hit in search(example.question, CUTOFF)} for search in searches.values()]
        shares.append([len(each & set(gold)) / len(gold) for each in found])
    if not wanted:
        raise ValueError("no question has a gold document in the index")
    columns = dict(zip(searches, np.array(shares).T, strict=True))
    recall = {name: float(column.mean()) for name, column in columns.items()}
    better = max((BY_DOCUMENT, BM25), key=recall.__getitem__)
    differences = columns[CHAIN] - columns[better]
    deviation = float(differences.std(ddof=1)) if len(wanted) > 1 else float("nan")
    pairs, linked, tied = _tied_pairs(index.store, wanted)
    return Trial(
        len(wanted),
        without,
        pairs,
        linked,
        tied,
        recall,
        {name: float((column == 1).mean()) for name, column in columns.items()},
        compare(columns[CHAIN].tolist(), columns[better].tolist()),
        better,
        _POWER * deviation / sqrt(len(wanted)),
    )


def _tied_pairs(store: Store, gold: Sequence[Sequence[str]]) -> tuple[int, float, float]:
    """The number of pairs, the share tied by hyperlinks, and that tied at all."""
    number = {name: document_number(name.replace("#", "%23")) for names in gold for name in names}
    document = store.documents(np.arange(len(store)))
    links, mentions = _ties(store, np.flatnonzero(np.isin(document, np.array(list(number.values()), np.uint64))))
    linked, named = ({frozenset(pair) for pair in ties.tolist()} for ties in (links, mentions))
    pairs = [frozenset((number[a], number[b])) for names in gold for a, b in combinations(names, 2)]
    if not pairs:
        return 0, float("nan"), float("nan")
    return (
        len(pairs),
        sum(pair in linked for pair in pairs) / len(pairs),
        sum(pair in linked or pair in named for pair in pairs) / len(pairs),
    )


def _ties(store: Store, rows: Ints) -> tuple[Hashes, Hashes]:
    """The (source, target) numbers of documents tied by the hyperlinks, and by the mentioned titles, of some rows."""
    found = [_ties_of(store, rows[at : at + _BATCH]) for at in range(0, len(rows), _BATCH)]
    empty = np.zeros((0, 2), np.uint64)
    links, mentions = (np.unique(np.concatenate([empty, *ties]), axis=0) for ties in zip(*found, strict=True))
    return links, mentions


def _ties_of(store: Store, rows: Ints) -> tuple[Hashes, Hashes]:
    records = store.records(rows.tolist())
    source, words = store.documents(rows), without_flags(records.words)
    target, which = store.placed(records.targets)
    links = _between(store, source.repeat(records.linked)[which], target)
    own = records.titles[:, 0] + 1 + np.where(records.files > 0, records.files + 1, 0)
    starts = (records.words & STARTS) > 0
    starts[spread(np.cumsum(records.sizes) - records.sizes, np.minimum(own, records.sizes))] = False
    hashes, place = _titles_in(store, words, starts)
    target, which = store.titled(hashes)
    return links, _between(store, source.repeat(records.sizes)[place[which]], target)


def _between(store: Store, source: Hashes, rows: Ints) -> Hashes:
    """Pairs of different documents."""
    found: Hashes = np.stack([source, store.documents(rows)], axis=1)
    different: Hashes = found[found[:, 0] != found[:, 1]]
    return different


def _titles_in(store: Store, words: Any, inside: Bools) -> tuple[Hashes, Ints]:
    """The titles among the runs of words within a sentence that begin at one of some words, and where they begin."""
    padded = np.append(words, np.zeros(_LONGEST_TITLE, np.uint32))
    inside = inside & (words > 0)
    hashes, places = [], []
    for length, found in enumerate(hash_runs(words, _LONGEST_TITLE), 1):
        inside = inside & (padded[length - 1 : length - 1 + len(words)] > 0)
        first = np.flatnonzero(inside)
        first = first[store.has_titles(found[first])]
        hashes.append(found[first])
        places.append(first)
    return np.concatenate(hashes), np.concatenate(places)
