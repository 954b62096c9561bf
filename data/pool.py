"""A question's own pool: the retriever over the handful of passages that a benchmark hands out with a question.

BM25 as Lucene computes it (`ln(1 + (N - n + 0.5) / (n + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean))`), with
the statistics of the pool itself, in plain Python: no index, no Java, microseconds for ten passages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .lucene.layout import title_terms
from .passages import Hit, Passage
from .text import clean, terms


class PassagePool:
    """A `Retriever` over a few passages held in memory. Immutable, so any thread may search it.

    Unlike an index it ranks *every* passage: those that share no word with the query come last, in their given order,
    with score 0, because a pool is meant to be read whole.

    Args:
        passages: The pool; of passages with the same id the first counts.
        k1: Term-frequency saturation.
        b: Length normalisation, 0 to 1.
    """

    def __init__(self, passages: Iterable[Passage], k1: float = 0.9, b: float = 0.4) -> None:
        unique: dict[str, Passage] = {}
        for passage in passages:
            unique.setdefault(passage.id, passage)
        self.passages: tuple[Passage, ...] = tuple(unique.values())
        self._counts = [Counter(terms(f"{passage.title}\n{passage.text}")) for passage in self.passages]
        self._lengths = [counts.total() for counts in self._counts]
        self._holders: dict[str, list[int]] = {}  # the passages that have a term, by their places
        for place, counts in enumerate(self._counts):
            for term in counts:
                self._holders.setdefault(term, []).append(place)
        self.k1, self.b = k1, b

    def __len__(self) -> int:
        return len(self.passages)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> PassagePool:
        """The same pool under other BM25 parameters."""
        other = object.__new__(PassagePool)
        other.__dict__.update(self.__dict__)
        other.k1 = self.k1 if k1 is None else k1
        other.b = self.b if b is None else b
        return other

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        if k <= 0 or offset < 0:
            raise ValueError(f"k must be positive and offset not negative, got k={k}, offset={offset}")
        scores = self._scores(Counter(terms(clean(query))))
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[offset : offset + k]
        return [Hit(self.passages[i], scores[i], rank) for rank, i in enumerate(order, offset + 1)]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [self.search(query, k) for query in queries]

    def entitled(self, keys: Iterable[str], query: str, limit: int) -> list[Hit]:
        """The passages whose title, without its disambiguation, has one of these keys (see `title_key`): titles of
        more words first, for they say more, and among those the passages that fit the query."""
        wanted = frozenset(keys) - {""}  # what has no title has no key
        titled = [(title_terms(hit.passage.title)[1], hit) for hit in self.search(query, len(self) or 1)]
        found = sorted((pair for pair in titled if pair[0] in wanted), key=lambda pair: -pair[0].count(" "))
        return [replace(hit, rank=rank) for rank, (_, hit) in enumerate(found[:limit], 1)]

    def frequency(self, word: str) -> int:
        """The number of passages that have the word; all of them for a stop word."""
        return min((len(self._holders.get(term, ())) for term in terms(clean(word))), default=len(self))

    def _scores(self, query: Counter[str]) -> list[float]:
        size = len(self.passages)
        mean = sum(self._lengths) / size if size else 0.0
        scores = [0.0] * size
        for term, count in query.items():
            holders = self._holders.get(term, ())
            weight = count * math.log(1 + (size - len(holders) + 0.5) / (len(holders) + 0.5))
            for place in holders:
                tf = self._counts[place][term]
                norm = self.k1 * (1 - self.b + self.b * self._lengths[place] / mean)
                scores[place] += weight * tf / (tf + norm)
        return scores
