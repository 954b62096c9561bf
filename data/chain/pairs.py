"""Pairs of passages of which one leads to the other, to write questions from that need both.

for pair in pairs(BM25Index("indexes/mine"), seed=0):
    print(pair.first.title, pair.sentence, pair.second.title)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..passages import Passage
from .store import ChainSource
from .words import FIRST, INSIDE, STARTS, read, spanned, texts_of, without_flags, wording

_LEAST = 20  # words of a passage that says enough
_MOST_LINKED = 0.3  # share of its words in links: more are a list
_BEARERS = 3  # passages that a name may lead to
_RARITY = 0.5  # of a name; 1 is a word of a single passage
_LONGEST = 7  # words of a title that is looked up
_AS_SECOND = 2  # times that a document is the second of a pair


class Pair(NamedTuple):
    """Two passages of different documents.

    Attributes:
        first, second: The first one leads to the second one.
        via: "hyperlink", or "link" for a mention of its title.
        name: The linked text, or the name.
        sentence: The number of the sentence of the first one that it is in.
    """

    first: Passage
    second: Passage
    via: str
    name: str
    sentence: int


def pairs(source: ChainSource, seed: int = 0) -> Iterator[Pair]:
    """The pairs of a collection in a random order, the same for a seed: each document once as the first one, at most
    twice as the second one. Ties are specific: a link in running text, or a rare name that few passages have as their
    title."""
    store = source.store
    used, seconds = set[str](), Counter[str]()
    for row in np.random.default_rng(seed).permutation(len(store)).tolist():
        if not store.documents[row]:
            continue  # deleted
        [first] = source.stored([row])
        if first.document in used or not _says_enough(first):
            continue
        for target, via, name, sentence in _ties(source, row, first):
            [second] = source.stored([target])
            if second.document == first.document or seconds[second.document] == _AS_SECOND or not _says_enough(second):
                continue
            used.add(first.document)
            seconds[second.document] += 1
            yield Pair(first, second, via, name, sentence)
            break


def _says_enough(passage: Passage) -> bool:
    words = len(read(passage.text, passage.language))
    linked = sum(len(read(link.text, passage.language)) for link in passage.links)
    return words >= _LEAST and linked <= _MOST_LINKED * words


def _ties(source: ChainSource, row: int, passage: Passage) -> Iterator[tuple[int, str, str, int]]:
    """The rows that a passage leads to, with `Pair.via`, name and sentence: by hyperlinks, then by names, the rarest
    first."""
    store = source.store
    links = [link for link in passage.links if link.kind == "text" and len(link.text) > 2]
    named = store.named([link.target for link in links])
    for link in links:
        if link.target in named and link.sentence < len(passage.sentences):
            yield named[link.target], "hyperlink", link.text, link.sentence
    flagged = store.records([row]).words
    words = without_flags(flagged)
    rows, spans = store.titles_in(words, flagged & STARTS > 0, _LONGEST)
    ends = np.cumsum(words == 0)
    above = len(texts_of(passage)) - len(passage.sentences)
    rarity = store.rarity(spanned(words, spans))
    bearers = Counter(map(tuple, spans.tolist()))
    for at in np.argsort(-rarity, kind="stable").tolist():
        start, end = spans[at].tolist()
        text = int(ends[start])  # which of `texts_of`
        is_name = bool((flagged[start:end] & (FIRST | INSIDE)).any())
        if text >= above and is_name and rarity[at] >= _RARITY and bearers[start, end] <= _BEARERS:
            sentence = text - above
            first = start - int(np.searchsorted(ends, text)) - (text > 0)  # in the sentence
            name = wording(read(passage.sentences[sentence], passage.language), first, first + end - start)
            yield int(rows[at]), "link", name, sentence
