"""BM25 over a question's own passages, in memory.

The formula is Lucene's, `ln(1 + (N - n + 0.5) / (n + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean))`, with the
statistics of the pool. It needs no index and no Java, and takes microseconds for ten passages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from .chain.store import Store
from .chain.words import folded
from .languages import ENGLISH, function_words, language_of, stem
from .passages import Hit, Passage, SearchTool, check_page
from .text import clean, terms, with_code_parts

_SAMPLED, _SAMPLE = 10, 100  # passages that tell the language of a pool, by so many characters


class PassagePool(SearchTool):
    """An immutable `Retriever` over a few passages in memory.

    Unlike an index it ranks every passage: those without a word of the query come last, in their given order, with
    score 0.

    Args:
        passages: The pool; of passages with the same id the first is used.
        k1: Term-frequency saturation.
        b: Length normalization, 0 to 1.
    """

    def __init__(self, passages: Iterable[Passage], k1: float = 0.9, b: float = 0.4) -> None:
        unique: dict[str, Passage] = {}
        for passage in passages:
            unique.setdefault(passage.id, passage)
        sample = [passage.text[:_SAMPLE] for passage in islice(unique.values(), _SAMPLED)]
        self.language = language_of(" ".join(sample))
        self.passages: tuple[Passage, ...] = tuple(
            passage if self.language == ENGLISH else replace(passage, language=self.language)
            for passage in unique.values()
        )
        self._counts = [Counter(self._terms(passage.searched)) for passage in self.passages]
        self._lengths = [counts.total() for counts in self._counts]
        self._holders: dict[str, list[int]] = {}  # positions of the passages with a term
        for place, counts in enumerate(self._counts):
            for term in counts:
                self._holders.setdefault(term, []).append(place)
        self.k1, self.b = k1, b
        self._stores: list[Store] = []  # of all views, once it is needed

    def __len__(self) -> int:
        return len(self.passages)

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.passages)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> PassagePool:
        """The same pool with other BM25 parameters."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.k1 = self.k1 if k1 is None else k1
        other.b = self.b if b is None else b
        return other

    def pinned(self) -> PassagePool:
        return self

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        check_page(k, offset)
        ranking = enumerate(self.ranking(query, k, offset), offset + 1)
        return [Hit(self.passages[i], score, rank) for rank, (i, score) in ranking]

    def named(self, name: str) -> list[Passage]:
        """The passages with a title, an id or a document, as `BM25Index.named` finds them."""
        return [passage for passage in self.passages if name in (passage.title, passage.id, passage.document)]

    @property
    def store(self) -> Store:
        """The words of the passages, for the chain retriever; read once for all views."""
        if not self._stores:
            self._stores.append(Store.of(self.passages, (self.language,)))
        return self._stores[0]

    def ranking(self, query: str, k: int, offset: int = 0) -> list[tuple[int, float]]:
        """The positions in `passages` and the scores of what `search` finds."""
        size = len(self.passages)
        mean = sum(self._lengths) / size if size else 0.0
        scores = [0.0] * size
        for term, count in Counter(self._terms(with_code_parts(clean(query)))).items():
            holders = self._holders.get(term, ())
            weight = count * math.log(1 + (size - len(holders) + 0.5) / (len(holders) + 0.5))
            for place in holders:
                tf = self._counts[place][term]
                norm = self.k1 * (1 - self.b + self.b * self._lengths[place] / mean)
                scores[place] += weight * tf / (tf + norm)
        return sorted(enumerate(scores), key=lambda ranked: -ranked[1])[offset : offset + k]

    def _terms(self, text: str) -> list[str]:
        """As Lucene has them for English; of other languages the stems that the chain retriever compares."""
        if self.language == ENGLISH:
            return terms(text)
        function = function_words(self.language)
        return [stem(form, self.language) for form in folded(text) if form not in function]

    def stored(self, rows: Sequence[int]) -> list[Passage]:
        return [self.passages[row] for row in rows]
