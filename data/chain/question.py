"""A question: its words with weights, and where they occur in passages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from ..languages import spoken
from ..text import UNSPACED, clean
from .store import Store
from .words import PassageWords, Word, Words, may_be_names, read, stem_of, wording

_MOST_WORDS = 300
_NEAR = 3  # words between which two of a question are neighbours
_AGENT = re.compile(r".{2,}tor")  # who does what the word says without "or": not Tor


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


def _shares(weights: list[float]) -> list[float]:
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]
