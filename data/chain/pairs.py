"""Pairs of passages that are tied, to write questions from that need both, and the chain between two documents.

for pair in pairs(BM25Index("indexes/mine"), seed=0):
    print(pair.kind, pair.tie)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import combinations, cycle
from typing import Literal, NamedTuple

import numpy as np

from ..passages import Passage
from ..text import content_terms
from .store import ChainSource
from .words import document_of, read, words_of

Kind = Literal["bridge", "comparison"]

KINDS: tuple[Kind, ...] = ("bridge", "comparison")

_LEAST = 20  # words of a passage that says enough
_MOST_LINKED = 0.3  # share of its words in links: more are a list
_BEARERS = 3  # passages that a name may lead to
_RARITY = 0.5  # of a name; 1 is a word of a single passage
_LONGEST = 7  # words of a title that is looked up
_MOST_TIES = 8  # of a passage
_USES = 2  # of a document in all pairs
_ALIKE = 2  # words that the first sentences of two passages share, if these tell of things of one kind


class Pair(NamedTuple):
    """Two passages of different documents.

    Attributes:
        kind: "bridge": the first one names what the second one tells about. "comparison": a third passage names what
            each of them tells about, and both have a number.
        tie: What ties them, in words.
        name: What the first one names; empty for a comparison.
        sentence: The number of the sentence of the first one with the name; None for none.
    """

    kind: Kind
    first: Passage
    second: Passage
    tie: str
    name: str
    sentence: int | None

    @property
    def documents(self) -> tuple[str, str]:
        return self.first.document, self.second.document


class _Tie(NamedTuple):
    """What a passage names, and the passage that tells about it."""

    passage: Passage
    name: str
    sentence: int
    verb: str

    @property
    def has_number(self) -> bool:
        return any(character.isdigit() for character in self.passage.text)


def pairs(source: ChainSource, seed: int = 0) -> Iterator[Pair]:
    """The pairs of a collection in a random order, the same for a seed: of the kinds in turn, each document in at most
    two pairs. Ties are specific: a link in running text, or a rare name that few passages have as their title."""
    store, uses = source.store, Counter[str]()
    waiting: dict[Kind, list[Pair]] = {kind: [] for kind in KINDS}
    kinds = cycle(KINDS)
    for row in np.random.default_rng(seed).permutation(len(store)).tolist():
        if not store.documents[row]:
            continue  # deleted
        [passage] = source.stored([row])
        if not _says_enough(passage):
            continue
        ties = [tie for tie in _ties(source, passage) if tie.passage.document != passage.document][:_MOST_TIES]
        for pair in _candidates(passage, ties):
            waiting[pair.kind].append(pair)
        for kind in (next(kinds), *KINDS):
            free = [pair for pair in waiting[kind] if max(map(uses.__getitem__, pair.documents)) < _USES]
            waiting[kind] = free
            if free:
                pair = free.pop()
                uses.update(pair.documents)
                yield pair
                break


class Link(NamedTuple):
    """A step between two documents: a sentence of a passage leads to the other one.

    Attributes:
        name: The linked text, or the name.
    """

    passage: Passage
    sentence: int
    verb: str
    name: str
    to: Passage


def path(source: ChainSource, start: Passage, goal: Passage, most: int = 500) -> list[Link] | None:
    """The shortest chain of links and names between the documents of two passages: from both of them to one that they
    lead to, so that its last links lead back. None if at most so many documents do not tell of one."""
    reached: tuple[dict[str, Link | None], ...] = {start.document: None}, {goal.document: None}
    waiting = deque([start]), deque([goal])
    for _ in range(most):
        side = min((0, 1), key=lambda side: (not waiting[side], len(reached[side])))
        if not waiting[side]:
            break
        passage = waiting[side].popleft()
        for link in _links(source, passage):
            document = link.to.document
            if document in reached[side]:
                continue
            reached[side][document] = link
            waiting[side].append(link.to)
            if document in reached[1 - side]:
                there, back = (_back(links, document) for links in reached)
                return [*reversed(there), *back]
    return None


def _back(links: dict[str, Link | None], document: str) -> list[Link]:
    """The links that lead to a document, the last first."""
    taken = list[Link]()
    while link := links[document]:
        taken.append(link)
        document = link.passage.document
    return taken


def _links(source: ChainSource, passage: Passage) -> Iterator[Link]:
    """What all passages of a passage's document lead to."""
    rows = np.flatnonzero(source.store.documents == document_of(passage)).tolist()
    for part in source.stored(rows):
        for tie in _ties(source, part):
            yield Link(part, tie.sentence, tie.verb, tie.name, tie.passage)


def _candidates(passage: Passage, ties: Sequence[_Tie]) -> Iterator[Pair]:
    """The pairs that a passage gives, at most one of each kind."""
    telling = [tie for tie in ties if _says_enough(tie.passage)]
    for tie in telling[:1]:
        words = f"{passage.heading} {tie.verb} {tie.passage.heading}: {tie.name}"
        yield Pair("bridge", passage, tie.passage, words, tie.name, tie.sentence)
    for one, two in combinations([tie for tie in telling if tie.has_number], 2):
        if _are_alike(one.passage, two.passage):
            words = f"{passage.heading} names both: {one.name}; {two.name}"
            yield Pair("comparison", one.passage, two.passage, words, "", None)
            break


def _are_alike(one: Passage, two: Passage) -> bool:
    """Whether two passages seem to tell of two things of one kind, as "a town in Finland" and "a Finnish town" do."""
    openings = [set(content_terms(passage.sentences[0])) - set(content_terms(passage.title)) for passage in (one, two)]
    return one.document != two.document and one.title != two.title and len(openings[0] & openings[1]) >= _ALIKE


def _says_enough(passage: Passage) -> bool:
    words = len(read(passage.text, passage.language))
    linked = sum(len(read(link.text, passage.language)) for link in passage.links)
    return words >= _LEAST and linked <= _MOST_LINKED * words


def _ties(source: ChainSource, passage: Passage) -> Iterator[_Tie]:
    """What a passage links to, then what it names, the rarest names first."""
    store, words = source.store, words_of(passage)
    links = [link for link in passage.links if link.kind == "text" and len(link.text) > 2]
    rows = store.named([link.target for link in links])
    for link in links:
        if link.target in rows and link.sentence < len(passage.sentences):
            [linked] = source.stored([rows[link.target]])
            yield _Tie(linked, link.text, link.sentence, "links to")
    titles = store.titles_in(words, _LONGEST)
    bearers = Counter(span for _, span in titles)
    above = len(words.texts) - len(passage.sentences)
    names = list[tuple[float, int, tuple[int, int]]]()
    for row, (start, end) in titles:
        rarity = store.rarity(words.stems[start:end])
        is_name = any(words.cased[start:end]) and words.sentence[start] >= above
        if is_name and rarity >= _RARITY and bearers[start, end] <= _BEARERS:
            names.append((rarity, row, (start, end)))
    for _, row, span in sorted(names, key=lambda name: -name[0]):
        [named] = source.stored([row])
        yield _Tie(named, words.wording(*span), words.sentence[span[0]] - above, "mentions")
