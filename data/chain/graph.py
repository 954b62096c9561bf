"""The passages that a question leads to and the edges between them, as arrays.

A graph is for one chain: how many passages share a name is counted among those that were found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..languages import CASELESS, NOUNS
from ..passages import Passage
from .store import FORMS, ChainSource, Records
from .words import (
    FIRST,
    INSIDE,
    LINK_KINDS,
    LONGEST_NAME,
    STARTS,
    TOPIC_WORD,
    Bools,
    Floats,
    Hashes,
    Ints,
    Question,
    Word,
    Words,
    find_names,
    hash_names,
    hash_runs,
    is_among,
    names_in,
    place_numbers,
    read,
    spanned,
    specificity,
    texts_of,
    without_flags,
    wording,
)

if TYPE_CHECKING:
    from ..dense import DenseIndex

LINK, BACK, SHARED, HYPERLINK, LINKED = range(5)
NEAR = 5  # the vector of the question and a chosen passage leads to it; no mention does
CERTAINTY = np.array([1.0, 0.9, 0.9, 0.8, 0.6, 0.6, 0.6])  # that a form of a title means the passage
DIGITS = 9  # of weights that are compared
_UNCASED_RARITY = 2.0  # at which a name is half certain where capitals do not tell it
_LOWER_CASE = 0.4  # certainty of a name without capitals: "his father" is not the page "Father"
# Certainty that a hyperlink means a passage: of one in contents; to a place, that it means the passage before or after
# it, or another of that document; to a document, that it means one that does not open it.
_CONTENTS, _NEXT_TO, _SAME_PAGE, _WHOLE_PAGE = 0.3, 0.6, 0.4, 0.6
_QUESTION_HITS = 30
_DEEP = 300  # the question's hits among which those of different documents are looked for
_OF_ONE = 3  # of these, those of one document
_TITLE_HITS = 60  # passages found by title per look-up
_LONGEST_TITLE = 7  # words of a title in a text that is looked up
_NAMES = 4  # names of a passage to search for
_NAME_HITS = 20  # passages found by them
_MOST_NAMES = 255  # of a passage that are compared
_BESIDE = 8  # words beside a name that tell what it is
_NEAR_HITS = 20  # passages found by vectors per search
_QUESTION = -1  # stands for no chosen passage
_COPY = 0.7  # share of the shorter passage's distinct words that a copy has (without titles, of the longer one's)


class Edges(NamedTuple):
    """Mentions that tie a chosen passage to others, one an entry."""

    # LINK: the chosen one mentions its title; BACK: it mentions the chosen one's; SHARED: both mention a name;
    # HYPERLINK: the chosen one links to it; LINKED: it links to the chosen one.
    relation: Ints
    node: Ints  # the other passage
    place: Ints  # of the mention: its first word in `Graph.words`
    length: Ints  # of the mention, in words
    certainty: Floats  # that the mention means the passage
    in_title: Bools  # whether the other passage's title contains a shared name
    origin: Ints  # of a shared name: its first sentence in the chosen passage; -1 for titles
    sharing: Floats  # the number of compared nodes with a shared name; 0 for titles
    name: Hashes
    rarity: Floats  # of the name
    in_question: Bools  # whether the question contains the title that is mentioned, which makes the edge weaker
    sentence: Ints  # of the mention; -1 for a shared name in a title


class Graph:
    """The passages around a question, searched once each; a node is its number in the order in which it was found."""

    bm25: Floats  # of each node: its score divided by the best score; 0 if the question did not find it
    vectors: Floats  # the unit vectors, shape (nodes, dimension); of dimension 0 without vectors
    node_has: Bools  # the question's words in each node, shape (nodes, words)
    node_pairs: Bools  # and its pairs of neighbours in one sentence
    first_sentence: Ints  # of each node: its title; the text follows
    length: Floats  # the natural logarithm of the number of words, in hundreds
    later: Bools  # whether it is a passage of a document, but not the first
    document: Hashes  # the number of its document
    listing: Floats  # the share of its words that are links to other documents
    surplus: Floats  # the rarity of the title's words that the question does not have
    match: Ints  # where the question has its title: the form, -1 for none
    span: Ints  # the words of the question there, shape (nodes, 2)
    match_certainty: Floats  # that it means the node; 0 for none
    match_rarity: Floats  # the rarity of that form
    names: Hashes  # of each title's forms, 0 for none; shape (nodes, forms)
    words: Words  # of all nodes, without flags, each title and each sentence ending in 0
    has: Bools  # the question's words in each title and each sentence, shape (sentences, words)
    node_of_sentence: Ints
    _heads: Ints  # of each node, see `Record`
    _forms: Words  # of each title, shape (nodes, forms, words)
    _with_title: Bools  # the question's words in each sentence and its title
    _flags: Words  # the words with flags
    _sentence: Ints  # of each word
    # Of each hyperlink: the node, its (start, end) in the words, and what it names; the row is -1 for none.
    _linking: Ints
    _spans: Ints
    _targets: Hashes
    _anchors: Ints
    _kinds: Ints
    _aims: Ints

    def __init__(self, text: str, source: ChainSource, dense: DenseIndex | None = None) -> None:
        self._source, self._store, self._dense = source, source.store, dense
        self.question = Question(text, self._store)
        self._asked = np.unique(
            np.concatenate([np.zeros(1, np.uint64), *hash_runs(self.question.numbers, LONGEST_NAME)])
        )
        self.rows: list[int] = []
        self._nodes: dict[int, int] = {}  # by row
        self._passages: dict[int, Passage] = {}
        self._texts: dict[int, list[Word]] = {}  # the words of sentences
        self._mentioned: dict[int, Ints] = {}
        self._best = 0.0  # BM25 score
        self._start: Ints | None = None
        self._hops: dict[int, NDArray[np.float32]] = {}
        self._first = np.zeros(1, np.int64)  # the first word of each node, and the end
        self._capitals = np.zeros(1, np.int64)  # the number of words inside capitalized names before each word

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, nodes: Sequence[int]) -> None:
        """Read the passages of some nodes, together."""
        if new := [node for node in nodes if node not in self._passages]:
            self._passages |= zip(new, self._source.stored([self.rows[node] for node in new]), strict=True)

    def passage(self, node: int) -> Passage:
        self.load([node])
        return self._passages[node]

    def text(self, place: int, length: int) -> str:
        """Some words of a node, of one sentence or its title; see `wording`."""
        sentence = int(self._sentence[place])
        if sentence not in self._texts:
            node = int(self.node_of_sentence[sentence])
            passage = self.passage(node)
            text = texts_of(passage)[sentence - int(self.first_sentence[node])]
            self._texts[sentence] = read(text, passage.language)
        start = place - int(self._sentence.searchsorted(sentence))
        return wording(self._texts[sentence], start, start + length)

    # --- comparing ----------------------------------------------------------------------------------------------------

    def in_sentences(self, weights: Floats) -> tuple[Floats, Floats]:
        """The weight of the question's words in each node's title and best sentence, and in title and first one."""
        sentences = self._with_title @ weights
        opening = np.minimum(self.first_sentence + 1, np.append(self.first_sentence[1:], len(sentences)) - 1)
        return np.maximum.reduceat(sentences, self.first_sentence), sentences[opening]

    def share_of_names(self) -> float:
        """The share of the words of all nodes that are in capitalized names; 0 where a script has no capitals."""
        if self.question.language in CASELESS:
            return 0.0
        return float(self._capitals[-1]) / max(len(self.words), 1)

    def overlapping(self, chosen: Sequence[int]) -> Bools:
        """The nodes whose titles the question has where it has the title of a chosen one."""
        taken = [node for node in chosen if self.match_certainty[node]]
        return (self.match_certainty > 0) & np.any(
            (self.span[taken, 0] < self.span[:, 1:]) & (self.span[:, :1] < self.span[taken, 1]), axis=1
        )

    def copies(self, chosen: int) -> Ints:
        """The versions of a passage's page, with the same title and mostly the same words, that explain no more."""
        same = (self.names[:, 0] == self.names[chosen, 0]) & (self._heads[:, 0] == self._heads[chosen, 0])
        same[chosen] = False
        same &= ~(self.node_has & ~self.node_has[chosen]).any(axis=1)
        compared = min if self.names[chosen, 0] else max  # without a title a short text is no version of a long one
        distinct = [
            set(self.words[self._first[node] : self._first[node + 1]].tolist())
            for node in (chosen, *np.flatnonzero(same).tolist())
        ]
        page, *versions = distinct
        alike = [len(page & words) >= _COPY * compared(len(page), len(words)) for words in versions]
        return np.flatnonzero(same)[np.array(alike, bool)]

    def near(self, chosen: int | None = None) -> Floats:
        """Each node's cosine with the question, or with question and chosen passage as one text; 0 without vectors."""
        if not self._dense:
            return np.zeros(len(self))
        return self.vectors @ self._hop(_QUESTION if chosen is None else chosen)

    def alike(self, chosen: int) -> Floats:
        """Each node's cosine with a chosen passage."""
        return self.vectors @ self.vectors[chosen]

    def _hop(self, chosen: int) -> NDArray[np.float32]:
        """The vector of the question, or of question and chosen passage."""
        if chosen not in self._hops:
            assert self._dense
            passage = None if chosen == _QUESTION else self.passage(chosen)
            self._hops[chosen] = self._dense.vector(self.question.text, passage)
        return self._hops[chosen]

    # --- searching ----------------------------------------------------------------------------------------------------

    def start(self) -> Ints:
        """The passages that the question finds, of a long document only a few, and those that it names."""
        if self._start is None:
            store, numbers, of_one = self._store, self.question.numbers, Counter[int]()
            hits = []
            for row, score in self._source.ranking(self.question.text, _DEEP if store.pages else _QUESTION_HITS):
                of_one[document := int(store.documents[row])] += 1
                if of_one[document] <= _OF_ONE:
                    hits.append((row, score))
            hits = hits[:_QUESTION_HITS]
            self._best = hits[0][1] if hits else 0.0
            if len(hits) < len(store):
                named = self._titled(numbers, np.ones(len(numbers), bool), LONGEST_NAME)
                hits += [(row, 0.0) for row in (*named, *self._nearest(_QUESTION))]
            self._start = np.sort(self._add(hits))
        return self._start

    def beyond(self, depth: int) -> Ints:
        """The question's hits up to a depth, if that is more than those of `start`.

        They are not candidates of the chain, so that a ranking does not depend on its length.
        """
        hits = self._source.ranking(self.question.text, depth) if depth > _QUESTION_HITS else []
        return self._add(hits)

    def neighbors(self, chosen: int, *, names: bool = True) -> Ints:
        """The passages that a passage links to or whose titles it mentions, and with ``names`` those with its names and
        missing words."""
        if len(self.start()) == len(self._store):
            return np.zeros(0, np.int64)  # all are candidates
        text = slice(self._first[chosen], self._first[chosen + 1])
        rows = self._titled(self.words[text], self._flags[text] & STARTS > 0, _LONGEST_TITLE)
        if names and (wanted := self._names_to_search(chosen)):
            missing = [self.question.words[word] for word in np.flatnonzero(~self.node_has[chosen])]
            rows += [row for row, _ in self._source.ranking(" ".join((*wanted, *missing)), _NAME_HITS)]
        aims = self._aims[(self._linking == chosen) & (self._aims >= 0)].tolist()
        return self._add([(row, 0.0) for row in (*rows, *aims, *self._nearest(chosen))])

    def _nearest(self, chosen: int) -> list[int]:
        """The rows whose vectors are nearest to `_hop`; none without vectors."""
        return [row for row, _ in self._dense.nearest(self._hop(chosen), _NEAR_HITS)] if self._dense else []

    def _titled(self, words: Words, starts: Bools, longest: int) -> list[int]:
        """The rows of the passages whose title is a run of words; if there are many, those of the rarest titles, and of
        the last one the first in the index: they open documents."""
        rows, spans = self._store.titles_in(words, starts, longest)
        if len(rows) > _TITLE_HITS:
            rarity: Floats = self._store.rarity(spanned(words, spans)).round(DIGITS)
            rows = rows[np.lexsort((rows, -rarity))]
        return list(dict.fromkeys(rows.tolist()))[:_TITLE_HITS]

    def _names_to_search(self, chosen: int) -> list[str]:
        """Those with most of the question's words near them, or else in their sentences; of equals the rarest."""
        spans = self._names(chosen)
        weights, start = self.question.weights, self._first[chosen]
        place, which = self.question.places(self._flags[start : self._first[chosen + 1]])
        place += start
        gap = np.maximum(spans[:, :1] - place, place - spans[:, 1:] + 1)  # shape (names, places)
        close = (gap > 0) & (gap <= _BESIDE) & (self._sentence[spans[:, :1]] == self._sentence[place])
        near = np.zeros((len(spans), len(weights)), bool)
        name, at = close.nonzero()
        near[name, which[at]] = True
        beside: Floats = near @ weights
        in_sentence: Floats = np.matmul(self.has[self._sentence[spans[:, 0]]], weights)
        rarity = self._store.rarity(spanned(self.words, spans))
        order = np.lexsort((-rarity, -in_sentence.round(DIGITS), -beside.round(DIGITS)))
        return [self.text(start, end - start) for start, end in spans[order[:_NAMES]].tolist()]

    def _names(self, chosen: int) -> Ints:
        """The spans of the distinct names that a passage mentions and the question does not, after its own title."""
        if chosen not in self._mentioned:
            start, end = self._first[chosen : chosen + 2]
            title = [[start, start + self._heads[chosen, 1]]]
            spans = np.concatenate([title, names_in(self._flags[start:end])[:_MOST_NAMES] + start])
            names = spanned(self.words, spans)
            hashes, first = np.unique(hash_names(names), return_index=True)
            first = np.sort(first[~is_among(hashes, self._asked)])
            self._mentioned[chosen] = spans[first[np.any(names[first] >= TOPIC_WORD, axis=1)]]
        return self._mentioned[chosen]

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _add(self, hits: Sequence[tuple[int, float]]) -> Ints:
        """The nodes of some rows with their scores, each once, adding those that are new."""
        new: dict[int, float] = {}
        for row, score in hits:
            if row not in self._nodes:
                new.setdefault(row, score)
        if new or self._start is None:  # without hits the columns are empty
            self._nodes |= {row: at for at, row in enumerate(new, len(self))}
            self._read(list(new), np.fromiter(new.values(), float) / (self._best or 1.0))
        return np.array(list(dict.fromkeys(self._nodes[row] for row, _ in hits)), np.int64)

    def _read(self, rows: list[int], bm25: Floats) -> None:
        """Add nodes for some rows."""
        records, question, store = self._store.records(rows), self.question, self._store
        nodes, size = len(self), int(self._first[-1])
        sentences = len(self.has) if nodes else 0
        words, starts = without_flags(records.words), np.cumsum(records.sizes) - records.sizes
        ends = records.words == 0
        sentence = np.cumsum(ends) - ends
        node = np.repeat(np.arange(len(rows)), records.sizes)[ends]
        has, pairs = question.occurrences(records.words, sentence, len(node))
        first = sentence[starts]
        forms = records.title_forms()
        title = store.rarity(forms[:, 0])
        forms[~(forms >= TOPIC_WORD).any(axis=2)] = 0
        linked = np.bincount(
            np.repeat(np.arange(len(rows)), records.linked), records.links["end"] - records.links["start"], len(rows)
        )
        new = {
            "bm25": bm25,
            "vectors": self._dense.rows(rows) if self._dense else np.zeros((len(rows), 0), np.float32),
            "words": words,
            "has": has,
            "first_sentence": first + sentences,
            "node_of_sentence": node + nodes,
            "node_has": np.logical_or.reduceat(has, first),
            "node_pairs": np.logical_or.reduceat(pairs, first),
            "length": np.log(records.sizes / 100),
            "later": records.heads[:, -1] > 0,
            "document": records.documents,
            "listing": np.minimum(linked / records.sizes, 1.0),
            "surplus": np.maximum(title - has[first] @ question.idf, 0.0),
            "names": hash_names(forms),
            "_with_title": has | has[first][node],
            "_flags": records.words,
            "_sentence": sentence + sentences,
            "_heads": records.heads,
            "_forms": forms,
            **self._matches(forms),
            **self._hyperlinks(records, nodes, size),
        }
        for name, column in new.items():
            setattr(self, name, np.concatenate([getattr(self, name), column]) if nodes else column)
        self.rows += rows
        self._first = np.append(self._first, np.cumsum(records.sizes) + size)
        capitals = np.cumsum(records.words & (FIRST | INSIDE) > 0)
        self._capitals = np.append(self._capitals, capitals + self._capitals[-1])

    def _matches(self, forms: Words) -> dict[str, Any]:
        """Where the question has titles: of each the most certain form, where it is first."""
        count, question = len(forms), self.question
        which, place = find_names(forms.reshape(-1, LONGEST_NAME), question.numbers)
        starts = np.full((count, FORMS), -1)
        starts.reshape(-1)[which[::-1]] = place[::-1]
        match = np.where((starts >= 0).any(axis=1), (starts >= 0).argmax(axis=1), -1)
        node = np.arange(count)
        matched, start = forms[node, match], np.maximum(starts[node, match], 0)
        end = np.minimum(start + np.count_nonzero(matched, axis=1), len(question.capital))
        capitals = np.append(0, np.cumsum(question.capital))
        rarity = self._store.rarity(matched)
        lower_case = (
            _LOWER_CASE if question.language not in (*CASELESS, NOUNS) else specificity(rarity, _UNCASED_RARITY)
        )
        certainty = CERTAINTY[match] * np.where(capitals[end] > capitals[start], 1.0, lower_case)
        return {
            "match": match,
            "span": np.stack([start, end], axis=1),
            "match_certainty": np.where(match >= 0, certainty, 0.0),
            "match_rarity": rarity,
        }

    def _hyperlinks(self, records: Records, nodes: int, size: int) -> dict[str, Any]:
        links, store = records.links, self._store
        documents, rows = links["document"], np.full(len(links), -1)
        # The document, which a wiki's link names in another way; then the place in it, if it is known.
        for anchors in (0, links["anchor"]) if len(links) else ():
            targets, which = store.find(place_numbers(documents, anchors))
            rows[which[::-1]] = targets[::-1]
            documents = np.where(rows >= 0, store.documents[rows], documents)
        return {
            "_linking": np.repeat(np.arange(nodes, nodes + len(records.linked)), records.linked),
            "_spans": np.stack([links["start"], links["end"]], axis=1).astype(np.int64) + size,
            "_targets": documents,
            "_anchors": links["anchor"],
            "_kinds": links["kind"],
            "_aims": rows,
        }

    # --- edges --------------------------------------------------------------------------------------------------------

    def edges(self, chosen: int, first: int = 0) -> Edges:
        """All mentions that tie a chosen passage to the nodes from a number on."""
        spans, before = self._names(chosen), self._first[first]
        names = np.concatenate([self._forms[chosen], spanned(self.words, spans)])
        which, place = find_names(names, self.words[before:])
        place += before
        sentence = self._sentence[place]
        node = self.node_of_sentence[sentence]
        in_title = sentence == self.first_sentence[node]
        back = (which < FORMS) & ~in_title
        parts = [self._titled_edges(chosen, node[back], chosen, which[back], place[back])]

        start = int(self._first[chosen] + self._heads[chosen, 0])  # the end of the title
        forms = self._forms[first:].reshape(-1, LONGEST_NAME)
        form, at = find_names(forms, self.words[start : self._first[chosen + 1]])
        mentioned = form // FORMS + first
        parts.append(self._titled_edges(chosen, mentioned, mentioned, form % FORMS, at + start))

        other = (which >= FORMS) & (node != chosen)
        which, place, node, in_title = which[other] - FORMS, place[other], node[other], in_title[other]
        has, about = np.zeros((2, len(spans), len(self)), bool)
        has[which, node] = True
        about[which[in_title], node[in_title]] = True
        parts.append((node, place, (spans[:, 1] - spans[:, 0])[which], np.ones(len(node))))
        if len(self._linking):
            aims = (self._linking == chosen)[:, None] & (self._targets[:, None] == self.document[first:])
            link, target = np.nonzero(aims)
            parts.append(self._hyperlink_edges(target + first, link, target + first))
            link = np.flatnonzero((self._linking >= first) & (self._targets == self.document[chosen]))
            parts.append(self._hyperlink_edges(self._linking[link], link, chosen))

        relation = np.repeat((BACK, LINK, SHARED, HYPERLINK, LINKED)[: len(parts)], [len(part[0]) for part in parts])
        node, place, length, certainty = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        shared = relation == SHARED
        in_title, origin, sharing = np.zeros(len(node), bool), np.full(len(node), -1), np.zeros(len(node))
        in_title[shared] = about[which, node[shared]]
        origin[shared], sharing[shared] = self._sentence[spans[which, 0]], has.sum(axis=1)[which]
        words = spanned(self.words, np.stack([place, place + length], axis=1))
        name, sentence = hash_names(words), self._sentence[place]
        edges = Edges(
            relation,
            node,
            place,
            length,
            certainty,
            in_title,
            origin,
            sharing,
            name,
            self._store.rarity(words),
            (relation <= BACK) & is_among(name, self._asked),
            np.where(shared & (sentence == self.first_sentence[node]), -1, sentence),
        )
        other_page = self.document[node] != self.document[chosen]  # a page does not lead to itself
        return Edges(*(column[other_page] for column in edges))

    def _titled_edges(self, chosen: int, node: Ints, named: Any, form: Ints, place: Ints) -> tuple[Any, ...]:
        """Edges by the most certain form of a title that is mentioned; versions of a page do not mention each other."""
        best = np.full(len(self), FORMS)
        np.minimum.at(best, node, form)
        keep = (best[node] == form) & (self.names[node, 0] != self.names[chosen, 0])
        length = np.count_nonzero(self._forms[named, form], axis=1)[keep]
        node, form, place = node[keep], form[keep], place[keep]
        end = np.minimum(place + length, len(self.words))
        certainty = CERTAINTY[form] * np.where(self._capitals[end] > self._capitals[place], 1.0, _LOWER_CASE)
        return node, place, length, certainty

    def _hyperlink_edges(self, node: Ints, link: Ints, target: Any) -> tuple[Any, ...]:
        """Edges by links to the documents of the ``target`` nodes."""
        start, end = self._spans[link].T
        rows, aims = np.array(self.rows, np.int64)[target], self._aims[link]
        near = np.where(np.abs(rows - aims) <= 1, _NEXT_TO, _SAME_PAGE)
        certainty = np.where(rows == aims, 1.0, np.where(self._anchors[link] > 0, near, _WHOLE_PAGE))
        certainty *= np.where(self._kinds[link] == LINK_KINDS.index("contents"), _CONTENTS, 1.0)
        return node, start, end - start, certainty
