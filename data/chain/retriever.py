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

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import PolyhopError
from ..passages import Hit, Reason, SearchTool, Shared, check_page
from .graph import DIGITS, Graph, Node, Tie, is_copy, specificity
from .store import ChainSource

if TYPE_CHECKING:
    from ..dense import DenseIndex

_SURE = 0.7  # strength of a title in the question from which on BM25 counts as little as `bm25` says
_FEW_NAMES, _MORE_NAMES = 0.15, 0.05  # share of words in names: documentation has 0.1 to 0.15, Wikipedia 0.27 to 0.33
_LISTING, _LISTING_LOSS = 0.3, 2.0  # share of words in links from which on a passage is a list; its loss by the rest
_LENGTH_LOSS = 0.1  # by the logarithm of the passage's words in hundreds
_SURPLUS_LOSS = 0.07  # by the rarity of words of its title that the question does not have
_EXPANDED = 3  # chosen passages whose neighbors become candidates
_SEARCHED = 2  # of these, those whose names are searched; of the others the titles that they mention must do
LONGEST_CHAIN = 6  # passages chosen one by one; the rest keep the order they have then
_BEST, _FURTHER = 3, 4  # chosen passages after which BM25 has its say, see `_Chain._overlooked`
_IN_QUESTION = 0.4  # factor for an edge by a name that the question contains
_TITLE_RARITY = 1 / 3  # factor for `rarity`: a title in the question is rarely a coincidence
_ASTRAY = 0.6  # factor for the ties of a chosen passage that explains nothing of what the others left
_ON_TRACK = 0.5  # share of what they left from which on its ties count in full
_SECOND = 1.5  # factor for the strongest tie of another relation than the strongest one
_LED = 0.9  # factor for the ties of a passage for each chosen one that it led to
_COPY = -9.0  # gain of a copy of a chosen passage
_AGAIN = 0.45  # factor for a passage whose document has a better one in the ranking
_TAKEN = 0.33  # factor for a title in the question once a passage with an overlapping title was chosen
_LATER = 0.65  # factor for a title that is named or mentioned, of a passage that does not open its document
_IN_TITLE = 1.5  # factor for a shared name in the title
_LINKED = 0.5  # factor for a hyperlink of the other passage, which leads to the chosen one
_ORIGIN = 0.5  # factor for the words in the sentence in which the chosen passage has a shared name first
_AMBIGUITY = -0.28  # exponent of the number of passages that have a name, by which it loses weight
_SIMILAR, _ALIKE = 0.4, 0.5  # of `near`: the cosine with the question alone; the loss by that with a chosen passage


def _weight(value: float, high: float) -> Any:
    return field(default=value, metadata={"low": 0.0, "high": high})


@dataclass(frozen=True)
class ChainWeights:
    """The weights in a passage's gain. A gain of 1 is a question whose every word is explained at once."""

    bm25: float = _weight(0.065, 2.0)  # BM25 score divided by the best passage's
    # What BM25 weighs more if the question has no title, less for a title that is less sure, as far as the passages
    # have few names.
    unnamed: float = _weight(0.9, 5.0)
    coverage: float = _weight(0.5, 3.0)  # the question's words in the passage that no chosen passage explains
    sentence: float = _weight(0.9, 3.0)  # those of them in the title and the best single sentence
    opening: float = _weight(0.6, 3.0)  # those of them in the title and the first sentence
    # Pairs of neighbours among the question's words that are neighbours in the passage and in no chosen one.
    pairs: float = _weight(1.2, 3.0)
    # Share of a word's weight that a chosen passage with it takes away; 1 takes all.
    explained: float = _weight(0.56, 1.0)
    named: float = _weight(0.9, 3.0)  # a title that the question contains
    link: float = _weight(0.72, 3.0)  # a chosen passage mentions the title, or its title is mentioned
    shared: float = _weight(0.6, 3.0)  # a chosen passage and this one mention the same name
    hyperlink: float = _weight(1.2, 3.0)  # a chosen passage links to this one or its document, or `_LINKED` back
    others: float = _weight(0.3, 3.0)  # further ties: of another relation, and to other chosen passages
    # Increase of a tie by the weight of the question's words in the sentence of the mention, and by half of those in
    # which the chosen passage has a shared name first.
    cue: float = _weight(1.98, 5.0)
    rarity: float = _weight(0.6, 3.0)  # rarity at which a name counts half; 1 is a word of a single passage
    near: float = _weight(1.0, 3.0)  # with vectors: the best cosine with question and chosen passage, read as one text
    enough: float = _weight(1.38, 3.0)  # least gain to continue an adaptive chain

    def __post_init__(self) -> None:
        for weight in fields(self):
            value, low, high = getattr(self, weight.name), weight.metadata["low"], weight.metadata["high"]
            if not low <= value <= high:  # also refuses nan
                raise ValueError(f"{weight.name} must be in {low}..{high}, got {value}")


class ChainStep(NamedTuple):
    """A chosen passage, its gain over those chosen before it, and why it was chosen."""

    node: Node
    gain: float
    reason: Reason
    source: Node | None = None  # the chosen passage that led to it


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
        trust: The factor for its ties.
        led: The number of chosen passages that it led to.
        ties: The strongest tie of each relation to each node that it was compared with, and its strength.
    """

    node: Node
    before: list[float]
    after: list[float]
    trust: float
    led: int = 0
    ties: dict[Node, dict[str, tuple[float, Tie]]] = field(default_factory=dict)


class _Chain:
    """The passages chosen so far, and what the candidates would add to them."""

    def __init__(self, graph: Graph, weights: ChainWeights) -> None:
        self._graph, self._weights = graph, weights
        self._words, self._pairs = graph.question.weights, graph.question.pairs
        self._relations = {
            "link": weights.link,
            "back": weights.link,
            "shared": weights.shared,
            "hyperlink": weights.hyperlink,
            "linked": weights.hyperlink * _LINKED,
        }
        self._candidates = dict[Node, None]()  # in the order in which they were found
        self._chosen: list[_Chosen] = []
        self._titles = Counter[str]()  # the candidates', of documents
        self._copies = set[Node]()  # of chosen passages
        self._unsure = self._nameless = 0.0  # how little the question has a title, and the first candidates names

    def add(self, nodes: Iterable[Node]) -> None:
        """Add candidates."""
        is_first = not self._candidates
        new = [node for node in nodes if node not in self._candidates]
        self._candidates |= dict.fromkeys(new)
        self._titles.update(title for node in new if not node.is_later for title in node.words.titles if title)
        if is_first:
            best = max(map(self._named, self._candidates), default=0.0)
            self._unsure = max(0.0, 1.0 - best / _SURE / (self._weights.named or 1.0))
            self._nameless = 1.0 - min(max((self._graph.share_of_names() - _FEW_NAMES) / _MORE_NAMES, 0.0), 1.0)

    def take(self, step: ChainStep) -> None:
        """Choose a passage."""
        node, before = step.node, self._words
        for earlier in self._chosen:
            earlier.led += earlier.node is step.source
        left = 1 - self._weights.explained
        self._words = [weight * left if word in node.has else weight for word, weight in enumerate(before)]
        self._pairs = [0.0 if pair in node.pairs else weight for pair, weight in enumerate(self._pairs)]
        share = _sum(before, node.has) / (sum(before) or 1.0)
        trust = _ASTRAY + (1 - _ASTRAY) * min(share / _ON_TRACK, 1.0)
        self._chosen.append(_Chosen(node, before, self._words, trust))

    def next(self, *, adaptive: bool) -> ChainStep | None:
        """The candidate with the highest gain; without ``adaptive`` one that BM25 chooses may come in its place."""
        gains = self._gains(self._candidates)
        if not (order := self._ordered(gains)):
            return None
        overlooked = None if adaptive else self._overlooked()
        return self._step(overlooked or order[0], gains[order[0]])

    def rest(self, most: int) -> list[ChainStep]:
        """The other candidates; of a document without a chosen passage, all but the best one come later."""
        gains = self._gains(self._candidates)
        documents = self._documents()
        for node in self._ordered(gains):
            if node.document in documents and not self._is_again(node):
                gains[node] = min(gains[node], gains[node] * _AGAIN)
            documents.add(node.document)
        return [self._step(node, gains[node]) for node in self._ordered(gains)[:most]]

    def unseen(self, nodes: Iterable[Node]) -> list[ChainStep]:
        """Those that are no candidates, in their order. How many there are decides their ties, so none is told."""
        others = [node for node in nodes if node not in self._candidates]
        gains = self._gains(others)
        return [ChainStep(node, gains[node], self._reason_of(node)) for node in others]

    def _ordered(self, gains: dict[Node, float]) -> list[Node]:
        """Those that are not chosen, highest gain first."""
        chosen = {chosen.node for chosen in self._chosen}
        nodes = [node for node in gains if node not in chosen]
        return sorted(nodes, key=lambda node: -round(gains[node], DIGITS))

    def _documents(self) -> set[int]:
        return {chosen.node.document for chosen in self._chosen}

    def _is_again(self, node: Node) -> bool:
        return node.document in self._documents()

    def _overlooked(self) -> Node | None:
        """A passage that BM25 finds and a chain leaves, since one page may hold the whole answer.

        After `_BEST` passages that is BM25's best one, unless it opens its page. After `_FURTHER` it is the best one
        left of the first passage's page, if the question names that page.
        """
        chosen = [chosen.node for chosen in self._chosen]

        def is_left(node: Node) -> bool:
            is_version = node in self._copies and not self._is_again(node)  # of a page that the chain has
            return node not in chosen and not is_version and node.bm25 > 0

        if len(chosen) == _BEST:
            best = max(self._graph.nodes, key=lambda node: node.bm25)
            return best if best.is_later and is_left(best) else None
        if len(chosen) != _FURTHER or not chosen[0].match:
            return None
        of_page = [node for node in self._graph.nodes if node.document == chosen[0].document and is_left(node)]
        return max(of_page, key=lambda node: node.bm25, default=None)

    # --- gains -------------------------------------------------------------------------------------------------------

    def _gains(self, nodes: Iterable[Node]) -> dict[Node, float]:
        self._compare()
        documents = self._documents()
        gains = dict[Node, float]()
        for node in nodes:
            gain = self._gain(node)
            if node.document in documents:
                gain = min(gain, gain * _AGAIN)  # a negative gain stays
            gains[node] = _COPY if node in self._copies else gain
        return gains

    def _gain(self, node: Node) -> float:
        weights, words = self._weights, self._words
        # BM25 counts more for a question without a title where names are few, as in documentation, since they are what
        # ties passages.
        bm25 = weights.bm25 + weights.unnamed * self._unsure * self._nameless
        tied, others = self._ties(node)
        gain = self._still_named(node) + tied + weights.others * others + bm25 * node.bm25
        gain += weights.coverage * _sum(words, node.has) + weights.pairs * _sum(self._pairs, node.pairs)
        gain += weights.sentence * max(_sum(words, sentence) for sentence in node.evidence)
        gain += weights.opening * _sum(words, node.opening)
        gain -= _LENGTH_LOSS * node.length + _SURPLUS_LOSS * node.surplus
        gain -= _LISTING_LOSS * max(node.listing - _LISTING, 0.0)
        if self._graph.has_vectors:
            gain += weights.near * _SIMILAR * self._graph.nearness(node)
            if chosen := [chosen.node for chosen in self._chosen]:
                gain += weights.near * max(self._graph.nearness(node, earlier) for earlier in chosen)
                gain -= weights.near * _ALIKE * max(float(node.vector @ earlier.vector) for earlier in chosen)
        return gain

    def _named(self, node: Node) -> float:
        """The gain for a title in the question, before any is taken."""
        if not (match := node.match):
            return 0.0
        strength = match.certainty * specificity(match.rarity, _TITLE_RARITY * self._weights.rarity)
        strength *= _LATER if node.is_later else 1.0
        return self._weights.named * strength * self._bearers(match.title) ** _AMBIGUITY

    def _still_named(self, node: Node) -> float:
        """The same; less if a passage was chosen whose title the question has in the same place."""
        if not (match := node.match):
            return 0.0
        taken = [chosen.node.match for chosen in self._chosen if chosen.node.match]
        overlaps = any(other.start < match.end and match.start < other.end for other in taken)
        return self._named(node) * (_TAKEN if overlaps else 1.0)

    def _bearers(self, title: str) -> int:
        return max(self._titles[title], 1)

    def _ties(self, node: Node) -> tuple[float, float]:
        """The strength of the strongest tie; and of further ones, together: the strongest one of another relation, and
        the strongest ones to the other chosen passages."""
        relations, best = dict[str, float](), list[float]()
        for chosen in self._chosen:
            if not (ties := chosen.ties.get(node)):
                continue
            fading, strongest = _LED**chosen.led, 0.0
            for relation, (strength, _) in ties.items():
                strongest = max(strongest, fading * strength)
                relations[relation] = max(relations.get(relation, 0.0), fading * strength)
            best.append(strongest)
        if not best:
            return 0.0, 0.0
        first, second, *_ = sorted((*relations.values(), 0.0, 0.0), reverse=True)
        return first, _SECOND * second + sum(best) - first

    def _compare(self) -> None:
        """Compare the chosen passages with the nodes that they were not compared with."""
        for chosen in self._chosen:
            new = [node for node in self._graph.nodes if node not in chosen.ties]
            chosen.ties |= {node: {} for node in new}
            for node, tie in self._graph.ties(chosen.node, new):
                strength = self._strength(tie, chosen, node)
                ties = chosen.ties[node]
                if tie.relation not in ties or strength > ties[tie.relation][0]:
                    ties[tie.relation] = strength, tie
            self._copies |= {node for node in new if is_copy(node, chosen.node)}

    def _strength(self, tie: Tie, chosen: _Chosen, node: Node) -> float:
        weights = self._weights
        specific = specificity(tie.rarity, weights.rarity)
        strength = self._relations[tie.relation] * chosen.trust * tie.certainty
        if tie.relation in ("hyperlink", "linked"):
            strength *= specific  # and not ambiguous
        else:
            bearers = tie.bearers or self._bearers(tie.name)
            strength *= specific * bearers**_AMBIGUITY
        strength *= _IN_QUESTION if tie.in_question else 1.0
        strength *= _IN_TITLE if tie.in_title else 1.0
        strength *= _LATER if tie.relation == "link" and node.is_later else 1.0
        leads = tie.relation in ("link", "hyperlink")
        about = _sum(chosen.before if leads else chosen.after, tie.beside)
        return strength * (1 + weights.cue * (about + _ORIGIN * _sum(chosen.before, tie.origin)))

    # --- reasons -----------------------------------------------------------------------------------------------------

    def _step(self, node: Node, gain: float) -> ChainStep:
        """With the strongest tie as its reason, if that counts more than its title in the question."""
        graph, named = self._graph, self._still_named(node)
        tied, _ = self._ties(node)
        if self._chosen and graph.has_vectors and not (tied or named or node.bm25):
            nearest = max((chosen.node for chosen in self._chosen), key=lambda chosen: graph.nearness(node, chosen))
            reason = Reason("near", "", nearest.passage.id, graph.question.listed(node.has))
            return ChainStep(node, gain, reason, nearest)
        if tied <= named:
            return ChainStep(node, gain, self._reason_of(node))
        ties = [
            (_LED**chosen.led * strength / (_IN_TITLE if tie.in_title else 1.0), chosen.node, tie)
            for chosen in self._chosen
            for strength, tie in chosen.ties.get(node, {}).values()
        ]
        # A shared name that is a title is told as the link that it mostly is.
        _, source, tie = max(ties, key=lambda entry: entry[0])
        name = tie.holder.words.wording(tie.start, tie.end)
        return ChainStep(
            node, gain, Reason(tie.relation, name, source.passage.id, graph.question.listed(tie.beside)), source
        )

    def _reason_of(self, node: Node) -> Reason:
        """The reason of a passage that no other one led to."""
        question = self._graph.question
        words = question.listed(node.has)
        if match := node.match:
            return Reason("named", question.wording(match.start, match.end), None, words)
        return Reason("words" if node.bm25 or not self._graph.has_vectors else "near", "", None, words)


def _sum(weights: list[float], numbers: Iterable[int]) -> float:
    return sum(map(weights.__getitem__, numbers))  # twice as fast as a comprehension, and called 6,000 times a question


class ChainRetriever(SearchTool, Shared):
    """A thread-safe `Retriever` that follows chains of evidence through a BM25 index or a question's own pool.

    A question costs at most three searches, or four for more than 30 passages. Copying returns the retriever itself.

    Args:
        source: A `BM25Index` or a `PassagePool`; None if every question has its own pool (see `over`).
        weights: The weights of the features.
        vectors: Vectors of the same index; what is near to the question, alone or with a chosen passage, becomes a
            candidate and gains.
        adaptive: Return as many passages as the chain needs (1 to 6, and at most ``k``) instead of ``k``.

    Raises:
        PolyhopError: the source is neither, or an index of Anserini or Pyserini that is not adopted (see
            `adopt_index`).
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
        if source is not None and not hasattr(source, "pinned"):
            kind = type(source).__name__
            raise PolyhopError(f"a chain is searched in a BM25Index('DIR') or a PassagePool, got {kind}")
        if not getattr(source, "has_titles", True):
            path = getattr(source, "path", "DIR")
            raise PolyhopError(
                f"the chain retriever looks up titles, which the index {path} does not have. Add them once: polyhop "
                f"index --adopt {path}. Or search with BM25 alone: --retriever bm25"
            )
        if vectors is not None and getattr(source, "manifest", None) != vectors.manifest:
            raise ValueError("the vectors belong to another index than the one to search")
        if source is not None and vectors is not None:
            source = source.pinned()  # the vectors are of this state
        self.source, self.vectors, self.adaptive = source, vectors, adaptive
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
        return [Hit(step.node.passage, score, rank, step.reason) for rank, (step, score) in ranked]

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
