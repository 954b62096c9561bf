"""The chain retriever: a greedy choice of passages, one at a time, that finds the second hop from the first.

    retriever = ChainRetriever(BM25Index("indexes/hotpotqa"))
    for hit in retriever.search("Where was the director of the film Solaris born?", k=5):
        print(hit.rank, hit.passage.title, hit.reason)

BM25 finds passages that share words with the question. The next hop shares few, but an earlier passage mentions it, is
mentioned by it, or mentions the same name. So the neighbors of each chosen passage become candidates, and a candidate's
gain is the weight of the question's words that it alone explains, plus the strength of its best edge to a chosen one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import PolyhopError
from ..lucene.searcher import adapt
from ..passages import Hit, Passage, Reason, SearchTool, Shared, check_page, search_each
from .features import NameKey, PassageFeatures, QuestionFeatures, WordWeights
from .graph import ChainSource, Edge, Graph, Node, Relation, TitleMatch
from .weights import ChainWeights

if TYPE_CHECKING:
    from ..dense import DenseIndex

_EXPANDED = 3  # chosen passages whose neighbors become candidates
LONGEST_CHAIN = 6  # passages chosen one by one; the rest keep the order they have then
_PASSAGES_CACHED = 2048  # about 10 kB each
_WORDS_CACHED = 65_536
_IN_QUESTION = 0.4  # factor for an edge by a name that the question contains
_TITLE_RARITY = 1 / 3  # factor for `rarity`: a title in the question is rarely a coincidence


class ChainStep(NamedTuple):
    """A chosen passage, its gain over those chosen before it, and the main reason."""

    node: Node
    gain: float
    reason: Reason


def follow(graph: Graph, weights: ChainWeights, most: int, *, adaptive: bool = False) -> list[ChainStep]:
    """The best ``most`` passages of a graph, best first; with ``adaptive`` only as many as the chain needs."""
    chain = _Chain(graph, weights)
    chain.add(graph.start())
    steps: list[ChainStep] = []
    while chain.candidates and len(steps) < min(most, LONGEST_CHAIN):
        step = chain.best()
        if adaptive and steps and step.gain < weights.enough:
            return steps
        steps.append(step)
        chain.take(step.node, is_last=len(steps) == most)
        if len(steps) <= min(_EXPANDED, most - 1):
            chain.add(graph.neighbors(step.node))
    if adaptive or len(steps) == most:
        return steps
    steps += chain.rest(most - len(steps))
    return steps + chain.unseen(graph.beyond(most))[: most - len(steps)]


class _Chain:
    """The passages chosen so far, and what the candidates would add to them."""

    def __init__(self, graph: Graph, weights: ChainWeights) -> None:
        self.candidates: dict[str, Node] = {}
        self._graph, self._weights = graph, weights
        self._words = graph.question.weights
        self._chosen: list[tuple[Node, WordWeights, WordWeights]] = []  # with the word weights before and after it
        self._taken: list[tuple[int, int]] = []  # spans of chosen titles in the question
        self._titles: Counter[NameKey] = Counter()  # number of candidates by name
        self._edges: dict[str, tuple[float, Edge, Node]] = {}  # the strongest of each candidate, and to which passage
        self._seen: set[str] = set()
        self._copies: set[str] = set()  # copies of a chosen passage that explain no further word

    def add(self, nodes: Iterable[Node]) -> None:
        new = list({other.id: other for other in nodes if other.id not in self._seen}.values())
        for node in new:
            self._seen.add(node.id)
            self.candidates[node.id] = node
            self._titles.update(name for name, _ in node.features.names)
        for chosen, before, after in self._chosen:
            self._compare(chosen, before, after, new)

    def take(self, node: Node, is_last: bool) -> None:
        del self.candidates[node.id]
        if is_last:
            return
        if node.title_match:
            self._taken.append(node.title_match.span)
        before, after = self._words, self._words.after(node.mask, self._weights.explained)
        self._words = after
        self._chosen.append((node, before, after))
        self._compare(node, before, after, self.candidates.values())

    def best(self) -> ChainStep:
        """The candidate with the highest gain; of equals, the one found first."""
        gain, best = max(((self._gain(node), node) for node in self.candidates.values()), key=itemgetter(0))
        return ChainStep(best, gain, self._reason(best))

    def rest(self, most: int) -> list[ChainStep]:
        """The best remaining candidates, each with its gain as the next passage."""
        gains = sorted(((self._gain(other), other) for other in self.candidates.values()), key=lambda pair: -pair[0])
        return [ChainStep(other, gain, self._reason(other)) for gain, other in gains[:most]]

    def unseen(self, nodes: Iterable[Node]) -> list[ChainStep]:
        """Those that are no candidates, in their order."""
        new = (other for other in nodes if other.id not in self._seen)
        return [ChainStep(other, self._gain(other), self._reason(other)) for other in new]

    def _gain(self, node: Node) -> float:
        if node.id in self._copies:
            return 0.0
        weights, words = self._weights, self._words
        gain = weights.coverage * words(node.mask) + weights.sentence * max(map(words, node.sentences))
        gain += weights.bm25 * node.bm25 + weights.similarity * node.similarity
        if node.title_match:
            gain += self._named(node.title_match)
        if node.id in self._edges:
            gain += self._edges[node.id][0]
        return gain

    def _reason(self, node: Node) -> Reason:
        question, match = self._graph.question, node.title_match
        if node.id in self._edges:
            strength, edge, chosen = self._edges[node.id]
            if not match or strength > self._named(match):
                return Reason(edge.relation.value, edge.name.key.strip(), chosen.id, question.words(edge.cue))
        name = match.name.key.strip() if match else ""
        return Reason((Relation.named if match else Relation.words).value, name, None, question.words(node.mask))

    def _named(self, match: TitleMatch) -> float:
        first, last = match.span
        taken = any(first < end and start < last for start, end in self._taken)
        strength = match.certainty * self._specificity(match.name, _TITLE_RARITY) * self._clarity(match.name)
        return self._weights.named * strength * (self._weights.taken if taken else 1.0)

    def _specificity(self, name: NameKey, scale: float = 1.0) -> float:
        """How specific a name is, 0 to 1: 0.5 at the weight ``rarity``."""
        rarity = self._graph.question.rarity(name)
        return rarity / (rarity + scale * self._weights.rarity) if rarity else 0.0

    def _clarity(self, name: NameKey) -> float:
        """The factor for a name that several candidates have."""
        return float(max(self._titles[name], 1) ** -self._weights.ambiguity)

    def _compare(self, chosen: Node, before: WordWeights, after: WordWeights, nodes: Collection[Node]) -> None:
        self._copies.update(
            other.id for other in nodes if not other.mask & ~chosen.mask and chosen.features.copies(other.features)
        )
        edges = [(other, self._graph.edges(chosen, other)) for other in nodes]
        sharing = Counter(edge.name for _, found in edges for edge in found if edge.relation is Relation.shared)
        for other, found in edges:
            for edge in found:
                strength = self._strength(edge, other, before, after, sharing)
                if strength > self._edges.get(other.id, (0.0,))[0]:
                    self._edges[other.id] = strength, edge, chosen

    def _strength(
        self, edge: Edge, other: Node, before: WordWeights, after: WordWeights, sharing: Counter[NameKey]
    ) -> float:
        weights = self._weights
        strength = edge.certainty * self._specificity(edge.name) * (_IN_QUESTION if edge.in_question else 1.0)
        if edge.relation is Relation.shared:
            strength *= weights.shared * sharing[edge.name] ** -weights.ambiguity
            strength *= weights.in_title if edge.in_title else 1.0
        else:
            strength *= (weights.link if edge.relation is Relation.link else weights.back) * self._clarity(edge.name)
        cue = before(edge.cue) if edge.relation is Relation.link else after(edge.cue)
        return strength * (1 + weights.cue * cue + weights.fit * after(other.mask))


class ChainRetriever(SearchTool, Shared):
    """A thread-safe `Retriever` that follows chains of evidence through a BM25 index or a question's own pool.

    A question costs at most four searches (five for more than 50 passages) and four title look-ups. Copying returns
    the retriever itself.

    Args:
        source: A `BM25Index`, a `LuceneSearcher` of Pyserini or a `PassagePool`; None if every question has its own
            pool (see `over`).
        weights: The weights of the features.
        vectors: Vectors of the same index; they add the similarity of question and passage as a feature.
        adaptive: Return as many passages as the chain needs (1 to 6, and at most ``k``) instead of ``k``.

    Raises:
        PolyhopError: the index is one of Anserini or Pyserini that is not adopted (see `adopt_index`).
        ValueError: the vectors belong to another index.
    """

    def __init__(
        self,
        source: ChainSource | None = None,
        weights: ChainWeights | None = None,
        *,
        vectors: DenseIndex | None = None,
        adaptive: bool = False,
    ) -> None:
        source = cast(ChainSource | None, adapt(source))
        if not getattr(source, "has_titles", True):
            path = getattr(source, "path", "DIR")
            raise PolyhopError(
                f"the chain retriever looks up titles, which the index {path} does not have. Add them once: polyhop "
                f"index --adopt {path}. Or search with BM25 alone: --retriever bm25"
            )
        if vectors is not None and getattr(source, "manifest", None) != vectors.manifest:
            raise ValueError("the vectors belong to another index than the one to search")
        self.source, self.vectors, self.adaptive = source, vectors, adaptive
        self.weights = weights or ChainWeights()
        self._analyzed: dict[str, PassageFeatures] = {}
        self._idf = lru_cache(_WORDS_CACHED)(self._inverse_frequency)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The passages of rank ``offset + 1`` to ``offset + k``, each with its `Reason`.

        Scores are gains, lowered where needed so that they never rise with the rank.
        """
        check_page(k, offset)
        # A later page of an adaptive chain is wanted explicitly, so it is not cut.
        steps = follow(self.graph(query), self.weights, offset + k, adaptive=self.adaptive and not offset)
        scores = accumulate((step.gain for step in steps), min)
        return [
            Hit(step.node.features.passage, score, rank, step.reason)
            for rank, (step, score) in enumerate(zip(steps, scores, strict=True), 1)
        ][offset:]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return search_each(self.search, queries, k)

    def graph(self, query: str) -> Graph:
        """The passages around a query, independent of the weights."""
        if self.source is None:
            raise PolyhopError("nothing to search: give ChainRetriever an index, or each question its own pool")
        return Graph(QuestionFeatures(query, self._idf), self.source, self._analyze, self._similarities(query))

    def over(self, source: ChainSource) -> ChainRetriever:
        """The same settings over another collection, without vectors."""
        return ChainRetriever(source, self.weights, adaptive=self.adaptive)

    def with_weights(self, weights: ChainWeights, *, adaptive: bool) -> ChainRetriever:
        """A view of this retriever with other weights."""
        return self._view(weights=weights, adaptive=adaptive)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> ChainRetriever:
        """A view of this retriever with other BM25 parameters."""
        return self._view(source=self.source and self.source.with_bm25(k1, b))

    @property
    def k1(self) -> float:
        return self.source.k1 if self.source else 0.9

    @property
    def b(self) -> float:
        return self.source.b if self.source else 0.4

    def _view(self, **changes: Any) -> ChainRetriever:
        view = object.__new__(ChainRetriever)  # copy() would return the retriever itself
        view.__dict__.update(self.__dict__, **changes)  # shares the caches
        return view

    def _analyze(self, passage: Passage) -> PassageFeatures:
        # Not an lru_cache: hashing a passage would hash its text.
        if (found := self._analyzed.get(passage.id)) is None:
            if len(self._analyzed) >= _PASSAGES_CACHED:
                self._analyzed.clear()
            found = self._analyzed[passage.id] = PassageFeatures(passage)
        return found

    def _similarities(self, query: str) -> Callable[[list[Hit]], Sequence[float]] | None:
        if self.vectors is None:
            return None
        vectors = self.vectors
        return lambda hits: vectors.similarities(query, [cast(int, hit.document) for hit in hits]).tolist()

    def _inverse_frequency(self, word: str) -> float:
        source = cast(ChainSource, self.source)
        found, size = source.document_frequency(word), len(source)
        return _idf(found, size) / _idf(1, size) if found else 0.0

    def __reduce__(self) -> Any:
        return _unpickled, (self.source, self.weights, self.vectors, self.adaptive)

    def __repr__(self) -> str:
        return f"ChainRetriever({self.source!r})"


def _idf(found: int, size: int) -> float:
    return math.log(1 + (size - found + 0.5) / (found + 0.5))


def _unpickled(
    source: ChainSource | None, weights: ChainWeights, vectors: DenseIndex | None, adaptive: bool
) -> ChainRetriever:
    return ChainRetriever(source, weights, vectors=vectors, adaptive=adaptive)
