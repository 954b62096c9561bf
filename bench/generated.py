"""A generated corpus of any size: passages that mention each other like an encyclopaedia's, and two-hop questions with
gold passages.

Passage ``n`` depends on the size and ``n`` only: the corpus is streamed, and questions need no other
passages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from math import exp, log
from typing import Any

_SYLLABLES = [
    onset + vowel for onset in "b d f g k l m n p r s t v z br st tr".split() for vowel in "a e i o u".split()
]
_FUNCTION = "the of and in a to was is for as on with by he that at from his it an".split()
_KINDS = "film album song novel band river village footballer politician company".split()
_TITLES = [  # as often as they are here
    *["{first} {last}"] * 6,
    *["{first} {second} {last}"] * 2,
    *["{place}"] * 3,
    *["{term}"] * 2,
    *["{topic} {other}"] * 2,
    *["The {topic} of {place}"] * 2,
    *["{topic} of the {other}", "University of {place}", "{last} Company"],
]
_BEFORE_NAME = "of in by with from for to and at near".split()
_OPENERS = "He She It They The In After During At With".split()

_WORDS = 50_000  # of running text; those from `_RARE` on, and as many more, are words of names too
_RARE = 20_000
_EVERYDAY = slice(20, 500)  # ranks of the words that questions ask with: "born", "university", not "the" or "thallium"
_MIXED = 2**64 - 1


class GeneratedCorpus:
    """Records ``{id, title, text}`` of some 100 words in 4 to 8 sentences.

    Titles: two in five name a person, whose first and last name others have too; a quarter are one word, in part a
    common one; the rest are works and institutions. One passage in eight has the title of another passage, which is
    likelier an often mentioned one, and one in eight has such a title with a disambiguation in parentheses: a fifth or
    more of all passages share their title, a third or more share it without the disambiguation (more by chance, the
    larger the corpus).

    Texts: words by Zipf's law. Each mentions 2 to 8 times a passage by its title, without the disambiguation. Passage
    ``n`` is mentioned in proportion to 1 / (n + 5): in a million, the first by 1 text in 15, the median by 2 or 3.

    Args:
        size: The number of passages.
    """

    def __init__(self, size: int) -> None:
        self.size, self._chance = size, random.Random()
        vocabulary = _vocabulary(_WORDS + _RARE)
        names = [word.capitalize() for word in vocabulary[_RARE:]]
        self._everyday = frozenset(vocabulary[_EVERYDAY])
        self._stream = _running_text(vocabulary[:_WORDS], 1_000_000)
        chance = random.Random(3)
        # A name is repeated in its table as often as it is used, so that the bits of a number choose one.
        self._first = _by_popularity(chance, names[:2000], 20, 2**13)
        self._last = _by_popularity(chance, names[2000:], 200, 2**16)
        self._places = chance.sample(names, 2**15)
        self._terms = [word.capitalize() for word in chance.sample(vocabulary[100:40_000], 2**15)]
        self._topics = [word.capitalize() for word in _by_popularity(chance, vocabulary[50:10_000], 50, 2**16)]

    def __iter__(self) -> Iterator[dict[str, str]]:
        return map(self.passage, range(self.size))

    def passage(self, number: int) -> dict[str, str]:
        """The record of a passage; its id is ``p<number>``."""
        sentences, _ = self._written(number)
        return {"id": f"p{number}", "title": self.title(number), "text": " ".join(sentences)}

    def title(self, number: int) -> str:
        """The title of a passage: its own, another's, or another's with a disambiguation."""
        bits = _mixed(number)
        choice = bits >> 61
        if choice > 1:
            return self._own_title(bits)
        # Squared: the low numbers, which texts mention most, lend their title most often too.
        other = _mixed(int(self.size * ((bits & 0xFFFFFFFF) / 2**32) ** 2))
        title = self._own_title(other)
        return f"{title} ({_KINDS[bits % len(_KINDS)]})" if choice else title

    def bare_title(self, number: int) -> str:
        """The title without a disambiguation."""
        return self.title(number).partition(" (")[0]

    def questions(self, count: int) -> Iterator[dict[str, Any]]:
        """Two-hop questions: the ``text`` names the first ``gold`` passage, which mentions the title of the second, and
        has words of a sentence of the second. Others may fit as well: for measuring time, not quality."""
        chance = random.Random(0)
        while count:
            first = int(chance.random() * self.size)
            sentences, mentioned = self._written(first)
            second, at = mentioned[int(chance.random() * len(mentioned))]
            relations = self._asked_with(sentences[at])
            target, _ = self._written(second)
            words = self._asked_with(target[int(chance.random() * len(target))])
            if not relations or len(words) < 2:
                continue
            relation = relations[int(chance.random() * len(relations))]
            asked, *others = chance.sample(words, min(len(words), 2 + (chance.random() < 0.5)))
            named = self.bare_title(first)
            text = f"Which {asked} did the {relation} of {named} {' '.join(others)}?"
            yield {"text": text, "gold": (f"p{first}", f"p{second}")}
            count -= 1

    def _asked_with(self, sentence: str) -> list[str]:
        """The everyday words of a sentence, each once."""
        return [word for word in dict.fromkeys(sentence[:-1].split()) if word in self._everyday]

    def _own_title(self, bits: int) -> str:
        form, bits = _TITLES[bits % 20], bits >> 5
        return form.format(
            first=self._first[bits >> 16 & 0x1FFF],
            second=self._first[bits >> 32 & 0x1FFF],
            last=self._last[bits & 0xFFFF],
            place=self._places[bits & 0x7FFF],
            term=self._terms[bits & 0x7FFF],
            topic=self._topics[bits >> 16 & 0xFFFF],
            other=self._topics[bits >> 32 & 0xFFFF],
        )

    def _written(self, number: int) -> tuple[list[str], list[tuple[int, int]]]:
        """The sentences of a passage, and its mentions as (number, sentence)."""
        chance = self._chance
        chance.seed(number)
        draw, stream, end = chance.random, self._stream, len(self._stream) - 12
        title = self.bare_title(number)
        count = 4 + int(draw() * 5)
        spread = log((self.size + 5) / 5)
        mentioned = []
        for _ in range(2 + int(draw() * 7)):
            other = int(5 * exp(draw() * spread)) - 5  # Zipf's law
            mentioned.append(((other if other != number else other + 1) % self.size, int(draw() * count)))
        sentences = []
        for at in range(count):
            if at == 0:
                parts = [title, "was" if draw() < 0.7 else "is", "a"]
            elif (turn := draw()) < 0.3:
                parts = [title.rpartition(" ")[2]]  # "Tarkovsky was ..."
            elif turn < 0.8:
                parts = [_OPENERS[int(draw() * len(_OPENERS))]]
            else:
                parts = [stream[int(draw() * end)].capitalize()]
            start = int(draw() * end)
            parts += stream[start : start + 5 + int(draw() * 8)]
            for other, where in mentioned:
                if where == at:
                    start = int(draw() * end)
                    parts += (_BEFORE_NAME[start % len(_BEFORE_NAME)], self.bare_title(other))
                    parts += stream[start : start + 2 + int(draw() * 4)]
            if draw() < 0.3:
                parts += ("in", str(1850 + int(draw() * 175)))
            elif parts[-1] in _FUNCTION:
                parts.pop()
            sentences.append(" ".join(parts) + ".")
        return sentences, mentioned


def _mixed(number: int) -> int:
    """64 pseudo-random bits (splitmix64), from which a title is made."""
    bits = (number + 1) * 0x9E3779B97F4A7C15 & _MIXED
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MIXED
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MIXED
    return bits ^ bits >> 31


def _vocabulary(size: int) -> list[str]:
    chance = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < size:
        word = "".join(chance.choices(_SYLLABLES, k=chance.choice((1, 2, 2, 3, 3, 4))))
        if word not in _FUNCTION and word != "ste":  # an abbreviation, after which no sentence ends
            words[word] = None
    return list(words)


def _by_popularity(chance: random.Random, words: list[str], offset: int, size: int) -> list[str]:
    """Cumulative weights of 1 / (rank + offset)."""
    weights = list(accumulate(1 / (rank + offset) for rank in range(len(words))))
    return chance.choices(words, cum_weights=weights, k=size)


def _running_text(vocabulary: list[str], length: int) -> list[str]:
    """Words by Zipf's law, with a function word after two of five."""
    chance = random.Random(2)
    words: list[str] = []
    for word in _by_popularity(chance, vocabulary, 2, length):
        words.append(word)
        if chance.random() < 0.4:
            words.append(chance.choice(_FUNCTION))
    return words
