"""What a question asks for: its words with their weights, pairs of neighbours among them, and where names can be."""

from __future__ import annotations

import re

import numpy as np

from ..text import clean
from .arrays import Bools, Floats, Ints, locate
from .reading import TOPIC, Words, number, read, stems_of, without_flags
from .store import Store

_MOST_WORDS = 300
_AGENT = re.compile(r".{2,}tor")  # who does what the word says without "or": not Tor
_NEAR = 3  # words between which two are neighbours


class Question:
    """The words of a question.

    Args:
        text: The question.
        store: The collection whose frequencies give the weights.

    Attributes:
        numbers: All words as numbers, without flags.
        forms: All words, folded.
        capital: Whether each starts with a capital or a digit; all do in a question without capitals.
        written: All words.
        words: The distinct topic words, as written; a word of code once for each of its parts.
        weights: Their IDF as shares of the sum, shape (words,).
        idf: The same, not divided: 1 is a word of a single passage.
        pairs: Weights of pairs of neighbouring words, as shares of the sum, shape (pairs,).
    """

    def __init__(self, text: str, store: Store) -> None:
        self.text = text
        self.written = written = read(clean(text))[:_MOST_WORDS]
        self.forms = [form for word in written for form in word.forms]
        texts = [word.written for word in written for _ in word.forms]
        numbers = np.array([number for word in written for number in word.numbers], np.uint32)
        starts = np.array([word.starts for word in written for _ in word.forms], bool)
        # The capital of the first word carries no information.
        self.capital: Bools = starts if any(word.upper for word in written[1:]) else np.ones(len(starts), bool)
        self.numbers = without_flags(numbers)
        stems = stems_of(numbers)
        topical = np.flatnonzero(stems >= TOPIC)
        _, first = np.unique(stems[topical], return_index=True)
        at = topical[np.sort(first)]
        self.words = [texts[place] for place in at.tolist()]
        self.idf = store.idf(stems[at])
        # "directed" counts for "director": Porter's stems differ, unlike those of "composed" and "composer".
        agents = [which for which, place in enumerate(at.tolist()) if _AGENT.fullmatch(self.forms[place])]
        verbs = stems_of(np.array([number(self.forms[at[which]][:-2]) for which in agents], np.uint32))
        new = np.flatnonzero(~np.isin(verbs, stems[at]))
        self._stems = np.append(stems[at], verbs[new])
        self._word = np.append(np.arange(len(at)), np.array(agents, np.int64)[new])
        self._order = np.argsort(self._stems)
        self.weights = self.idf / (self.idf.sum() or 1.0)
        first_of_pair = np.flatnonzero(np.diff(at) <= _NEAR)
        self.pairs = self.weights[first_of_pair] + self.weights[first_of_pair + 1]
        self.pairs /= self.pairs.sum() or 1.0
        self._pair = np.full((len(at), len(at)), -1)
        self._pair[first_of_pair, first_of_pair + 1] = np.arange(len(first_of_pair))
        self._pair[first_of_pair + 1, first_of_pair] = np.arange(len(first_of_pair))

    def places(self, words: Words) -> tuple[Ints, Ints]:
        """Where the question's words are among those of passages, with flags: which place, which word."""
        place, which = locate(stems_of(words), self._stems, self._order)
        return place, self._word[which]

    def occurrences(self, words: Words, sentence: Ints, sentences: int) -> tuple[Bools, Bools]:
        """Which words and which pairs are in each sentence: shapes (sentences, words) and (sentences, pairs).

        Args:
            words: The words of passages, with flags.
            sentence: The number of the sentence of each.
            sentences: The number of sentences.
        """
        has = np.zeros((sentences, len(self.words)), bool)
        place, which = self.places(words)
        has[sentence[place], which] = True
        near = np.zeros((sentences, len(self.pairs)), bool)
        pair = self._pair[which[:-1], which[1:]] if len(which) else np.zeros(0, np.int64)
        found = (pair >= 0) & (np.diff(place) <= _NEAR) & (np.diff(sentence[place]) == 0)
        near[sentence[place[:-1][found]], pair[found]] = True
        return has, near


def specificity(rarity: Floats, half: float) -> Floats:
    """How specific names are, 0 to 1: 0.5 at the rarity ``half``."""
    found: Floats = np.divide(rarity, rarity + half, out=np.zeros_like(rarity), where=rarity > 0)
    return found
