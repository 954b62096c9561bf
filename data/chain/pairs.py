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
from .words import read, words_of

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
        for target, via, name, sentence in _ties(source, first):
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


def _ties(source: ChainSource, passage: Passage) -> Iterator[tuple[int, str, str, int]]:
    """The rows that a passage leads to, with `Pair.via`, name and sentence: by hyperlinks, then by names, the rarest
    first."""
    store, words = source.store, words_of(passage)
    links = [link for link in passage.links if link.kind == "text" and len(link.text) > 2]
    rows = store.named([link.target for link in links])
    for link in links:
        if link.target in rows and link.sentence < len(passage.sentences):
            yield rows[link.target], "hyperlink", link.text, link.sentence
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
        yield row, "link", words.wording(*span), words.sentence[span[0]] - above
