"""The chain retriever: a greedy choice of passages, one at a time, that finds the second hop from the first.

    retriever = ChainRetriever(BM25Index("indexes/hotpotqa"))
    for hit in retriever.search("Where was the director of the film Solaris born?", k=5):
        print(hit.rank, hit.passage.title, hit.reason)

BM25 finds passages that share words with the question. The next hop shares few, but an earlier passage mentions it, is
mentioned by it, or mentions the same name. So the neighbors of each chosen passage become candidates, and a candidate's
gain is the weight of the question's words that it alone explains, plus the strength of its best edge to a chosen one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import PolyhopError
from ..lucene.searcher import chain_source
from ..passages import Hit, Reason, SearchTool, Shared, check_page
from .arrays import Bools, Floats, Ints, counted, occurrences
from .graph import BACK, DIGITS, HYPERLINK, LINK, LINKED, SHARED, Edges, Graph
from .question import specificity
from .reading import wording
from .source import ChainSource
from .weights import ChainWeights

if TYPE_CHECKING:
    from ..dense import DenseIndex

_SURE = 0.7  # strength of a title in the question from which on BM25 counts as little as `bm25` says
_FEW_NAMES, _MORE_NAMES = 0.15, 0.05  # share of words in names: documentation has 0.1 to 0.15, Wikipedia 0.27 to 0.33
_AT_FIRST = 0.5  # share of what BM25 weighs more, for the first passage where names are many
_LISTING = 0.3  # share of words in links from which on a passage is taken for a list
_EXPANDED = 3  # chosen passages whose neighbors become candidates
_SEARCHED = 2  # of these, those whose names are searched; of the others the titles that they mention must do
LONGEST_CHAIN = 6  # passages chosen one by one; the rest keep the order they have then
_UNTOLD = 0.2  # how specific a hyperlink is at least, whose text may be "here"
_IN_QUESTION = 0.4  # factor for an edge by a name that the question contains
_TITLE_RARITY = 1 / 3  # factor for `rarity`: a title in the question is rarely a coincidence
_ASTRAY = 0.6  # factor for the edges of a chosen passage that explains nothing of what the others left
_LED = 0.9  # factor for the edges of a passage for each chosen one that it led to
_GROWN = 0.9  # the same for each passage of its tree beyond the smallest tree of a title in the question, or beyond one
_ON_TRACK = 0.36  # share of what they left from which on its edges count in full
_COPY = -9.0  # gain of a copy of a chosen passage
_RELATIONS = {LINK: "link", BACK: "back", SHARED: "shared", HYPERLINK: "hyperlink", LINKED: "linked"}


class Tie(NamedTuple):
    """An edge to a chosen passage: which, the relation, and where the mention is (see `Edges`)."""

    chosen: int
    relation: int
    sentence: int
    place: int
    length: int


@dataclass
class _Chosen:
    """A chosen passage.

    Attributes:
        before, after: The weights of the question's words before and after it.
        trust: The factor for its edges.
        tree: The passage at the beginning of what led to it; itself if nothing did.
        ties: The strength of its strongest edge of each relation to each node that it was compared with.
        told: The strength of its edge to each node that is told as a reason.
        reasons: That edge: the columns of a `Tie` but the first; shape (nodes, 4).
        led: The number of chosen passages that it led to.
        factor: For the strength of its edges, by what it and its tree led to.
    """

    node: int
    before: Floats
    after: Floats
    trust: float
    tree: int
    ties: Floats = field(default_factory=lambda: np.zeros((len(_RELATIONS), 0)))
    told: Floats = field(default_factory=lambda: np.zeros(0))
    reasons: Ints = field(default_factory=lambda: np.zeros((0, len(Tie._fields) - 1), np.int64))
    led: int = 0
    factor: float = 1.0


class ChainStep(NamedTuple):
    """A chosen passage and its gain over those chosen before it, and its strongest edge, if that counts more than its
    title in the question."""

    node: int
    gain: float
    tie: Tie | None


def follow(graph: Graph, weights: ChainWeights, most: int, *, adaptive: bool = False) -> list[ChainStep]:
    """The best ``most`` passages of a graph, best first; with ``adaptive`` only as many as the chain needs."""
    chain = _Chain(graph, weights)
    chain.add(graph.start())
    steps: list[ChainStep] = []
    while len(steps) < min(most, LONGEST_CHAIN):
        best = chain.best(1)
        if not best or (adaptive and steps and best[0].gain < weights.enough):
            break
        steps += best
        if len(steps) < most:
            chain.take(best[0])
            if len(steps) <= _EXPANDED:
                chain.add(graph.neighbors(best[0].node, names=len(steps) <= _SEARCHED))
    if adaptive or len(steps) == most:
        return steps
    steps += chain.best(most - len(steps))
    return steps + chain.unseen(graph.beyond(most))[: most - len(steps)]


class _Chain:
    """The passages chosen so far, and what the candidates would add to them."""

    def __init__(self, graph: Graph, weights: ChainWeights) -> None:
        self._graph, self._weights = graph, weights
        self._words, self._pairs = graph.question.weights, graph.question.pairs
        self._seen: Ints = np.zeros(0, np.int64)  # in the order in which they were found
        self._chosen: list[_Chosen] = []
        self._titles = counted(np.zeros(0, np.uint64))  # the candidates'
        self._named = np.zeros(0)  # the gain of each node for its title in the question
        self._tied = np.zeros(0)  # the strength of each node's strongest edge
        self._unsure: float | None = None  # how little it is sure that the question has a title
        self._nameless = 0.0  # how few names the first candidates have
        self._copies = np.zeros(0, bool)  # whether it is a copy of a chosen passage

    def add(self, nodes: Ints) -> None:
        new = np.ones(len(self._graph), bool)
        new[self._seen] = False
        self._seen = np.append(self._seen, nodes[new[nodes]])
        self._titles = counted(self._graph.names[self._seen[~self._graph.later[self._seen]]])  # documents
        self._named = self._titles_asked()

    def take(self, step: ChainStep) -> None:
        graph, explained, node = self._graph, self._weights.explained, step.node
        tree = node
        for each in self._chosen:
            if step.tie and step.tie.chosen == each.node:
                each.led += 1
                tree = each.tree
        before, has = self._words, graph.node_has[node]
        after = before * np.where(has, 1 - explained, 1.0)
        share = float(has @ before) / (before.sum() or 1.0)
        trust = _ASTRAY + (1 - _ASTRAY) * min(share / _ON_TRACK, 1.0)
        self._words = after
        self._pairs = self._pairs * ~graph.node_pairs[node]
        self._chosen.append(_Chosen(node, before, after, trust, tree))

    def best(self, most: int) -> list[ChainStep]:
        """The candidates with the highest gains as the next passage; of equals, always the same."""
        gains, named = self._gains()
        free = np.ones(len(self._graph), bool)
        free[[each.node for each in self._chosen]] = False
        candidates = self._seen[free[self._seen]]
        if most > 1:
            gains = self._spread(candidates, gains)
        return [self._step(node, gains, named) for node in self._ordered(candidates, gains, most)[:most]]

    def _spread(self, candidates: Ints, gains: Floats) -> Floats:
        """The gains, lower for all but the best passage of a document that has none among the chosen ones."""
        order = candidates[np.argsort(-gains[candidates].round(DIGITS), kind="stable")]
        _, first = np.unique(self._graph.document[order], return_index=True)
        again = np.ones(len(order), bool)
        again[first] = False
        pages = self._graph.document[[each.node for each in self._chosen]]
        found = gains.copy()
        found[order[again & ~np.isin(self._graph.document[order], pages)]] -= self._weights.spread
        return found

    def _ordered(self, nodes: Ints, gains: Floats, most: int) -> list[int]:
        """At least the ``most`` nodes with the highest gains. The order of rows differs between builds, so it does not
        decide between equals: the title does, then the words, and the id if all words are equal."""
        graph, losses = self._graph, -gains.round(DIGITS)
        if len(nodes) > most:  # only those that can be among them
            nodes = nodes[losses[nodes] <= np.partition(losses[nodes], most - 1)[most - 1]]
        keys = graph.total[nodes], graph.names[nodes, 0], losses[nodes]
        order = np.lexsort(keys)
        differs = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
        found: list[int] = []
        for group in np.split(nodes[order], np.flatnonzero(differs) + 1):
            if len(found) >= most:
                break
            equal = group.tolist()
            found += sorted(equal, key=lambda node: graph.passage(node).id) if len(equal) > 1 else equal
        return found

    def unseen(self, nodes: Ints) -> list[ChainStep]:
        """Those that are no candidates, in their order. How many there are decides their edges, so none is told."""
        gains, _ = self._gains()
        return [ChainStep(node, float(gains[node]), None) for node in nodes[~np.isin(nodes, self._seen)].tolist()]

    def _step(self, node: int, gains: Floats, named: Floats) -> ChainStep:
        tie = None
        if self._tied[node] > named[node]:
            strongest = max(self._chosen, key=lambda each: each.factor * each.told[node])
            tie = Tie(strongest.node, *strongest.reasons[node].tolist())
        return ChainStep(node, float(gains[node]), tie)

    def _gains(self) -> tuple[Floats, Floats]:
        """The gain of each node, and the part of it for a title in the question."""
        graph, weights = self._graph, self._weights
        if not len(graph):
            return np.zeros(0), np.zeros(0)
        if len(self._named) < len(graph):
            self._named = self._titles_asked()
        sentence, opening = graph.in_sentences(self._words)
        gains = weights.coverage * (graph.node_has @ self._words) + self._weight_of_bm25() * graph.bm25
        gains += weights.sentence * sentence + weights.opening * opening
        gains += weights.pairs * (graph.node_pairs @ self._pairs)
        gains += weights.similarity * graph.similarity
        gains += weights.title * (graph.has[graph.first_sentence] @ self._words)
        gains -= weights.surplus * graph.surplus + weights.length * graph.length
        tied, second, others = self._compare()
        taken = graph.overlapping([each.node for each in self._chosen])
        named = self._named * np.where(taken, weights.taken, 1.0)
        pages = graph.document[[each.node for each in self._chosen]]
        gains -= weights.spread * np.isin(graph.document, pages)
        gains -= weights.listing * np.maximum(graph.listing - _LISTING, 0.0)
        gains += named + tied + weights.second * second + weights.others * others
        gains[self._copies] = _COPY
        return gains, named

    def _weight_of_bm25(self) -> float:
        """It counts more for a question without a title: in part for the first passage, and for all where names are
        few, as in documentation, since they are what ties passages."""
        weights = self._weights
        if self._unsure is None:
            sure = self._named.max(initial=0.0) / weights.named / _SURE if weights.named else 0.0
            self._unsure = max(0.0, 1.0 - float(sure))
            self._nameless = 1.0 - min(max((self._graph.share_of_names() - _FEW_NAMES) / _MORE_NAMES, 0.0), 1.0)
        return weights.bm25 + weights.unnamed * self._unsure * max(self._nameless, 0.0 if self._chosen else _AT_FIRST)

    def _titles_asked(self) -> Floats:
        """The gain for titles in the question, before any is taken."""
        graph, weights = self._graph, self._weights
        found = np.zeros(len(graph))
        nodes = np.flatnonzero(graph.match_certainty)
        rarity, span = graph.match_rarity[nodes], graph.span[nodes]
        strength = graph.match_certainty[nodes] * specificity(rarity, _TITLE_RARITY * weights.rarity)
        strength *= occurrences(graph.names[nodes, graph.match[nodes]], self._titles) ** -weights.ambiguity
        strength *= np.where(graph.later[nodes], weights.later, 1.0)
        length = span[:, 1] - span[:, 0]
        within = (span[:, :1] >= span[:, 0]) & (span[:, 1:] <= span[:, 1]) & (length[:, None] < length)
        found[nodes] = weights.named * strength * np.where(within.any(axis=1), weights.inner, 1.0)
        return found

    def _compare(self) -> tuple[Floats, Floats, Floats]:
        """Compare the chosen passages with the nodes that they were not compared with.

        Returns:
            The strength of each node's strongest edge, of the strongest one of another relation, and of the strongest
            ones to the other chosen passages, together.
        """
        graph, size = self._graph, len(self._graph)
        if new := size - len(self._copies):
            self._copies = np.append(self._copies, np.zeros(new, bool))
        for each in self._chosen:
            compared = each.ties.shape[1]
            if compared == size:
                continue
            edges = graph.edges(each.node, compared)
            strength = self._strength(edges, each)
            each.ties = np.append(each.ties, np.zeros((len(_RELATIONS), size - compared)), axis=1)
            each.told = np.append(each.told, np.zeros(size - compared))
            each.reasons = np.append(each.reasons, np.zeros((size - compared, len(Tie._fields) - 1), np.int64), axis=0)
            np.maximum.at(each.ties, (edges.relation, edges.node), strength)
            # A shared name that is a title is told as the link that it mostly is.
            in_title = (edges.relation == SHARED) & edges.in_title
            told = strength / np.where(in_title, self._weights.in_title, 1.0)
            order = np.argsort(told, kind="stable")
            node = edges.node[order]
            each.told[node] = told[order]  # the last one stays
            each.reasons[node] = np.stack([edges.relation, edges.sentence, edges.place, edges.length], axis=1)[order]
            self._copies[graph.copies(each.node)] = True
        ties = np.zeros((1, len(_RELATIONS), size))  # of each chosen passage, each relation, each node
        if self._chosen:
            sizes = Counter(each.tree for each in self._chosen)
            least = min((passages for tree, passages in sizes.items() if graph.match_certainty[tree]), default=1)
            for each in self._chosen:
                each.factor = _LED**each.led * _GROWN ** max(sizes[each.tree] - least, 0)
            ties = np.stack([each.ties * each.factor for each in self._chosen])
        related = np.sort(ties.max(axis=0), axis=0)
        self._tied = related[-1]
        return self._tied, related[-2], ties.max(axis=1).sum(axis=0) - self._tied

    def _strength(self, edges: Edges, chosen: _Chosen) -> Floats:
        graph, weights = self._graph, self._weights
        link, shared = edges.relation == LINK, edges.relation == SHARED
        by_name = edges.relation <= SHARED
        specific = specificity(edges.rarity, weights.rarity)
        strength = chosen.trust * edges.certainty * np.where(by_name, specific, np.maximum(specific, _UNTOLD))
        strength *= np.where(edges.in_question, _IN_QUESTION, 1.0)
        relations = weights.link, weights.back, weights.shared, weights.hyperlink, weights.linked
        strength *= np.array(relations)[edges.relation]
        strength *= np.where(shared & edges.in_title, weights.in_title, 1.0)
        strength *= np.where(link & graph.later[edges.node], weights.later, 1.0)
        bearers = np.where(shared, edges.sharing, occurrences(edges.name, self._titles))
        strength *= np.where(by_name, bearers**-weights.ambiguity, 1.0)  # a hyperlink is not ambiguous
        beside = graph.has[edges.sentence] & (edges.sentence >= 0)[:, None]
        leads = link | (edges.relation == HYPERLINK)
        cue = np.where(leads, beside @ chosen.before, beside @ chosen.after)
        origin = graph.has[edges.origin] & (edges.origin >= 0)[:, None]
        about = weights.cue * cue + weights.origin * (origin @ chosen.before)
        found: Floats = strength * (1 + about + weights.fit * (graph.node_has[edges.node] @ chosen.after))
        return found


def _reason(graph: Graph, step: ChainStep) -> Reason:
    question, tie = graph.question, step.tie
    if tie:
        has = graph.has[tie.sentence] if tie.sentence >= 0 else np.zeros(len(question.words), bool)
        name, source = graph.text(tie.place, tie.length), graph.passage(tie.chosen).id
        return Reason(_RELATIONS[tie.relation], name, source, _among(question.words, has))
    start, end = graph.span[step.node].tolist()
    via = "named" if graph.match_certainty[step.node] else "words"
    name = wording(question.written, start, end) if via == "named" else ""
    return Reason(via, name, None, _among(question.words, graph.node_has[step.node]))


def _among(words: Sequence[str], has: Bools) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word, each in zip(words, has.tolist(), strict=True) if each))


class ChainRetriever(SearchTool, Shared):
    """A thread-safe `Retriever` that follows chains of evidence through a BM25 index or a question's own pool.

    A question costs at most three searches, or four for more than 30 passages; one whose last hits are equal is
    repeated for more of them. Copying returns the retriever itself.

    Args:
        source: A `BM25Index` or its folder, a `LuceneSearcher` of Pyserini or a `PassagePool`; None if every question
            has its own pool (see `over`).
        weights: The weights of the features.
        vectors: Vectors of the same index; they add the similarity of question and passage as a feature.
        adaptive: Return as many passages as the chain needs (1 to 6, and at most ``k``) instead of ``k``.

    Raises:
        PolyhopError: the index is one of Anserini or Pyserini that is not adopted (see `adopt_index`).
        ValueError: the vectors belong to another index.
    """

    def __init__(
        self,
        source: ChainSource | str | Path | None = None,
        weights: ChainWeights | None = None,
        *,
        vectors: DenseIndex | None = None,
        adaptive: bool = False,
    ) -> None:
        found = cast(ChainSource | None, chain_source(source))
        if not getattr(found, "has_titles", True):
            path = getattr(found, "path", "DIR")
            raise PolyhopError(
                f"the chain retriever looks up titles, which the index {path} does not have. Add them once: polyhop "
                f"index --adopt {path}. Or search with BM25 alone: --retriever bm25"
            )
        if vectors is not None and getattr(found, "manifest", None) != vectors.manifest:
            raise ValueError("the vectors belong to another index than the one to search")
        if found is not None and vectors is not None:
            found = found.pinned()  # the vectors are of this state
        self.source, self.vectors, self.adaptive = found, vectors, adaptive
        self.weights = weights or ChainWeights()

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The passages of rank ``offset + 1`` to ``offset + k``, each with its `Reason`.

        Scores are gains, lowered where needed so that they never rise with the rank.
        """
        check_page(k, offset)
        # A later page of an adaptive chain is wanted explicitly, so it is not cut.
        graph = self.graph(query)
        steps = follow(graph, self.weights, offset + k, adaptive=self.adaptive and not offset)
        scores = accumulate((step.gain for step in steps), min)
        ranked = list(enumerate(zip(steps, scores, strict=True), 1))[offset:]
        graph.load([step.node for _, (step, _) in ranked])
        return [Hit(graph.passage(step.node), score, rank, _reason(graph, step)) for rank, (step, score) in ranked]

    def graph(self, query: str) -> Graph:
        """The passages around a query, for one chain."""
        if self.source is None:
            raise PolyhopError("nothing to search: give ChainRetriever an index, or each question its own pool")
        return Graph(query, self.source.pinned(), self._similarities(query))

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

    def _similarities(self, query: str) -> Callable[[list[int]], Sequence[float]] | None:
        if self.vectors is None:
            return None
        vectors = self.vectors
        return lambda rows: vectors.similarities(query, rows).tolist()

    def __reduce__(self) -> Any:
        return _unpickled, (self.source, self.weights, self.vectors, self.adaptive)

    def __repr__(self) -> str:
        return f"ChainRetriever({self.source!r})"


def _unpickled(
    source: ChainSource | None, weights: ChainWeights, vectors: DenseIndex | None, adaptive: bool
) -> ChainRetriever:
    return ChainRetriever(source, weights, vectors=vectors, adaptive=adaptive)
