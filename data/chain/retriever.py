"""The greedy choice of a chain, one passage at a time, and the retriever around it.

    retriever = ChainRetriever(BM25Index("indexes/hotpotqa"))
    for hit in retriever.search("Where was the director of the film Solaris born?", k=5):
        print(hit.rank, hit.passage.title, hit.reason)

BM25 finds the passages that share words with the question. The next hop shares few, but the passage before it mentions
it, is mentioned by it, or mentions a name that it mentions too. So each passage that is chosen is searched for what it
leads to, and a candidate's gain is what it explains of the question that no chosen passage explains yet, plus how
strongly it is tied to those chosen.
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
from ..passages import Hit, Passage, Reason, search_each
from .graph import Candidate, Graph, Named, Source, Tie, Via
from .question import Question, Worth
from .reading import Name, Reading
from .weights import ChainWeights

if TYPE_CHECKING:
    from ..dense import DenseIndex

_REACH = 3  # chosen passages that are searched for what they lead to
LONGEST_CHAIN = 6  # passages chosen one by one; those after them keep the order they have then
_READINGS_KEPT = 2048  # about 10 kB each
_WORDS_KEPT = 65_536
_ASKED = 0.4  # weight of a tie by a name that the question has itself
_TITLE_RARITY = 1 / 3  # of `rarity`: a title that stands in the question is hardly there by chance


class Choice(NamedTuple):
    """A passage, what it added to those chosen before it, and the sign that spoke for it most."""

    candidate: Candidate
    gain: float
    reason: Reason


def follow(graph: Graph, weights: ChainWeights, most: int, *, adaptive: bool = False) -> list[Choice]:
    """The best ``most`` passages of a graph, or with ``adaptive`` as many of them as the chain needs, best first."""
    chain = _Chain(graph, weights)
    chain.add(graph.start())
    choices: list[Choice] = []
    while chain.pool and len(choices) < min(most, LONGEST_CHAIN):
        choice = chain.best()
        if adaptive and choices and choice.gain < weights.enough:
            return choices
        choices.append(choice)
        chain.take(choice.candidate, is_last=len(choices) == most)
        if len(choices) <= min(_REACH, most - 1):
            chain.add(graph.around(choice.candidate))
    if adaptive or len(choices) == most:
        return choices
    choices += chain.rest(most - len(choices))
    return choices + chain.unseen(graph.beyond(most))[: most - len(choices)]


class _Chain:
    """The passages chosen so far, and what the others would add to them."""

    def __init__(self, graph: Graph, weights: ChainWeights) -> None:
        self.pool: dict[str, Candidate] = {}
        self._graph, self._weights = graph, weights
        self._worth = graph.question.worth
        self._chosen: list[tuple[Candidate, Worth, Worth]] = []  # with the worth of words before it and after it
        self._taken: list[tuple[int, int]] = []  # where titles of chosen passages stand in the question
        self._bearing: Counter[Name] = Counter()  # candidates by name
        self._ties: dict[str, tuple[float, Tie, Candidate]] = {}  # the strongest of each candidate, and to what
        self._seen: set[str] = set()
        self._copies: set[str] = set()  # candidates that say what a chosen passage says, and no more of the question

    def add(self, candidates: Iterable[Candidate]) -> None:
        new = list({other.id: other for other in candidates if other.id not in self._seen}.values())
        for candidate in new:
            self._seen.add(candidate.id)
            self.pool[candidate.id] = candidate
            self._bearing.update(name for name, _ in candidate.reading.names)
        for chosen, before, after in self._chosen:
            self._compare(chosen, before, after, new)

    def take(self, candidate: Candidate, is_last: bool) -> None:
        del self.pool[candidate.id]
        if is_last:
            return
        if candidate.named:
            self._taken.append(candidate.named.place)
        before, after = self._worth, self._worth.after(candidate.mask, self._weights.explained)
        self._worth = after
        self._chosen.append((candidate, before, after))
        self._compare(candidate, before, after, self.pool.values())

    def best(self) -> Choice:
        """The passage that adds most; of equals, the one that was found first."""
        gain, best = max(((self._gain(candidate), candidate) for candidate in self.pool.values()), key=itemgetter(0))
        return Choice(best, gain, self._reason(best))

    def rest(self, most: int) -> list[Choice]:
        """The best of what was not chosen, each as if it were the next."""
        judged = sorted(((self._gain(other), other) for other in self.pool.values()), key=lambda pair: -pair[0])
        return [Choice(other, gain, self._reason(other)) for gain, other in judged[:most]]

    def unseen(self, candidates: Iterable[Candidate]) -> list[Choice]:
        """What was no candidate, in its order."""
        new = (other for other in candidates if other.id not in self._seen)
        return [Choice(other, self._gain(other), self._reason(other)) for other in new]

    def _gain(self, candidate: Candidate) -> float:
        if candidate.id in self._copies:
            return 0.0
        weights, worth = self._weights, self._worth
        gain = weights.coverage * worth(candidate.mask) + weights.sentence * max(map(worth, candidate.sentences))
        gain += weights.bm25 * candidate.bm25 + weights.similarity * candidate.similarity
        if candidate.named:
            gain += self._named(candidate.named)
        if candidate.id in self._ties:
            gain += self._ties[candidate.id][0]
        return gain

    def _reason(self, candidate: Candidate) -> Reason:
        question, named = self._graph.question, candidate.named
        if candidate.id in self._ties:
            strength, tie, chosen = self._ties[candidate.id]
            if not named or strength > self._named(named):
                return Reason(tie.via.value, tie.name.key.strip(), chosen.id, question.words(tie.cue))
        name = named.name.key.strip() if named else ""
        return Reason((Via.named if named else Via.words).value, name, None, question.words(candidate.mask))

    def _named(self, named: Named) -> float:
        first, last = named.place
        taken = any(first < end and start < last for start, end in self._taken)
        strength = named.certainty * self._telling(named.name, _TITLE_RARITY) * self._clarity(named.name)
        return self._weights.named * strength * (self._weights.taken if taken else 1.0)

    def _telling(self, name: Name, scale: float = 1.0) -> float:
        """How much a name says, 0 to 1: half at the weight ``rarity``."""
        rarity = self._graph.question.rarity(name)
        return rarity / (rarity + scale * self._weights.rarity) if rarity else 0.0

    def _clarity(self, name: Name) -> float:
        """What is left of a name's weight where several candidates bear it."""
        return float(max(self._bearing[name], 1) ** -self._weights.ambiguity)

    def _compare(self, chosen: Candidate, before: Worth, after: Worth, candidates: Collection[Candidate]) -> None:
        self._copies.update(
            other.id for other in candidates if not other.mask & ~chosen.mask and chosen.reading.copies(other.reading)
        )
        ties = [(other, self._graph.ties(chosen, other)) for other in candidates]
        sharing = Counter(tie.name for _, found in ties for tie in found if tie.via is Via.shared)
        for other, found in ties:
            for tie in found:
                strength = self._strength(tie, other, before, after, sharing)
                if strength > self._ties.get(other.id, (0.0,))[0]:
                    self._ties[other.id] = strength, tie, chosen

    def _strength(self, tie: Tie, other: Candidate, before: Worth, after: Worth, sharing: Counter[Name]) -> float:
        weights = self._weights
        strength = tie.certainty * self._telling(tie.name) * (_ASKED if tie.asked else 1.0)
        if tie.via is Via.shared:
            strength *= weights.shared * sharing[tie.name] ** -weights.ambiguity
            strength *= weights.in_title if tie.in_title else 1.0
        else:
            strength *= (weights.link if tie.via is Via.link else weights.back) * self._clarity(tie.name)
        cue = before(tie.cue) if tie.via is Via.link else after(tie.cue)
        return strength * (1 + weights.cue * cue + weights.fit * after(other.mask))


class ChainRetriever:
    """A `Retriever` that follows the chain of evidence through a BM25 index, or through a question's own pool.

    A question costs at most four searches (five beyond 50 passages) and four look-ups of titles; nothing of the corpus
    is held in memory. Any thread may use it. Copies are the retriever itself, as with `BM25Index`.

    Args:
        source: A `BM25Index` or a `PassagePool`; None if every question brings a pool of its own (see `over`).
        weights: What each sign is worth.
        vectors: Of the same index: then the similarity of question and passage is a sign too.
        adaptive: Return as many passages as the chain needs (1 to 6, and at most ``k``) instead of ``k``.

    Raises:
        ValueError: the vectors are of another index.
    """

    def __init__(
        self,
        source: Source | None = None,
        weights: ChainWeights | None = None,
        *,
        vectors: DenseIndex | None = None,
        adaptive: bool = False,
    ) -> None:
        if vectors is not None and getattr(source, "manifest", None) != vectors.manifest:
            raise ValueError("the vectors are of another index than the one that is searched")
        self.source, self.vectors, self.adaptive = source, vectors, adaptive
        self.weights = weights or ChainWeights()
        self._readings: dict[str, Reading] = {}
        self._idf = lru_cache(_WORDS_KEPT)(self._inverse_frequency)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The passages of rank ``offset + 1`` to ``offset + k``, each with the `Reason` why it was chosen.

        Scores are gains, lowered where needed so that they never rise from one rank to the next.
        """
        if k <= 0 or offset < 0:
            raise ValueError(f"k must be positive and offset not negative, got k={k}, offset={offset}")
        # What comes after a chain that decided its own length is asked for on purpose.
        choices = follow(self.graph(query), self.weights, offset + k, adaptive=self.adaptive and not offset)
        scores = accumulate((choice.gain for choice in choices), min)
        return [
            Hit(choice.candidate.reading.passage, score, rank, choice.reason)
            for rank, (choice, score) in enumerate(zip(choices, scores, strict=True), 1)
        ][offset:]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return search_each(self.search, queries, k)

    def graph(self, query: str) -> Graph:
        """What a query leads to, before any weight is applied."""
        if self.source is None:
            raise PolyhopError("nothing to search: give ChainRetriever an index, or each question its own pool")
        return Graph(Question(query, self._idf), self.source, self._read, self._similarities(query))

    def over(self, source: Source) -> ChainRetriever:
        """The same settings over another collection, without vectors."""
        return ChainRetriever(source, self.weights, adaptive=self.adaptive)

    def with_weights(self, weights: ChainWeights, *, adaptive: bool) -> ChainRetriever:
        """The same retriever with other weights; this one keeps its own."""
        return self._view(weights=weights, adaptive=adaptive)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> ChainRetriever:
        """The same retriever with other parameters of BM25; this one keeps its own."""
        return self._view(source=self.source and self.source.with_bm25(k1, b))

    @property
    def k1(self) -> float:
        return self.source.k1 if self.source else 0.9

    @property
    def b(self) -> float:
        return self.source.b if self.source else 0.4

    def _view(self, **changes: Any) -> ChainRetriever:
        view = object.__new__(ChainRetriever)  # and not a copy, which is the retriever itself
        view.__dict__.update(self.__dict__, **changes)  # what was read stays shared
        return view

    def _read(self, passage: Passage) -> Reading:
        # Not an lru_cache: to hash a passage is to hash its text.
        if (found := self._readings.get(passage.id)) is None:
            if len(self._readings) >= _READINGS_KEPT:
                self._readings.clear()
            found = self._readings[passage.id] = Reading(passage)
        return found

    def _similarities(self, query: str) -> Callable[[list[Hit]], Sequence[float]] | None:
        if self.vectors is None:
            return None
        vectors = self.vectors
        return lambda hits: vectors.similarities(query, [cast(int, hit.document) for hit in hits]).tolist()

    def _inverse_frequency(self, word: str) -> float:
        source = cast(Source, self.source)
        found, size = source.frequency(word), len(source)
        return _idf(found, size) / _idf(1, size) if found else 0.0

    def __copy__(self) -> ChainRetriever:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ChainRetriever:
        return self

    def __reduce__(self) -> Any:
        return _unpickled, (self.source, self.weights, self.vectors, self.adaptive)

    def __repr__(self) -> str:
        return f"ChainRetriever({self.source!r})"


def _idf(found: int, size: int) -> float:
    return math.log(1 + (size - found + 0.5) / (found + 0.5))


def _unpickled(
    source: Source | None, weights: ChainWeights, vectors: DenseIndex | None, adaptive: bool
) -> ChainRetriever:
    return ChainRetriever(source, weights, vectors=vectors, adaptive=adaptive)
