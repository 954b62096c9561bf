"""Which passages a question leads to, and what ties them together: all of it that does not depend on weights.

So a graph can be kept while weights are tuned, and what was searched once is not searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import NamedTuple, Protocol, Self

from ..passages import Hit, Passage
from .question import Question
from .reading import Name, Reading

_POOL = 50  # passages that the question itself finds
_ENTITLED = 15  # passages found by title at a time
_SHARING = 10  # passages found by the names that a passage mentions
_NAMES = 8  # names of a passage that are searched for, the rarest
_LOWER_CASE = 0.4  # certainty that a name without capitals is meant: "his father" is not the page "Father"
_MOST_TITLES = 1000  # runs of words of one passage that are looked up


class Source(Protocol):
    """What a chain can be followed through: `BM25Index`, or `PassagePool` for a question's own passages."""

    k1: float
    b: float

    def __len__(self) -> int: ...

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> Self: ...

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]: ...

    def entitled(self, keys: Iterable[str], query: str, limit: int) -> list[Hit]:
        """The passages whose title, without its disambiguation, has one of these keys (see `title_key`): titles of
        more words and rarer ones before others, for they say more, and those that fit the query."""
        ...

    def frequency(self, word: str) -> int:
        """The number of passages that have the word; all of them for a stop word."""
        ...


class Via(StrEnum):
    """Why a passage belongs to a chain."""

    words = "words"  # it has words of the question
    named = "named"  # the question names it
    link = "link"  # a chosen passage mentions it
    back = "back"  # it mentions a chosen passage
    shared = "shared"  # it mentions a name that a chosen passage mentions


class Named(NamedTuple):
    """A title in the question: in which form, how certainly the form means the passage, and where, in characters."""

    name: Name
    certainty: float
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage as the question sees it.

    Attributes:
        bm25: Its score as a share of the best passage's; 0 if the question did not find it.
        mask: The question's words in it.
        sentences: The same of each sentence, with the words of the title.
        named: Where the question names it, if it does.
        similarity: The cosine with the question; 0 where there are no vectors.
    """

    reading: Reading
    bm25: float
    mask: int
    sentences: frozenset[int]
    named: Named | None
    similarity: float

    @property
    def id(self) -> str:
        return self.reading.passage.id


class Tie(NamedTuple):
    """What connects a chosen passage with a candidate.

    Attributes:
        name: What one mentions and the other bears or mentions too.
        certainty: That the mention means the passage.
        asked: Whether the question has the name itself, so that the tie tells less.
        cue: The question's words in the sentence of the mention.
        in_title: Whether the name stands in the candidate's title.
    """

    via: Via
    name: Name
    certainty: float
    asked: bool
    cue: int
    in_title: bool


class Graph:
    """What a question, and passages chosen for it, lead to. Searches once for each.

    Args:
        question: The question.
        source: Where to search.
        read: Analyses a passage; may remember.
        similarities: The cosines of the question with some passages, if there are vectors.
    """

    def __init__(
        self,
        question: Question,
        source: Source,
        read: Callable[[Passage], Reading],
        similarities: Callable[[list[Hit]], Sequence[float]] | None = None,
    ) -> None:
        self.question = question
        self._source, self._read, self._similarities = source, read, similarities
        self._best = 0.0  # BM25 score
        self._start: list[Candidate] | None = None
        self._candidates: dict[str, Candidate] = {}
        self._around: dict[str, list[Candidate]] = {}
        self._ties: dict[tuple[str, str], tuple[Tie, ...]] = {}
        self._mentioned: dict[str, tuple[Name, ...]] = {}

    def start(self) -> list[Candidate]:
        """The passages that the question finds, and those that it names."""
        if self._start is None:
            hits = self._source.search(self.question.text, _POOL)
            self._best = hits[0].score if hits else 0.0
            titled = self._entitled(self.question.title_candidates)
            self._start = self._seen(hits, self._best) + self._seen(titled)
        return self._start

    def beyond(self, depth: int) -> list[Candidate]:
        """The passages that the question finds further down, in their order: not candidates, or a ranking would depend
        on how much of it is asked for."""
        if depth <= _POOL:
            return []
        return self._seen(self._source.search(self.question.text, depth - _POOL, _POOL), self._best)

    def around(self, chosen: Candidate) -> list[Candidate]:
        """The passages that a passage leads to: whose titles it mentions, or that mention what it mentions and have
        words of the question that it lacks."""
        if (found := self._around.get(chosen.id)) is None:
            hits = self._entitled(chosen.reading.title_candidates[:_MOST_TITLES])
            names = sorted(self._unasked(chosen.reading), key=lambda name: -self.question.rarity(name))[:_NAMES]
            if names:
                missing = self.question.words(self.question.everything & ~chosen.mask)
                hits += self._source.search(" ".join((*(name.key for name in names), *missing)), _SHARING)
            found = self._around[chosen.id] = self._seen(hits)
        return found

    def _entitled(self, keys: Sequence[str]) -> list[Hit]:
        return self._source.entitled(keys, self.question.text, _ENTITLED)

    def ties(self, chosen: Candidate, other: Candidate) -> tuple[Tie, ...]:
        """All that connects a chosen passage with a candidate."""
        pair = chosen.id, other.id
        if (found := self._ties.get(pair)) is None:
            found = self._ties[pair] = tuple(self._connections(chosen.reading, other.reading))
        return found

    def _connections(self, chosen: Reading, other: Reading) -> Iterator[Tie]:
        if chosen.title_key != other.title_key or not other.names:
            for name, certainty in other.names:
                if chosen.mentions(name):
                    sure = certainty * (1.0 if chosen.capitalises(name) else _LOWER_CASE)
                    yield Tie(Via.link, name, sure, self.question.has(name), self._cue(chosen, name), True)
                    break
            for name, certainty in chosen.names:
                if other.mentions(name):
                    sure = certainty * (1.0 if other.capitalises(name) else _LOWER_CASE)
                    yield Tie(Via.back, name, sure, self.question.has(name), self._cue(other, name), False)
                    break
        for name in self._unasked(chosen):
            in_title = other.is_about(name)
            if in_title or other.mentions(name):
                yield Tie(Via.shared, name, 1.0, False, self._cue(other, name), in_title)

    def _unasked(self, reading: Reading) -> tuple[Name, ...]:
        """The names that a passage mentions and the question does not."""
        id = reading.passage.id
        if (found := self._mentioned.get(id)) is None:
            found = tuple(name for name in reading.mentioned if not self.question.has(name))
            self._mentioned[id] = found
        return found

    def _cue(self, reading: Reading, name: Name) -> int:
        """The question's words beside a mention; of several mentions, beside the one that has most."""
        masks = [self.question.mask(stems) for key, stems in reading.sentences if name.key in key]
        return max(masks, key=self.question.worth, default=0)

    def _seen(self, hits: Iterable[Hit], best: float = 0.0) -> list[Candidate]:
        """The candidates of some hits; their scores count if ``best``, the score of the best of all, is given."""
        unique: dict[str, Hit] = {}
        for hit in hits:
            unique.setdefault(hit.passage.id, hit)
        new = [hit for id, hit in unique.items() if id not in self._candidates]
        similarities = self._similarities(new) if self._similarities and new else [0.0] * len(new)
        for hit, similarity in zip(new, similarities, strict=True):
            bm25 = hit.score / best if best else 0.0
            self._candidates[hit.passage.id] = self._candidate(self._read(hit.passage), bm25, similarity)
        return [self._candidates[id] for id in unique]

    def _candidate(self, reading: Reading, bm25: float, similarity: float) -> Candidate:
        question = self.question
        subject = question.mask(reading.subject)
        sentences = frozenset(question.mask(stems) | subject for _, stems in reading.sentences)
        whole = reduce(or_, sentences, subject)
        for name, certainty in reading.names:
            if place := question.place(name):
                sure = certainty * (1.0 if question.capitalised(place) else _LOWER_CASE)
                named = Named(name, sure, place)
                return Candidate(reading, bm25, whole, sentences or frozenset({subject}), named, similarity)
        return Candidate(reading, bm25, whole, sentences or frozenset({subject}), None, similarity)
