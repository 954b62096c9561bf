"""The passages that a question leads to and the edges between them: everything that does not depend on weights.

A graph can be kept while weights are tuned, so that nothing is searched twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import NamedTuple, Protocol, Self

from ..passages import Hit, Passage
from .features import NameKey, PassageFeatures, QuestionFeatures

_QUESTION_HITS = 50
_TITLE_HITS = 15  # passages found by title per look-up
_NAME_HITS = 10  # passages found by the names that a passage mentions
_NAMES = 8  # names of a passage to search for, the rarest
_LOWER_CASE = 0.4  # certainty of a name without capitals: "his father" is not the page "Father"
_MOST_TITLES = 1000  # runs of words of one passage that are looked up


class ChainSource(Protocol):
    """What a chain can be searched in: `BM25Index`, or `PassagePool` for a question's own passages."""

    k1: float
    b: float

    def __len__(self) -> int: ...

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> Self: ...

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]: ...

    def search_titles(self, keys: Iterable[str], query: str, limit: int) -> list[Hit]:
        """See `BM25Index.search_titles`."""
        ...

    def document_frequency(self, word: str) -> int:
        """The number of passages that contain the word; all of them for a stop word."""
        ...


class Relation(StrEnum):
    """How a passage belongs to a chain."""

    words = "words"  # it has words of the question
    named = "named"  # the question names it
    link = "link"  # a chosen passage mentions it
    back = "back"  # it mentions a chosen passage
    shared = "shared"  # it mentions a name that a chosen passage mentions


class TitleMatch(NamedTuple):
    """A title in the question: its form, the certainty that it means the passage, and its span in the question."""

    name: NameKey
    certainty: float
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """A passage in the graph of a question."""

    features: PassageFeatures
    bm25: float  # its score divided by the best score; 0 if the question did not find it
    mask: int  # the question's words in it
    sentences: frozenset[int]  # the question's words in the title and each sentence
    title_match: TitleMatch | None  # where the question names it
    similarity: float  # cosine with the question; 0 without vectors

    @property
    def id(self) -> str:
        return self.features.passage.id


class Edge(NamedTuple):
    """A connection between a chosen passage and another."""

    relation: Relation
    name: NameKey  # the name that one mentions and that the other has as its title or mentions too
    certainty: float  # that the mention means the passage
    in_question: bool  # whether the question contains the name, which makes the edge weaker
    cue: int  # the question's words in the sentence of the mention
    in_title: bool  # whether the other passage's title contains the name


class Graph:
    """The passages around a question, searched once each.

    Args:
        question: The question.
        source: Where to search.
        analyze: Analyzes a passage, possibly cached.
        similarities: Cosines of the question with passages, if there are vectors.
    """

    def __init__(
        self,
        question: QuestionFeatures,
        source: ChainSource,
        analyze: Callable[[Passage], PassageFeatures],
        similarities: Callable[[list[Hit]], Sequence[float]] | None = None,
    ) -> None:
        self.question = question
        self._source, self._analyze, self._similarities = source, analyze, similarities
        self._best = 0.0  # BM25 score
        self._start: list[Node] | None = None
        self._nodes: dict[str, Node] = {}
        self._neighbors: dict[str, list[Node]] = {}
        self._edges: dict[tuple[str, str], tuple[Edge, ...]] = {}
        self._new_names: dict[str, tuple[NameKey, ...]] = {}

    def start(self) -> list[Node]:
        """The passages that the question finds, and those that it names."""
        if self._start is None:
            hits = self._source.search(self.question.text, _QUESTION_HITS)
            self._best = hits[0].score if hits else 0.0
            titled = self._titled(self.question.title_candidates)
            self._start = self._nodes_of(hits, self._best) + self._nodes_of(titled)
        return self._start

    def beyond(self, depth: int) -> list[Node]:
        """The question's hits after those of `start`, up to a depth.

        They are not candidates of the chain, so that a ranking does not depend on its length.
        """
        if depth <= _QUESTION_HITS:
            return []
        return self._nodes_of(
            self._source.search(self.question.text, depth - _QUESTION_HITS, _QUESTION_HITS), self._best
        )

    def neighbors(self, chosen: Node) -> list[Node]:
        """The passages whose titles a passage mentions, and those with its names and other question words."""
        if (found := self._neighbors.get(chosen.id)) is None:
            hits = self._titled(chosen.features.title_candidates[:_MOST_TITLES])
            names = sorted(self._names(chosen.features), key=lambda name: -self.question.rarity(name))[:_NAMES]
            if names:
                missing = self.question.words(self.question.all_words & ~chosen.mask)
                hits += self._source.search(" ".join((*(name.key for name in names), *missing)), _NAME_HITS)
            found = self._neighbors[chosen.id] = self._nodes_of(hits)
        return found

    def _titled(self, keys: Sequence[str]) -> list[Hit]:
        return self._source.search_titles(keys, self.question.text, _TITLE_HITS)

    def edges(self, chosen: Node, other: Node) -> tuple[Edge, ...]:
        """All connections between a chosen passage and another."""
        pair = chosen.id, other.id
        if (found := self._edges.get(pair)) is None:
            found = self._edges[pair] = tuple(self._connections(chosen.features, other.features))
        return found

    def _connections(self, chosen: PassageFeatures, other: PassageFeatures) -> Iterator[Edge]:
        if chosen.title_key != other.title_key or not other.names:
            for name, certainty in other.names:
                if chosen.mentions(name):
                    sure = certainty * (1.0 if chosen.capitalizes(name) else _LOWER_CASE)
                    cue = self._cue(chosen, name)
                    yield Edge(Relation.link, name, sure, self.question.mentions(name), cue, True)
                    break
            for name, certainty in chosen.names:
                if other.mentions(name):
                    sure = certainty * (1.0 if other.capitalizes(name) else _LOWER_CASE)
                    cue = self._cue(other, name)
                    yield Edge(Relation.back, name, sure, self.question.mentions(name), cue, False)
                    break
        for name in self._names(chosen):
            in_title = other.is_about(name)
            if in_title or other.mentions(name):
                yield Edge(Relation.shared, name, 1.0, False, self._cue(other, name), in_title)

    def _names(self, passage: PassageFeatures) -> tuple[NameKey, ...]:
        """The names that a passage mentions and the question does not."""
        id = passage.passage.id
        if (found := self._new_names.get(id)) is None:
            found = tuple(name for name in passage.mentioned if not self.question.mentions(name))
            self._new_names[id] = found
        return found

    def _cue(self, passage: PassageFeatures, name: NameKey) -> int:
        """The question's words in the sentence that mentions a name; of several, the one with the highest weight."""
        masks = [self.question.mask(stems) for key, stems in passage.sentences if name.key in key]
        return max(masks, key=self.question.weights, default=0)

    def _nodes_of(self, hits: Iterable[Hit], best: float = 0.0) -> list[Node]:
        """The nodes of some hits; with ``best``, the best score of all, new nodes get a BM25 score."""
        unique: dict[str, Hit] = {}
        for hit in hits:
            unique.setdefault(hit.passage.id, hit)
        new = [hit for id, hit in unique.items() if id not in self._nodes]
        similarities = self._similarities(new) if self._similarities and new else [0.0] * len(new)
        for hit, similarity in zip(new, similarities, strict=True):
            bm25 = hit.score / best if best else 0.0
            self._nodes[hit.passage.id] = self._node(self._analyze(hit.passage), bm25, similarity)
        return [self._nodes[id] for id in unique]

    def _node(self, passage: PassageFeatures, bm25: float, similarity: float) -> Node:
        subject = self.question.mask(passage.subject)
        sentences = frozenset(self.question.mask(stems) | subject for _, stems in passage.sentences)
        mask = reduce(or_, sentences, subject)
        return Node(passage, bm25, mask, sentences or frozenset({subject}), self._title_match(passage), similarity)

    def _title_match(self, passage: PassageFeatures) -> TitleMatch | None:
        for name, certainty in passage.names:
            if span := self.question.find(name):
                return TitleMatch(name, certainty * (1.0 if self.question.capitalizes(span) else _LOWER_CASE), span)
        return None
