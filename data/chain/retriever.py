"""The chain retriever: a greedy choice of passages, one at a time, that finds the second hop from the first.

    retriever = ChainRetriever(BM25Index("indexes/hotpotqa"))
    for hit in retriever.search("Where was the director of the film Solaris born?", k=5):
        print(hit.rank, hit.passage.title, hit.reason)

BM25 finds passages that share words with the question. The next hop shares few, but an earlier passage mentions it, is
mentioned by it, or mentions the same name. So the neighbors of each chosen passage become candidates, and a candidate's
gain is the weight of the question's words that it alone explains, plus the strength of its best edge to a chosen one.
With vectors, what is near to the question and a chosen passage, read as one text, is a neighbor, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import PolyhopError
from ..lucene.searcher import chain_source
from ..passages import Hit, Reason, SearchTool, Shared, check_page
from .graph import BACK, DIGITS, HYPERLINK, LINK, LINKED, NEAR, SHARED, Edges, Graph
from .store import ChainSource
from .words import Bools, Floats, Ints, counted, occurrences, specificity, wording

if TYPE_CHECKING:
    from ..dense import DenseIndex

_SURE = 0.7  # strength of a title in the question from which on BM25 counts as little as `bm25` says
_FEW_NAMES, _MORE_NAMES = 0.15, 0.05  # share of words in names: documentation has 0.1 to 0.15, Wikipedia 0.27 to 0.33
_AT_FIRST = 0.5  # share of what BM25 weighs more, for the first passage where names are many
_LISTING = 0.3  # share of words in links from which on a passage is taken for a list
_EXPANDED = 3  # chosen passages whose neighbors become candidates
_SEARCHED = 2  # of these, those whose names are searched; of the others the titles that they mention must do
LONGEST_CHAIN = 6  # passages chosen one by one; the rest keep the order they have then
_BEST, _FURTHER = 3, 4  # chosen passages after which BM25 has its say, see `_Chain._overlooked`
_UNTOLD = 0.2  # how specific a hyperlink is at least, whose text may be "here"
_IN_QUESTION = 0.4  # factor for an edge by a name that the question contains
_TITLE_RARITY = 1 / 3  # factor for `rarity`: a title in the question is rarely a coincidence
_ASTRAY = 0.6  # factor for the edges of a chosen passage that explains nothing of what the others left
_LED = 0.9  # factor for the edges of a passage for each chosen one that it led to
_ON_TRACK = 0.36  # share of what they left from which on its edges count in full
_COPY = -9.0  # gain of a copy of a chosen passage
_RELATIONS = {LINK: "link", BACK: "back", SHARED: "shared", HYPERLINK: "hyperlink", LINKED: "linked"}


def _weight(value: float, high: float, low: float = 0.0) -> Any:
    return field(default=value, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class ChainWeights:
    """The weights in a passage's gain. A gain of 1 is a question whose every word is explained at once."""

    bm25: float = _weight(0.065, 2.0)  # BM25 score divided by the best passage's
    # What BM25 weighs more if the question has no title, less for a title that is less sure: for the first passage,
    # and for further ones as far as the passages have few names.
    unnamed: float = _weight(0.9, 5.0)
    coverage: float = _weight(0.73, 3.0)  # the question's words in the passage that no chosen passage explains
    sentence: float = _weight(0.9, 3.0)  # those of them in the best single sentence
    # Share of a word's weight that a chosen passage with it takes away; 1 takes all.
    explained: float = _weight(0.56, 1.0)
    opening: float = _weight(0.6, 3.0)  # those of them in the title and the first sentence
    # Pairs of neighbours among the question's words that are neighbours in the passage and in no chosen one.
    pairs: float = _weight(1.2, 3.0)
    surplus: float = _weight(0.07, 1.0)  # loss by the rarity of the title's words that the question does not have
    length: float = _weight(0.1, 1.0)  # loss by the logarithm of the passage's number of words
    # Loss by the share of the passage's words that are links, as in a table of contents.
    listing: float = _weight(2.0, 9.0)
    again: float = _weight(0.45, 1.0)  # factor for a passage whose document has a better one in the ranking
    named: float = _weight(0.9, 3.0)  # a title that the question contains
    taken: float = _weight(0.33, 1.0)  # factor for such a title once a passage with an overlapping title was chosen
    # Factor for a title in the question or in a chosen passage, if this one does not open its document.
    later: float = _weight(0.65, 1.0)
    link: float = _weight(0.72, 3.0)  # a chosen passage mentions the title
    back: float = _weight(0.62, 3.0)  # the passage mentions a chosen passage's title
    shared: float = _weight(0.6, 3.0)  # a chosen passage and this one mention the same name
    hyperlink: float = _weight(1.2, 3.0)  # a chosen passage links to this one or its document
    linked: float = _weight(0.7, 3.0)  # the passage links to a chosen one or its document
    second: float = _weight(0.45, 3.0)  # the strongest edge of another relation than the strongest one
    others: float = _weight(0.3, 3.0)  # the strongest edges to the other chosen passages, together
    in_title: float = _weight(1.54, 5.0, 1.0)  # factor for a shared name in the title
    # Increase of an edge by the weight of the question's words in the sentence of the mention.
    cue: float = _weight(1.98, 5.0)
    # Increase of an edge by a shared name by the weight of the question's words in the sentence in which the chosen
    # passage has it first.
    origin: float = _weight(1.0, 5.0)
    rarity: float = _weight(0.6, 3.0)  # rarity at which a name counts half; 1 is a word of a single passage
    # Exponent by which a name loses weight with the number of passages that have it.
    ambiguity: float = _weight(0.28, 2.0)
    # With vectors: the cosine with the question; the best one with question and chosen passage, read as one text; and
    # what is lost by the best one with a chosen passage, of which there is a next one to find, and no second.
    similarity: float = _weight(0.4, 3.0)
    near: float = _weight(1.0, 3.0)
    alike: float = _weight(0.5, 3.0)
    enough: float = _weight(1.38, 3.0)  # least gain to continue an adaptive chain

    def __post_init__(self) -> None:
        for weight in fields(self):
            value, low, high = getattr(self, weight.name), weight.metadata["low"], weight.metadata["high"]
            if not low <= value <= high:  # also refuses nan
                raise ValueError(f"{weight.name} must be in {low}..{high}, got {value}")


class Tie(NamedTuple):
    """An edge to a chosen passage: which, the relation, and where the mention is (see `Edges`)."""

    chosen: int
    relation: int
    sentence: int
    place: int
    length: int


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
        step = chain.next(adaptive=adaptive)
        if not step or (adaptive and steps and step.gain < weights.enough):
            break
        steps.append(step)
        if len(steps) < most:
            chain.take(step)
            if len(steps) <= _EXPANDED:
                chain.add(graph.neighbors(step.node, names=len(steps) <= _SEARCHED))
    if adaptive or len(steps) == most:
        return steps
    steps += chain.rest(most - len(steps))
    return steps + chain.unseen(graph.beyond(most))[: most - len(steps)]


@dataclass
class _Chosen:
    """A chosen passage.

    Attributes:
        before, after: The weights of the question's words before and after it.
        trust: The factor for its edges.
        led: The number of chosen passages that it led to.
        ties: The strength of its strongest edge of each relation to each node that it was compared with.
        edges: Those edges, with the strength that is told as a reason.
    """

    node: int
    before: Floats
    after: Floats
    trust: float
    led: int = 0
    ties: Floats = field(default_factory=lambda: np.zeros((len(_RELATIONS), 0)))
    edges: list[tuple[Edges, Floats]] = field(default_factory=list)


class _Chain:
    """The passages chosen so far, and what the candidates would add to them."""

    def __init__(self, graph: Graph, weights: ChainWeights) -> None:
        self._graph, self._weights = graph, weights
        self._words, self._pairs = graph.question.weights, graph.question.pairs
        self._seen: Ints = np.zeros(0, np.int64)  # the candidates, in the order in which they were found
        self._chosen: list[_Chosen] = []
        self._titles = counted(np.zeros(0, np.uint64))  # the candidates'
        self._named = np.zeros(0)  # the gain of each node for its title in the question
        self._tied = np.zeros(0)  # the strength of each node's strongest edge
        self._copies: Bools = np.zeros(0, bool)  # whether it is a copy of a chosen passage
        self._unsure = self._nameless = 0.0  # how little the question has a title, and the first candidates names

    def add(self, nodes: Ints) -> None:
        """Add candidates."""
        graph, first = self._graph, not len(self._seen)
        self._seen = np.append(self._seen, nodes[self._not(self._seen)[nodes]])
        self._titles = counted(graph.names[self._seen[~graph.later[self._seen]]])  # documents
        self._named = self._titles_asked()
        if first:
            self._unsure = max(0.0, 1.0 - self._named.max(initial=0.0) / _SURE / (self._weights.named or 1.0))
            self._nameless = 1.0 - min(max((graph.share_of_names() - _FEW_NAMES) / _MORE_NAMES, 0.0), 1.0)

    @property
    def _nodes(self) -> list[int]:
        """Those of the chosen passages."""
        return [chosen.node for chosen in self._chosen]

    def take(self, step: ChainStep) -> None:
        """Choose a passage."""
        graph, node, before = self._graph, step.node, self._words
        for earlier in self._chosen:
            earlier.led += bool(step.tie and step.tie.chosen == earlier.node)
        has = graph.node_has[node]
        self._words = before * np.where(has, 1 - self._weights.explained, 1.0)
        self._pairs = self._pairs * ~graph.node_pairs[node]
        share = float(has @ before) / (before.sum() or 1.0)
        trust = _ASTRAY + (1 - _ASTRAY) * min(share / _ON_TRACK, 1.0)
        self._chosen.append(_Chosen(node, before, self._words, trust))

    def next(self, *, adaptive: bool) -> ChainStep | None:
        """The candidate with the highest gain; without ``adaptive`` one that BM25 chooses may come in its place."""
        gains, named = self._gains()
        order = self._candidates(gains)
        if not len(order):
            return None
        node = int(order[0])
        if not adaptive and (overlooked := self._overlooked()) is not None:
            gains[overlooked] = gains[node]
            node = overlooked
        return self._step(node, gains, named)

    def rest(self, most: int) -> list[ChainStep]:
        """The other candidates; of a document without a chosen passage, all but the best one come later."""
        gains, named = self._gains()
        order = self._candidates(gains)
        document = self._graph.document[order]
        again = ~self._of_chosen()[order]
        again[np.unique(document, return_index=True)[1]] = False
        gains[order[again]] = self._lowered(gains[order[again]])
        return [self._step(node, gains, named) for node in _ordered(order, gains)[:most].tolist()]

    def _candidates(self, gains: Floats) -> Ints:
        """Those that are not chosen, highest gain first."""
        return _ordered(self._seen[self._not(self._nodes)[self._seen]], gains)

    def _overlooked(self) -> int | None:
        """A passage that BM25 finds and a chain leaves, since one page may hold the whole answer.

        After `_BEST` passages that is BM25's best one, unless it opens its page. After `_FURTHER` it is the best one
        left of the first passage's page, if the question names that page.
        """
        graph, chosen = self._graph, self._nodes
        is_version = self._copies & ~self._of_chosen()  # of a page that the chain has
        is_left = self._not(chosen) & ~is_version & (graph.bm25 > 0)
        if len(chosen) == _BEST:
            best = int(graph.bm25.argmax())
            return best if graph.later[best] and is_left[best] else None
        if len(chosen) != _FURTHER or not graph.match_certainty[chosen[0]]:
            return None
        of_page = np.where(is_left & (graph.document == graph.document[chosen[0]]), graph.bm25, 0.0)
        return int(of_page.argmax()) if of_page.any() else None

    def _lowered(self, gains: Floats) -> Floats:
        """Those of further passages of a document; a negative gain stays."""
        return np.minimum(gains, gains * self._weights.again)

    def _of_chosen(self) -> Bools:
        """Which nodes are of a chosen passage's document."""
        document = self._graph.document
        return (document[:, None] == document[self._nodes]).any(axis=1)

    def unseen(self, nodes: Ints) -> list[ChainStep]:
        """Those that are no candidates, in their order. How many there are decides their edges, so none is told."""
        gains, _ = self._gains()
        return [ChainStep(node, float(gains[node]), None) for node in nodes[self._not(self._seen)[nodes]].tolist()]

    def _not(self, nodes: Any) -> Bools:
        """Which nodes of the graph are not among some."""
        is_other = np.ones(len(self._graph), bool)
        is_other[nodes] = False
        return is_other

    def _step(self, node: int, gains: Floats, named: Floats) -> ChainStep:
        best, strongest = None, -np.inf
        graph = self._graph
        if self._chosen and graph.vectors.size and not (self._tied[node] or named[node] or graph.bm25[node]):
            nearest = max(self._nodes, key=lambda chosen: float(graph.near(chosen)[node]))
            return ChainStep(node, float(gains[node]), Tie(nearest, NEAR, -1, 0, 0))
        for chosen in self._chosen if self._tied[node] > named[node] else ():
            for edges, strength in chosen.edges:
                for at in np.flatnonzero(edges.node == node):
                    if best is None or _LED**chosen.led * strength[at] > strongest:
                        strongest = _LED**chosen.led * strength[at]
                        best = Tie(chosen.node, *(int(getattr(edges, name)[at]) for name in Tie._fields[1:]))
        return ChainStep(node, float(gains[node]), best)

    def _gains(self) -> tuple[Floats, Floats]:
        """The gain of each node, and the part of it for a title in the question."""
        graph, weights, chosen = self._graph, self._weights, self._nodes
        if not len(graph):
            return np.zeros(0), np.zeros(0)
        if len(self._named) < len(graph):
            self._named = self._titles_asked()
        # BM25 counts more for a question without a title: in part for the first passage, and for all where names are
        # few, as in documentation, since they are what ties passages.
        bm25 = weights.bm25 + weights.unnamed * self._unsure * max(self._nameless, 0.0 if chosen else _AT_FIRST)
        sentence, opening = graph.in_sentences(self._words)
        tied, second, others = self._compare()
        named = self._named * np.where(graph.overlapping(chosen), weights.taken, 1.0)
        gains = named + tied + weights.second * second + weights.others * others
        gains += bm25 * graph.bm25 + weights.similarity * graph.near()
        if chosen:
            gains += weights.near * np.max([graph.near(node) for node in chosen], axis=0)
            gains -= weights.alike * np.max([graph.alike(node) for node in chosen], axis=0)
        gains += weights.coverage * (graph.node_has @ self._words) + weights.pairs * (graph.node_pairs @ self._pairs)
        gains += weights.sentence * sentence + weights.opening * opening
        gains -= weights.surplus * graph.surplus + weights.length * graph.length
        gains -= weights.listing * np.maximum(graph.listing - _LISTING, 0.0)
        gains = np.where(self._of_chosen(), self._lowered(gains), gains)
        gains[self._copies] = _COPY
        return gains, named

    def _titles_asked(self) -> Floats:
        """The gain for titles in the question, before any is taken."""
        graph, weights = self._graph, self._weights
        strength = graph.match_certainty * specificity(graph.match_rarity, _TITLE_RARITY * weights.rarity)
        strength *= np.where(graph.later, weights.later, 1.0)
        names = graph.names[np.arange(len(graph)), graph.match]
        return weights.named * strength * occurrences(names, self._titles) ** -weights.ambiguity

    def _compare(self) -> tuple[Floats, Floats, Floats]:
        """Compare the chosen passages with the nodes that they were not compared with.

        Returns:
            The strength of each node's strongest edge, of the strongest one of another relation, and of the strongest
            ones to the other chosen passages, together.
        """
        graph, size = self._graph, len(self._graph)
        self._copies = np.append(self._copies, np.zeros(size - len(self._copies), bool))
        for chosen in self._chosen:
            compared = chosen.ties.shape[1]
            if compared == size:
                continue
            edges = graph.edges(chosen.node, compared)
            strength = self._strength(edges, chosen)
            chosen.ties = np.append(chosen.ties, np.zeros((len(_RELATIONS), size - compared)), axis=1)
            np.maximum.at(chosen.ties, (edges.relation, edges.node), strength)
            # A shared name that is a title is told as the link that it mostly is.
            chosen.edges.append((edges, strength / np.where(edges.in_title, self._weights.in_title, 1.0)))
            self._copies[graph.copies(chosen.node)] = True
        ties = np.zeros((1, len(_RELATIONS), size))  # of each chosen passage, each relation, each node
        if self._chosen:
            ties = np.stack([chosen.ties * _LED**chosen.led for chosen in self._chosen])
        related = np.sort(ties.max(axis=0), axis=0)
        self._tied = related[-1]
        return self._tied, related[-2], ties.max(axis=1).sum(axis=0) - self._tied

    def _strength(self, edges: Edges, chosen: _Chosen) -> Floats:
        graph, weights, shared = self._graph, self._weights, edges.relation == SHARED
        by_name = edges.relation <= SHARED
        specific = specificity(edges.rarity, weights.rarity)
        strength = chosen.trust * edges.certainty * np.where(by_name, specific, np.maximum(specific, _UNTOLD))
        strength *= np.where(edges.in_question, _IN_QUESTION, 1.0)
        relations = weights.link, weights.back, weights.shared, weights.hyperlink, weights.linked
        strength *= np.array(relations)[edges.relation]
        strength *= np.where(edges.in_title, weights.in_title, 1.0)
        strength *= np.where((edges.relation == LINK) & graph.later[edges.node], weights.later, 1.0)
        bearers = np.where(shared, edges.sharing, occurrences(edges.name, self._titles))
        strength *= np.where(by_name, bearers**-weights.ambiguity, 1.0)  # a hyperlink is not ambiguous
        beside = graph.has[edges.sentence] & (edges.sentence >= 0)[:, None]
        leads = (edges.relation == LINK) | (edges.relation == HYPERLINK)
        cue = np.where(leads, beside @ chosen.before, beside @ chosen.after)
        origin = graph.has[edges.origin] & (edges.origin >= 0)[:, None]
        about = weights.cue * cue + weights.origin * (origin @ chosen.before)
        return strength * (1 + about)


def _ordered(nodes: Ints, gains: Floats) -> Ints:
    return nodes[np.argsort(-gains[nodes].round(DIGITS), kind="stable")]


def _reason(graph: Graph, step: ChainStep) -> Reason:
    question = graph.question
    if step.tie and step.tie.relation == NEAR:
        has, source = graph.node_has[step.node], graph.passage(step.tie.chosen).id
        return Reason("near", "", source, _among(question.words, has))
    if tie := step.tie:
        has = graph.has[tie.sentence] if tie.sentence >= 0 else np.zeros(len(question.words), bool)
        name, source = graph.text(tie.place, tie.length), graph.passage(tie.chosen).id
        return Reason(_RELATIONS[tie.relation], name, source, _among(question.words, has))
    start, end = graph.span[step.node].tolist()
    found = "words" if graph.bm25[step.node] or not graph.vectors.size else "near"
    via = "named" if graph.match_certainty[step.node] else found
    name = wording(question.written, start, end) if via == "named" else ""
    return Reason(via, name, None, _among(question.words, graph.node_has[step.node]))


def _among(words: Sequence[str], has: Bools) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word, is_there in zip(words, has.tolist(), strict=True) if is_there))


class ChainRetriever(SearchTool, Shared):
    """A thread-safe `Retriever` that follows chains of evidence through a BM25 index or a question's own pool.

    A question costs at most three searches, or four for more than 30 passages. Copying returns the retriever itself.

    Args:
        source: A `BM25Index` or its folder, a `LuceneSearcher` of Pyserini or a `PassagePool`; None if every question
            has its own pool (see `over`).
        weights: The weights of the features.
        vectors: Vectors of the same index; what is near to the question, alone or with a chosen passage, becomes a
            candidate and gains.
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
        searched = cast(ChainSource | None, chain_source(source))
        if not getattr(searched, "has_titles", True):
            path = getattr(searched, "path", "DIR")
            raise PolyhopError(
                f"the chain retriever looks up titles, which the index {path} does not have. Add them once: polyhop "
                f"index --adopt {path}. Or search with BM25 alone: --retriever bm25"
            )
        if vectors is not None and getattr(searched, "manifest", None) != vectors.manifest:
            raise ValueError("the vectors belong to another index than the one to search")
        if searched is not None and vectors is not None:
            searched = searched.pinned()  # the vectors are of this state
        self.source, self.vectors, self.adaptive = searched, vectors, adaptive
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
        return Graph(query, self.source.pinned(), self.vectors if query.strip() else None)

    def over(self, source: ChainSource) -> ChainRetriever:
        """The same settings over another collection, without vectors."""
        return self._but(source=source, vectors=None)

    def with_weights(self, weights: ChainWeights, *, adaptive: bool) -> ChainRetriever:
        """The same retriever with other weights."""
        return self._but(weights=weights, adaptive=adaptive)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> ChainRetriever:
        """The same retriever with other BM25 parameters."""
        return self._but(source=self.source and self.source.with_bm25(k1, b))

    def _but(self, **changes: Any) -> ChainRetriever:
        same = {name: getattr(self, name) for name in ("source", "weights", "vectors", "adaptive")}
        return ChainRetriever(**same | changes)

    @property
    def k1(self) -> float:
        return self.source.k1 if self.source else 0.9

    @property
    def b(self) -> float:
        return self.source.b if self.source else 0.4

    def __reduce__(self) -> Any:
        return partial(ChainRetriever, vectors=self.vectors, adaptive=self.adaptive), (self.source, self.weights)

    def __repr__(self) -> str:
        return f"ChainRetriever({self.source!r})"
