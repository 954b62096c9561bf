"""The passages that a question leads to and the edges between them, as arrays.

A graph is for one chain: how many passages share a name is counted among those that were found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..passages import Passage
from .arrays import Bools, Floats, Hashes, Ints, find_names, hash_names, hash_runs, spanned
from .hyperlinks import Hyperlinks
from .question import Question
from .reading import (
    LONGEST_NAME,
    NAMED,
    STARTS,
    Word,
    Words,
    read,
    texts_of,
    without_flags,
    wording,
)
from .source import ChainSource
from .titles import CERTAINTY, FORMS, TOPIC_WORD, title_forms

_QUESTION_HITS = 30
_SPARE = 5  # hits after the last that mostly show whether it has equals
_TIES = 50  # hits after the last that may have its score
_NAME_HITS = 20  # passages found by the names that a passage mentions
_NAMES = 4  # names of a passage to search for
_BESIDE = 8  # words beside a name that tell what it is
_TITLE_HITS = 60  # passages found by title per look-up
_LONGEST_RUN = 7  # words of a text that may be a title
_LONGEST_IN_QUESTION = 12
_LOWER_CASE = 0.4  # certainty of a name without capitals: "his father" is not the page "Father"
DIGITS = 9  # of weights that are compared
_COPY = 0.7  # share of the shorter passage's distinct words that a copy has (without titles, of the longer one's)
_DEEP = 300  # the question's hits among which those of different documents are looked for
_OF_ONE = 3  # of these, those of one document
LINK, BACK, SHARED, HYPERLINK, LINKED = range(5)


class Edges(NamedTuple):
    """Mentions that tie a chosen passage to others, one an entry."""

    node: Ints  # the other passage
    # LINK: the chosen one mentions its title; BACK: it mentions the chosen one's; SHARED: both mention a name;
    # HYPERLINK: the chosen one links to it; LINKED: it links to the chosen one.
    relation: Ints
    name: Hashes
    certainty: Floats  # that the mention means the passage
    rarity: Floats  # of the name
    in_question: Bools  # whether the question contains the name, which makes the edge weaker
    in_title: Bools  # whether the other passage's title contains the name
    sentence: Ints  # of the mention; -1 for a title
    place: Ints  # of the mention: its first word in `Graph.words`
    length: Ints  # of the mention, in words
    origin: Ints  # of a shared name: its first sentence in the chosen passage; -1 for titles
    sharing: Floats  # the number of compared nodes with a shared name; 0 for titles


class Graph:
    """The passages around a question, searched once each; a node is its number in the order in which it was found.

    Attributes:
        rows: The row of each node in the store.
        bm25: Its score divided by the best score; 0 if the question did not find it.
        similarity: Its cosine with the question; 0 without vectors.
        words: The words of all nodes, without flags, each title and each sentence ending in 0.
        has: The question's words in each title and each sentence, shape (sentences, words).
        first_sentence: Of each node: its title; the text follows.
        node_of_sentence: The node of each sentence.
        node_has, node_pairs: The question's words, and its pairs of neighbours in one sentence, in each node.
        length: The natural logarithm of the number of words, in hundreds.
        total: The sum of the words of each node, to decide between equals.
        later: Whether it is a passage of a document, but not the first.
        document: The number of its document.
        listing: The share of its words that are links to other documents.
        surplus: The rarity of each title's words that the question does not have.
        match: Where the question has its title: the form, -1 for none.
        span: The words of the question there, shape (nodes, 2).
        match_certainty: That it means the node; 0 for none.
        match_rarity: The rarity of that form.
        names: The hashes of each title's forms, 0 for none; shape (nodes, forms).
    """

    def __init__(
        self, text: str, source: ChainSource, similarities: Callable[[list[int]], Sequence[float]] | None = None
    ) -> None:
        self._source, self._store, self._similarities = source, source.store, similarities
        self.question = Question(text, self._store)
        self.rows: list[int] = []
        self._nodes: dict[int, int] = {}  # by row
        self._passages: dict[int, Passage] = {}
        self._texts: dict[int, list[Word]] = {}  # the words of sentences
        self._best = 0.0  # BM25 score
        self._start: Ints | None = None
        self._mentioned: dict[int, Ints] = {}
        words, pairs = len(self.question.words), len(self.question.pairs)
        self.bm25, self.similarity, self.surplus = np.zeros(0), np.zeros(0), np.zeros(0)
        self.length, self.later, self.total = np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64)
        self.words, self._flags = np.zeros(0, np.uint32), np.zeros(0, np.uint32)
        self._capitals = np.zeros(1, np.int64)  # the number of words inside capitalized names before each word
        self.has = np.zeros((0, words), bool)
        self._with_title = np.zeros((0, words), bool)  # the question's words in each sentence and its title
        self.node_has, self.node_pairs = np.zeros((0, words), bool), np.zeros((0, pairs), bool)
        self.first_sentence, self.node_of_sentence = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.match, self.span = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        self.match_certainty, self.match_rarity = np.zeros(0), np.zeros(0)
        self.names = np.zeros((0, FORMS), np.uint64)
        self._sentence = np.zeros(0, np.int64)  # of each word
        self.document, self.listing = np.zeros(0, np.uint64), np.zeros(0)
        self._hyperlinks = Hyperlinks()
        self._first = np.zeros(1, np.int64)  # the first word of each node, and the end
        self._titles = np.zeros((0, 3), np.int64)
        self._spans, self._first_span = np.zeros((0, 2), np.int64), np.zeros(1, np.int64)
        self._forms = np.zeros((0, FORMS, LONGEST_NAME), np.uint32)
        self._form_rarity, self._form_asked = np.zeros((0, FORMS)), np.zeros((0, FORMS), bool)

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, nodes: Sequence[int]) -> None:
        """Read the passages of some nodes, together."""
        new = [node for node in nodes if node not in self._passages]
        if not new:
            return
        self._passages |= zip(new, self._source.stored([self.rows[node] for node in new]), strict=True)

    def passage(self, node: int) -> Passage:
        self.load([node])
        return self._passages[node]

    def text(self, place: int, length: int) -> str:
        """Some words of a node, of one sentence or its title; see `wording`."""
        sentence = int(self._sentence[place])
        if sentence not in self._texts:
            node = int(self.node_of_sentence[sentence])
            self._texts[sentence] = read(texts_of(self.passage(node))[sentence - int(self.first_sentence[node])])
        start = place - int(self._sentence.searchsorted(sentence))
        return wording(self._texts[sentence], start, start + length)

    # --- comparing ----------------------------------------------------------------------------------------------------

    def in_sentences(self, weights: Floats) -> tuple[Floats, Floats]:
        """The weight of the question's words in each node's title and best sentence, and in title and first one."""
        found = self._with_title @ weights
        opening = np.minimum(self.first_sentence + 1, np.append(self.first_sentence[1:], len(found)) - 1)
        return np.maximum.reduceat(found, self.first_sentence), found[opening]

    def share_of_names(self) -> float:
        """The share of the words of all nodes that are in capitalized names."""
        return float(self._capitals[-1]) / max(len(self.words), 1)

    def overlapping(self, chosen: Sequence[int]) -> Bools:
        """The nodes whose titles the question has where it has the title of a chosen one."""
        taken = [node for node in chosen if self.match_certainty[node]]
        found: Bools = (self.match_certainty > 0) & np.any(
            (self.span[taken, 0] < self.span[:, 1:]) & (self.span[:, :1] < self.span[taken, 1]), axis=1
        )
        return found

    # --- searching ----------------------------------------------------------------------------------------------------

    def start(self) -> Ints:
        """The passages that the question finds, and those that it names."""
        if self._start is None:
            hits = self._starting()
            self._best = hits[0][1] if hits else 0.0
            numbers = self.question.numbers
            if len(hits) < len(self._store):
                named = self._titled(numbers, np.ones(len(numbers), bool), _LONGEST_IN_QUESTION)
                hits += [(row, 0.0) for row in named]
            self._start = np.sort(self._add(hits))
        return self._start

    def _starting(self) -> list[tuple[int, float]]:
        """The question's hits; of a long document only a few, so that it does not take all places."""
        if not self._store.pages:
            return self._ranked(self.question.text, _QUESTION_HITS)
        hits = self._ranked(self.question.text, _DEEP)
        documents = self._store.documents(np.array([row for row, _ in hits], np.int64)).tolist()
        of_one = Counter[int]()
        found = []
        for hit, document in zip(hits, documents, strict=True):
            of_one[document] += 1
            if of_one[document] <= _OF_ONE:
                found.append(hit)
        return found[:_QUESTION_HITS]

    def beyond(self, depth: int) -> Ints:
        """The question's hits up to a depth, if that is more than those of `start`.

        They are not candidates of the chain, so that a ranking does not depend on its length.
        """
        if depth <= _QUESTION_HITS:
            return np.zeros(0, np.int64)
        return self._add(self._source.ranking(self.question.text, depth + _TIES))

    def neighbors(self, chosen: int, *, names: bool = True) -> Ints:
        """The passages that a passage links to or whose titles it mentions, and with ``names`` those with its names and
        missing words."""
        if len(self.start()) == len(self._store):
            return np.zeros(0, np.int64)  # all are candidates
        text = slice(self._first[chosen], self._first[chosen + 1])
        rows = self._titled(self.words[text], self._flags[text] & STARTS > 0, _LONGEST_RUN)
        if names and (wanted := self._names_to_search(chosen)):
            had = self.node_has[chosen].tolist()
            missing = [word for word, has in zip(self.question.words, had, strict=True) if not has]
            rows += [row for row, _ in self._ranked(" ".join((*wanted, *missing)), _NAME_HITS)]
        return self._add([(row, 0.0) for row in (*rows, *self._hyperlinks.rows(chosen))])

    def _ranked(self, query: str, k: int) -> list[tuple[int, float]]:
        """The best hits. Which of equals at the end (up to `_TIES`) are among them is the same in any order of rows."""
        for more in (_SPARE, _TIES):
            hits = self._source.ranking(query, k + more)
            if len(hits) < k + more or hits[-1][1] < hits[k - 1][1]:
                break
        if len(hits) <= k or hits[k][1] < hits[k - 1][1]:
            return hits[:k]
        last = hits[k][1]
        tied = sorted((row for row, score in hits if score == last), key=self._store.checksum)
        return ([hit for hit in hits if hit[1] > last] + [(row, last) for row in tied])[:k]

    def _titled(self, words: Words, starts: Bools, longest: int) -> list[int]:
        """The rows of the passages whose title is a run of words from one of ``starts`` to a topic word.

        At most `_TITLE_HITS`: of the rarest titles, and of the last one the first in the index: they open documents.
        """
        padded = np.append(words, np.zeros(longest, np.uint32))
        inside = starts & (words > 0)
        hashes, places = [], []
        for length, found in enumerate(hash_runs(words, longest), 1):
            last = padded[length - 1 : length - 1 + len(words)]
            inside = inside & (last > 0)
            first = np.flatnonzero(inside & (last >= TOPIC_WORD))
            hashes.append(found[first])
            places.append(first)
        runs = np.concatenate(hashes)
        titles = np.flatnonzero(self._store.has_titles(runs))
        titles = titles[np.unique(runs[titles], return_index=True)[1]]
        rows, which = self._store.titled(runs[titles])
        if len(rows) > _TITLE_HITS:
            lengths = np.repeat(np.arange(1, longest + 1), [len(each) for each in places])
            first, size = np.concatenate(places)[titles], lengths[titles]
            rarity = self._store.rarity(spanned(words, np.stack([first, first + size], axis=1))).round(DIGITS)
            rows = rows[np.lexsort((rows, runs[titles[which]], -rarity[which]))]
        return list(dict.fromkeys(rows.tolist()))[:_TITLE_HITS]

    def _names_to_search(self, chosen: int) -> list[str]:
        """Those with most of the question's words near them, or else in their sentences; of equals the rarest."""
        spans = self._names(chosen)
        if not len(spans):
            return []
        weights, start = self.question.weights, self._first[chosen]
        place, which = self.question.places(self._flags[start : self._first[chosen + 1]])
        place += start
        gap = np.maximum(spans[:, :1] - place, place - spans[:, 1:] + 1)  # shape (names, places)
        close = (gap > 0) & (gap <= _BESIDE) & (self._sentence[spans[:, :1]] == self._sentence[place])
        near = np.zeros((len(spans), len(weights)), bool)
        name, at = close.nonzero()
        near[name, which[at]] = True
        in_sentence = self.has[self._sentence[spans[:, 0]]] @ weights
        rarity = self._store.rarity(spanned(self.words, spans))
        order = np.lexsort((-rarity, -in_sentence.round(DIGITS), -(near @ weights).round(DIGITS)))
        return [self.text(start, end - start) for start, end in spans[order[:_NAMES]].tolist()]

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _add(self, hits: Sequence[tuple[int, float]]) -> Ints:
        """The nodes of some rows with their scores, each once, adding those that are new."""
        new: dict[int, float] = {}
        for row, score in hits:
            if row not in self._nodes:
                new.setdefault(row, score)
        if new:
            self._nodes |= {row: at for at, row in enumerate(new, len(self))}
            self.rows += new
            self._read(list(new), np.fromiter(new.values(), float) / (self._best or 1.0))
        return np.array(list(dict.fromkeys(self._nodes[row] for row, _ in hits)), np.int64)

    def _read(self, rows: list[int], bm25: Floats) -> None:
        records, question, join = self._store.records(rows), self.question, np.concatenate
        words, starts = without_flags(records.words), np.cumsum(records.sizes) - records.sizes
        ends = records.words == 0
        sentence = np.cumsum(ends) - ends
        node_of_sentence = np.repeat(np.arange(len(rows)), records.sizes)[ends]
        has, pairs = question.occurrences(records.words, sentence, len(node_of_sentence))
        first = sentence[starts]
        forms = title_forms(words, starts, records)
        flat = forms.reshape(-1, LONGEST_NAME)
        form_rarity = self._store.rarity(flat).reshape(len(rows), FORMS)
        title = self._store.rarity(spanned(words, np.stack([starts, starts + records.titles[:, 0]], axis=1)))
        nodes, sentences, size = len(self._titles), len(self.has), len(self.words)
        self._match(flat, form_rarity)
        self.bm25 = join([self.bm25, bm25])
        similarity = self._similarities(rows) if self._similarities else np.zeros(len(rows))
        self.similarity = join([self.similarity, similarity])
        self.surplus = join([self.surplus, np.maximum(title - has[first] @ question.idf, 0.0)])
        self.length = join([self.length, np.log(records.sizes / 100)])
        self.later = join([self.later, records.later])
        linked = np.bincount(
            np.repeat(np.arange(len(rows)), records.linked), records.links[:, 1] - records.links[:, 0], len(rows)
        )
        self.listing = join([self.listing, np.minimum(linked / records.sizes, 1.0)])
        self.document = join([self.document, self._store.documents(np.array(rows, np.int64))])
        self._hyperlinks.add(records, size, self._store)
        self.total = join([self.total, np.add.reduceat(words.astype(np.int64), starts)])
        self.words, self._flags = join([self.words, words]), join([self._flags, records.words])
        self._capitals = join([self._capitals, np.cumsum(records.words & NAMED > 0) + self._capitals[-1]])
        self.has = join([self.has, has])
        self._with_title = join([self._with_title, has | has[first][node_of_sentence]])
        self.node_has = join([self.node_has, np.logical_or.reduceat(has, first)])
        self.node_pairs = join([self.node_pairs, np.logical_or.reduceat(pairs, first)])
        self.first_sentence = join([self.first_sentence, first + sentences])
        self.node_of_sentence = join([self.node_of_sentence, node_of_sentence + nodes])
        self.names = join([self.names, hash_names(forms)])
        self._sentence = join([self._sentence, sentence + sentences])
        self._first = join([self._first, np.cumsum(records.sizes) + size])
        self._titles = join([self._titles, records.titles])
        self._spans = join([self._spans, records.names + size])
        self._first_span = join([self._first_span, np.cumsum(records.named) + self._first_span[-1]])
        self._forms, self._form_rarity = join([self._forms, forms]), join([self._form_rarity, form_rarity])

    def _match(self, forms: Words, form_rarity: Floats) -> None:
        """Find the titles in the question: of each the most certain form, where it is first."""
        count, question = len(form_rarity), self.question
        which, place = find_names(forms, question.numbers)
        asked = np.zeros((count, FORMS), bool)
        asked[which // FORMS, which % FORMS] = True
        match = np.where(asked.any(axis=1), asked.argmax(axis=1), -1)
        start = np.zeros(count * FORMS, np.int64)
        start[which[::-1]] = place[::-1]
        node = np.arange(count)
        start = start.reshape(count, FORMS)[node, match]
        length = np.count_nonzero(forms.reshape(count, FORMS, LONGEST_NAME)[node, match], axis=1)
        capitals = np.append(0, np.cumsum(question.capital))
        end = np.minimum(start + length, len(question.capital))
        capital = capitals[end] > capitals[start]
        certainty = np.where(match >= 0, CERTAINTY[match] * np.where(capital, 1.0, _LOWER_CASE), 0.0)
        self.match = np.append(self.match, match)
        self.span = np.concatenate([self.span, np.stack([start, end], axis=1)])
        self.match_certainty = np.append(self.match_certainty, certainty)
        self.match_rarity = np.append(self.match_rarity, form_rarity[node, match])
        self._form_asked = np.concatenate([self._form_asked, asked])

    # --- edges --------------------------------------------------------------------------------------------------------

    def edges(self, chosen: int, first: int = 0) -> Edges:
        """All mentions that tie a chosen passage to the nodes from a number on."""
        spans = self._names(chosen)
        names = np.concatenate([self._forms[chosen], spanned(self.words, spans)])
        which, place = find_names(names, self.words[self._first[first] :])
        place += self._first[first]
        sentence = self._sentence[place]
        node = self.node_of_sentence[sentence]
        in_title = sentence == self.first_sentence[node]
        back = (which < FORMS) & ~in_title
        other = (which >= FORMS) & (node != chosen)
        named = np.full(np.count_nonzero(back), chosen)
        parts: tuple[Edges, ...] = (
            self._links(chosen, first),
            self._titled_edges(BACK, chosen, node[back], named, which[back], place[back]),
            self._shared(names[FORMS:], spans, which[other] - FORMS, place[other], node[other], in_title[other]),
        )
        if len(self._hyperlinks):
            links, node = self._hyperlinks.of(chosen, self.document[first:])
            parts += (self._hyperlink_edges(HYPERLINK, node + first, links, node + first),)
            links, node = self._hyperlinks.to(self.document[chosen], first)
            parts += (self._hyperlink_edges(LINKED, node, links, np.full(len(links), chosen)),)
        edges = Edges(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        other_page = self.document[edges.node] != self.document[chosen]  # a page does not lead to itself
        return Edges(*(column[other_page] for column in edges))

    def _hyperlink_edges(self, relation: int, node: Ints, link: Ints, target: Ints) -> Edges:
        """Edges by links to the document of the ``target`` nodes."""
        certainty = self._hyperlinks.certainty(link, np.array(self.rows, np.int64)[target])
        spans = self._hyperlinks.spans[link]
        names = spanned(self.words, spans)
        count = len(node)
        return Edges(
            node,
            np.full(count, relation),
            hash_names(names),
            certainty,
            self._store.rarity(names),
            np.zeros(count, bool),
            np.zeros(count, bool),
            self._sentence[spans[:, 0]],
            spans[:, 0],
            spans[:, 1] - spans[:, 0],
            np.full(count, -1),
            np.zeros(count),
        )

    def _links(self, chosen: int, done: int) -> Edges:
        start = int(self._first[chosen] + self._titles[chosen, 0])  # the end of the title
        forms = self._forms[done:].reshape(-1, LONGEST_NAME)
        which, place = find_names(forms, self.words[start : self._first[chosen + 1]])
        return self._titled_edges(
            LINK, chosen, which // FORMS + done, which // FORMS + done, which % FORMS, place + start
        )

    def _titled_edges(self, relation: int, chosen: int, node: Ints, named: Ints, form: Ints, place: Ints) -> Edges:
        """Edges by the most certain form of a title that is mentioned; versions of a page do not mention each other."""
        best = np.full(len(self), FORMS)
        np.minimum.at(best, node, form)
        keep = (best[node] == form) & (self.names[node, 0] != self.names[chosen, 0])
        node, named, form, place = node[keep], named[keep], form[keep], place[keep]
        length = np.count_nonzero(self._forms[named, form], axis=1)
        end = np.minimum(place + length, len(self.words))
        certainty = CERTAINTY[form] * np.where(self._capitals[end] > self._capitals[place], 1.0, _LOWER_CASE)
        return Edges(
            node,
            np.full(len(node), relation),
            self.names[named, form],
            certainty,
            self._form_rarity[named, form],
            self._form_asked[named, form],
            np.full(len(node), relation == LINK),
            self._sentence[place],
            place,
            length,
            np.full(len(node), -1),
            np.zeros(len(node)),
        )

    def _shared(self, names: Words, spans: Ints, which: Ints, place: Ints, node: Ints, in_title: Bools) -> Edges:
        has, about = np.zeros((2, len(names), len(self)), bool)
        has[which, node] = True
        about[which[in_title], node[in_title]] = True
        return Edges(
            node,
            np.full(len(node), SHARED),
            hash_names(names)[which],
            np.ones(len(node)),
            self._store.rarity(names)[which],
            np.zeros(len(node), bool),
            about[which, node],
            np.where(in_title, -1, self._sentence[place]),
            place,
            np.count_nonzero(names, axis=1)[which],
            self._sentence[spans[which, 0]],
            has.sum(axis=1, dtype=float)[which],
        )

    def _names(self, chosen: int) -> Ints:
        """The spans of the names that a passage mentions and the question does not, after its own title."""
        if (found := self._mentioned.get(chosen)) is None:
            start = self._first[chosen]
            own = np.array([[start, start + self._titles[chosen, 1]]])
            spans = np.concatenate([own, self._spans[self._first_span[chosen] : self._first_span[chosen + 1]]])
            names = spanned(self.words, spans)
            asked, _ = find_names(names, self.question.numbers)
            keep: Bools = np.any(names >= TOPIC_WORD, axis=1)
            keep[asked] = False
            found = self._mentioned[chosen] = spans[keep]
        return found

    def copies(self, chosen: int) -> Ints:
        """The versions of a passage's page, with the same title and mostly the same words, that explain no more."""
        same = (self.names[:, 0] == self.names[chosen, 0]) & (self._titles[:, 0] == self._titles[chosen, 0])
        same[chosen] = False
        alike = np.flatnonzero(same)
        alike = alike[~(self.node_has[alike] & ~self.node_has[chosen]).any(axis=1)]
        mine = self._distinct(chosen) if len(alike) else frozenset()
        compared = min if self.names[chosen, 0] else max  # without a title a short text is no version of a long one
        found = []
        for node in alike.tolist():
            theirs = self._distinct(node)
            if len(mine & theirs) >= _COPY * compared(len(mine), len(theirs)):
                found.append(node)
        return np.array(found, np.int64)

    def _distinct(self, node: int) -> frozenset[int]:
        return frozenset(self.words[self._first[node] : self._first[node + 1]].tolist()) - {0}
