"""The passages that a question leads to, and the ties between them.

A graph is for one chain: how many passages share a name is counted among those that were found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from ..languages import CASELESS, NOUNS, spoken
from ..passages import Passage
from ..text import UNSPACED, clean
from .store import ChainSource, Store
from .words import PassageWords, Word, Words, may_be_names, place_key, read, stem_of, wording, words_of

if TYPE_CHECKING:
    from ..dense import DenseIndex

_MOST_WORDS = 300
_NEAR = 3  # words between which two of a question are neighbours
_AGENT = re.compile(r".{2,}tor")  # who does what the word says without "or": not Tor
CERTAINTY = (1.0, 0.9, 0.9, 0.8, 0.6, 0.6, 0.6)  # that one of the `title_forms` means the passage
DIGITS = 9  # of weights that are compared
_LOWER_CASE = 0.4  # certainty of a name without capitals: "his father" is not the page "Father"
_UNCASED_RARITY = 2.0  # at which a name is half certain where capitals do not tell it
_CONTENTS, _SAME_PAGE = 0.3, 0.5  # certainty of a link in contents; and that it means another passage of that document
_QUESTION_HITS = 30
_DEEP = 300  # the question's hits among which those of different documents are looked for
_OF_ONE = 3  # of these, those of one document
_TITLE_HITS = 20  # passages found by title per look-up
_LONGEST_IN_QUESTION, _LONGEST_IN_TEXT = 12, 7  # words of a title that is looked up
_NAMES = 4  # names of a passage to search for
_NAME_HITS = 20  # passages found by them
_MOST_NAMES = 100  # of a passage that are compared
_BESIDE = 8  # words beside a name that tell what it is
_NEAR_HITS = 20  # passages found by vectors per search
_COPY = 0.7  # share of the shorter passage's distinct words that a copy has (without titles, of the longer one's)


class Explained(NamedTuple):
    """The question's words in each text of a passage, and its pairs of neighbours, all as numbers."""

    sentences: list[frozenset[int]]
    pairs: frozenset[int]


class Question(Words):
    """A question over a collection, whose frequencies are the weights of its words.

    Attributes:
        language: Of the question.
        words: The distinct topic words, as written; a word of code once for each of its parts.
        idf, weights: Their IDF, 1 for a word of a single passage; and as shares of the sum.
        pairs: Weights of pairs of neighbouring words, as shares of the sum.
    """

    def __init__(self, text: str, store: Store) -> None:
        self.text = text
        language = self.language = spoken(text, store.languages)
        self._written: list[Word] = read(clean(text), language)[:_MOST_WORDS]
        self.forms, self.stems, self.cased = [], [], []  # cased: a word may be in a name, by its capital
        self.words, self._numbers, places = list[str](), dict[str, int](), list[int]()
        # "directed" counts for "director": Porter's stems differ, unlike those of composed and composer.
        verbs = dict[str, int]()
        for word, is_cased in zip(self._written, may_be_names(text, self._written, language), strict=True):
            for form, stem in zip(word.forms, word.stems, strict=True):
                if stem and stem not in self._numbers:
                    number = self._numbers[stem] = len(self.words)
                    self.words.append(form if UNSPACED.match(form) else word.written)
                    places.append(len(self.forms))
                    if _AGENT.fullmatch(form):
                        verbs[stem_of(form[:-2])] = number
                self.forms.append(form)
                self.stems.append(stem)
                self.cased.append(is_cased)
        self.starts = [True] * len(self.forms)
        self.joined = f" {' '.join(self.forms)} "
        self.idf = [store.idf(stem) for stem in self._numbers]
        self.weights = _shares(self.idf)
        self._numbers = verbs | self._numbers
        self._pairs, weights = dict[tuple[int, int], int](), list[float]()
        for number in range(len(places) - 1):
            if places[number + 1] - places[number] <= _NEAR:
                self._pairs[number, number + 1] = self._pairs[number + 1, number] = len(weights)
                weights.append(self.weights[number] + self.weights[number + 1])
        self.pairs = _shares(weights)

    def wording(self, start: int, end: int) -> str:
        """Some words as people read them."""
        return wording(self._written, start, end)

    def places(self, passage: PassageWords) -> list[tuple[int, int]]:
        """The places in a passage where the question's words are, each with the number of the word."""
        numbers = self._numbers
        return [(place, numbers[stem]) for place, stem in enumerate(passage.stems) if stem in numbers]

    def explained(self, passage: PassageWords) -> Explained:
        """What a passage explains of the question."""
        places = self.places(passage)
        sentences = [set[int]() for _ in passage.texts]
        for place, number in places:
            sentences[passage.sentence[place]].add(number)
        pairs = set[int]()
        for (place, number), (next_place, next_number) in pairwise(places):
            is_near = next_place - place <= _NEAR and passage.sentence[place] == passage.sentence[next_place]
            if is_near and (number, next_number) in self._pairs:
                pairs.add(self._pairs[number, next_number])
        return Explained(list(map(frozenset, sentences)), frozenset(pairs))

    def listed(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Some of its words, in their order."""
        return tuple(dict.fromkeys(self.words[number] for number in sorted(numbers)))


class Match(NamedTuple):
    """A title in the question: its words there, the certainty that it means the passage, and its rarity."""

    start: int
    end: int
    certainty: float
    rarity: float
    title: str


class Tie(NamedTuple):
    """A mention that ties a passage to a chosen one.

    Attributes:
        relation: "link": the chosen one mentions the title of the other one; "back": it is mentioned so; "shared": both
            mention a name; "hyperlink": the chosen one links to the other one; "linked": it is linked so.
        holder: The passage with the mention, which is the words from ``start`` to ``end`` in it.
        certainty: That the mention means the passage.
        bearers: The number of passages with a shared name; 0 for titles.
        in_title: Whether the other passage's title contains the shared name.
        origin: The question's words where the chosen passage has a shared name first.
        in_question: Whether the question has the title that is mentioned, which makes the tie weaker.
    """

    relation: str
    holder: Node
    start: int
    end: int
    certainty: float
    rarity: float
    bearers: int = 0
    in_title: bool = False
    origin: frozenset[int] = frozenset()
    in_question: bool = False

    @property
    def name(self) -> str:
        return self.holder.words.name(self.start, self.end)

    @property
    def beside(self) -> frozenset[int]:
        """The question's words in the sentence of the mention; none for a name in a title."""
        text = self.holder.words.sentence[self.start]
        if self.relation == "shared" and text == 0:
            return frozenset()
        return self.holder.sentences[text]


class Node:
    """A passage, with what it explains of the question (numbers of words and pairs, see `Question`).

    Attributes:
        bm25: Its score divided by the best score; 0 if the question did not find it.
        sentences, pairs, has: What each of its texts explains, its pairs, and all of it.
        evidence: What the title explains together with each of the texts, each combination once.
        opening: What title and first sentence explain.
        document: A hash of its document.
        is_later: Whether it is a passage of a document, but not the first.
        length: The natural logarithm of the number of words, in hundreds.
        listing: The share of its words that are links to other documents.
        match: Its title in the question.
        surplus: The rarity of the title's words that the question does not have.
        links: Its `LinkPlace`, each with the document and the row that it leads to, -1 for none.
        vector: Its unit vector, with vectors.
    """

    def __init__(self, row: int, bm25: float, passage: Passage, document: int, question: Question) -> None:
        words = words_of(passage)
        self.row, self.bm25, self.passage, self.words, self.document = row, bm25, passage, words, document
        self.sentences, self.pairs = question.explained(words)
        title = self.sentences[0]
        self.evidence = {title | sentence for sentence in self.sentences}
        self.opening = title.union(*self.sentences[1:2])
        self.has = title.union(*self.sentences)
        self.is_later = bool(passage.place and passage.place.sentence)
        size = len(words.forms)
        self.length = log(size / 100)
        self.listing = min(sum(link.end - link.start for link in words.links) / size, 1.0)
        self.match: Match | None = None
        self.surplus = 0.0
        self.links: list[tuple[Any, int, int]] = []
        self.vector: Any = None

    @property
    def title(self) -> str:
        return self.words.titles[0]


class Graph:
    """The passages around a question, searched once each."""

    def __init__(self, text: str, source: ChainSource, dense: DenseIndex | None = None) -> None:
        self._source, self._store, self._dense = source, source.store, dense
        self.question = Question(text, self._store)
        self.nodes: list[Node] = []  # in the order in which they were found
        self._rows: dict[int, Node] = {}
        self._best = 0.0  # BM25 score
        self._start: list[Node] | None = None
        self._hops: dict[Node | None, Any] = {}
        self._names: dict[Node, list[tuple[int, int]]] = {}

    def share_of_names(self) -> float:
        """The share of the words of all nodes that are in capitalized names; 0 where a script has no capitals."""
        if self.question.language in CASELESS:
            return 0.0
        words = sum(len(node.words.cased) for node in self.nodes)
        return sum(sum(node.words.cased) for node in self.nodes) / max(words, 1)

    # --- searching ---------------------------------------------------------------------------------------------------

    def start(self) -> list[Node]:
        """The passages that the question finds, of a long document only a few, and those that it names."""
        if self._start is None:
            hits = self._hits()
            self._best = hits[0][1] if hits else 0.0
            if len(hits) < len(self._store):
                named = self._titled(self.question, _LONGEST_IN_QUESTION)
                hits += [(row, 0.0) for row in (*named, *self._nearest(None))]
            self._add(hits)
            self._start = list(self.nodes)
        return self._start

    def _hits(self) -> list[tuple[int, float]]:
        hits = list[tuple[int, float]]()
        for depth in (_QUESTION_HITS, _DEEP):
            counts, hits = Counter[int](), []
            for row, score in self._source.ranking(self.question.text, depth):
                document = int(self._store.documents[row])
                counts[document] += 1
                if counts[document] <= _OF_ONE and len(hits) < _QUESTION_HITS:
                    hits.append((row, score))
            if len(hits) == _QUESTION_HITS:
                break
        return hits

    def beyond(self, depth: int) -> list[Node]:
        """The question's hits up to a depth, if that is more than those of `start`.

        They are not candidates of the chain, so that a ranking does not depend on its length.
        """
        return self._add(self._source.ranking(self.question.text, depth)) if depth > _QUESTION_HITS else []

    def neighbors(self, chosen: Node, *, names: bool = True) -> list[Node]:
        """The passages that a passage links to or whose titles it mentions, and with ``names`` those with its names and
        missing words."""
        if len(self.start()) == len(self._store):
            return []  # all are candidates
        rows = self._titled(chosen.words, _LONGEST_IN_TEXT)
        if names and (wanted := self._names_to_search(chosen)):
            missing = [word for number, word in enumerate(self.question.words) if number not in chosen.has]
            rows += [row for row, _ in self._source.ranking(" ".join((*wanted, *missing)), _NAME_HITS)]
        rows += [row for _, _, row in chosen.links if row >= 0]
        return self._add([(row, 0.0) for row in (*rows, *self._nearest(chosen))])

    def _titled(self, words: Words, longest: int) -> list[int]:
        """The rows of the passages whose title is a run of words; if there are many, those of the rarest titles, and of
        the last one the first in the index: they open documents."""
        titles = self._store.titles_in(words, longest)
        if len(titles) > _TITLE_HITS:
            rarity = {span: self._store.rarity(words.stems[slice(*span)]) for span in {span for _, span in titles}}
            titles.sort(key=lambda title: (-round(rarity[title[1]], DIGITS), title[0]))
        return list(dict.fromkeys(row for row, _ in titles))[:_TITLE_HITS]

    def _names_to_search(self, chosen: Node) -> list[str]:
        """Those with most of the question's words near them, or else in their sentences; of equals the rarest."""
        words, weights = chosen.words, self.question.weights
        places = self.question.places(words)

        def rank(span: tuple[int, int]) -> tuple[float, float, float]:
            start, end = span
            text = words.sentence[start]
            near = {
                number
                for place, number in places
                if 0 < max(start - place, place - end + 1) <= _BESIDE and words.sentence[place] == text
            }
            beside, around = (sum(weights[number] for number in numbers) for numbers in (near, chosen.sentences[text]))
            return -round(beside, DIGITS), -round(around, DIGITS), -self._store.rarity(words.stems[start:end])

        return [words.wording(*span) for span in sorted(self.names(chosen), key=rank)[:_NAMES]]

    def names(self, chosen: Node) -> list[tuple[int, int]]:
        """The spans of the distinct names that a passage mentions and the question does not, after its own title."""
        if chosen not in self._names:
            words, spans = chosen.words, dict[str, tuple[int, int]]()
            bare = len((words.titles[1] or words.titles[0]).split())
            for start, end in [(0, bare), *words.names[:_MOST_NAMES]]:
                name = words.name(start, end)
                if any(words.stems[start:end]) and not self.question.find(name):
                    spans.setdefault(name, (start, end))
            self._names[chosen] = list(spans.values())
        return self._names[chosen]

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _add(self, hits: Sequence[tuple[int, float]]) -> list[Node]:
        """The nodes of some rows with their scores, each once, adding those that are new."""
        scores: dict[int, float] = {}
        for row, score in hits:
            if row not in self._rows:
                scores.setdefault(row, score)
        new = list[Node]()
        for (row, score), passage in zip(scores.items(), self._source.stored(list(scores)), strict=True):
            node = Node(row, score / (self._best or 1.0), passage, int(self._store.documents[row]), self.question)
            node.match = self._match(node)
            title = self._store.rarity(node.words.stems[: node.words.title_length])
            node.surplus = max(title - sum(self.question.idf[number] for number in node.sentences[0]), 0.0)
            self._rows[row] = node
            new.append(node)
        self._resolve_links(new)
        if self._dense and new:
            for node, vector in zip(new, self._dense.rows(list(scores)), strict=True):
                node.vector = vector
        self.nodes += new
        return list(dict.fromkeys(self._rows[row] for row, _ in hits))

    def _match(self, node: Node) -> Match | None:
        """The most certain form of a title that the question has."""
        question = self.question
        for form, title in enumerate(node.words.titles):
            if places := question.find(title):
                start = places[0]
                end = start + len(title.split())
                rarity = self._store.rarity(question.stems[start:end])
                certainty = CERTAINTY[form]
                if not any(question.cased[start:end]):
                    tells_nothing = question.language in (*CASELESS, NOUNS)
                    certainty *= specificity(rarity, _UNCASED_RARITY) if tells_nothing else _LOWER_CASE
                return Match(start, end, certainty, rarity, title)
        return None

    def _resolve_links(self, nodes: Sequence[Node]) -> None:
        """Find what links lead to: the document, which a wiki's link names in another way; then the place in it."""
        links = [(node, link) for node in nodes for link in node.words.links]
        rows = dict(reversed(self._store.find([place_key(link.document) for _, link in links])))
        documents = [
            int(self._store.documents[rows[which]]) if which in rows else link.document
            for which, (_, link) in enumerate(links)
        ]
        keys = [place_key(document, link.anchor) for document, (_, link) in zip(documents, links, strict=True)]
        rows |= reversed(self._store.find(keys))
        for which, (node, link) in enumerate(links):
            if which in rows:
                node.links.append((link, documents[which], rows[which]))

    # --- vectors -----------------------------------------------------------------------------------------------------

    @property
    def has_vectors(self) -> bool:
        return self._dense is not None

    def nearness(self, node: Node, chosen: Node | None = None) -> float:
        """The cosine with the question, or with question and chosen passage as one text."""
        return float(node.vector @ self._hop(chosen))

    def _hop(self, chosen: Node | None) -> Any:
        """The vector of the question, or of question and chosen passage."""
        if chosen not in self._hops:
            assert self._dense
            self._hops[chosen] = self._dense.vector(self.question.text, chosen.passage if chosen else None)
        return self._hops[chosen]

    def _nearest(self, chosen: Node | None) -> list[int]:
        """The rows whose vectors are nearest to `_hop`; none without vectors."""
        return [row for row, _ in self._dense.nearest(self._hop(chosen), _NEAR_HITS)] if self._dense else []

    # --- ties --------------------------------------------------------------------------------------------------------

    def ties(self, chosen: Node, nodes: Sequence[Node]) -> Iterator[tuple[Node, Tie]]:
        """All mentions that tie a chosen passage to others; a page does not lead to itself."""
        others = [node for node in nodes if node.document != chosen.document]
        for node in others:
            if node.title != chosen.title:  # versions of a page do not mention each other
                for tie in self._mentions("link", chosen, node):
                    yield node, tie
                for tie in self._mentions("back", node, chosen):
                    yield node, tie
            for tie in self._hyperlinks("hyperlink", chosen, node):
                yield node, tie
            for tie in self._hyperlinks("linked", node, chosen):
                yield node, tie
        yield from self._shared(chosen, others)

    def _mentions(self, relation: str, holder: Node, titled: Node) -> Iterator[Tie]:
        """Where a passage mentions the title of another one, in its most certain form."""
        words = holder.words
        for form, title in enumerate(titled.words.titles):
            if not title or title not in words.joined:
                continue
            places = [place for place in words.find(title) if place > words.title_length]
            for start in places:
                end = start + len(title.split())
                certainty = CERTAINTY[form] * (1.0 if any(words.cased[start:end]) else _LOWER_CASE)
                is_asked = bool(self.question.find(title))
                rarity = self._store.rarity(words.stems[start:end])
                yield Tie(relation, holder, start, end, certainty, rarity, in_question=is_asked)
            if places:
                return

    def _shared(self, chosen: Node, nodes: Sequence[Node]) -> Iterator[tuple[Node, Tie]]:
        """Where others mention the names that the chosen passage mentions."""
        for first, last in self.names(chosen):
            name, origin = chosen.words.name(first, last), chosen.sentences[chosen.words.sentence[first]]
            wanted, rarity = f" {name} ", self._store.rarity(chosen.words.stems[first:last])
            holders = [node for node in nodes if wanted in node.words.joined]
            for node in holders:
                places = node.words.find(name)
                in_title = places[0] < node.words.title_length
                for start in places:
                    end = start + last - first
                    yield node, Tie("shared", node, start, end, 1.0, rarity, len(holders), in_title, origin)

    def _hyperlinks(self, relation: str, holder: Node, target: Node) -> Iterator[Tie]:
        """The links of a passage to the document of another one."""
        for link, document, row in holder.links:
            if document == target.document:
                certainty = (1.0 if row == target.row else _SAME_PAGE) * (_CONTENTS if link.is_contents else 1.0)
                rarity = self._store.rarity(holder.words.stems[link.start : link.end])
                yield Tie(relation, holder, link.start, link.end, certainty, rarity)


def _shares(weights: list[float]) -> list[float]:
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]


def specificity(rarity: float, half: float) -> float:
    """How specific a name is, 0 to 1: 0.5 at the rarity ``half``."""
    return rarity / (rarity + half) if rarity > 0 else 0.0


def is_copy(node: Node, chosen: Node) -> bool:
    """Whether a passage is a version of a chosen one, with the same title and mostly the same words, that explains no
    more."""
    if node is chosen or node.title != chosen.title or not node.has <= chosen.has:
        return False
    one, other = set(node.words.forms), set(chosen.words.forms)
    compared = min if node.title else max  # without a title a short text is no version of a long one
    return len(one & other) >= _COPY * compared(len(one), len(other))
