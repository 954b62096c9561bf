"""What a question asks for: its words with what each is worth, as the bits of a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate

from ..text import clean, join_initials, key_word, words
from .reading import Name, runs, topic

_LONGEST_TITLE = 12  # words of a title that stands in a question
_MOST_WORDS = 300  # of a question: more is a document


class Question:
    """A question over a collection.

    Sets of its words are bit masks: what a sentence has of the question is one number.

    Args:
        text: The question.
        idf: The weight of a word in the collection: 1 where a single passage has it, 0 where none has.

    Attributes:
        key: The folded words with a space on either side.
        worth: The weight of a set of its words, as a share of all.
        everything: The set of all its words.
    """

    def __init__(self, text: str, idf: Callable[[str], float]) -> None:
        written = words(join_initials(clean(text)))[:_MOST_WORDS]
        self.text, self._idf = text, idf
        self._keys = [key_word(word) for word in written]
        self.key = f" {' '.join(self._keys)} "
        starts = list(accumulate((len(key) + 1 for key in self._keys), initial=0))[:-1]
        # The first word tells nothing.
        written_so = any(at and word[0].isupper() for at, word in zip(starts, written, strict=True))
        capitals = [at for at, word in zip(starts, written, strict=True) if not word[0].islower()]
        self._capitals = capitals if written_so else range(len(self.key))
        self._written: dict[str, str] = {}  # of each stem
        for word, key in zip(written, self._keys, strict=True):
            if stem := topic(key):
                self._written.setdefault(stem, word)
        self._bits = {stem: 1 << at for at, stem in enumerate(self._written)}
        self._rarities: dict[Name, float] = {}
        self._stems = frozenset(self._bits)
        self.everything = (1 << len(self._bits)) - 1
        weights = [idf(word) for word in self._written.values()]
        whole = math.fsum(weights) or 1.0
        self.worth = Worth([weight / whole for weight in weights])

    @cached_property
    def title_candidates(self) -> list[str]:
        """Every run of words that may be a title."""
        return list(dict.fromkeys(runs(self._keys, longest=_LONGEST_TITLE)))

    def mask(self, stems: frozenset[str]) -> int:
        """Which words of the question are among some stems."""
        return sum([self._bits[stem] for stem in self._stems & stems])

    def words(self, mask: int) -> tuple[str, ...]:
        """The words of a mask, as written."""
        return tuple(word for at, word in enumerate(self._written.values()) if mask >> at & 1)

    def has(self, name: Name) -> bool:
        return name.key in self.key

    def place(self, name: Name) -> tuple[int, int] | None:
        """Where a name stands in the question, in characters of the key."""
        at = self.key.find(name.key)
        return (at, at + len(name.key) - 1) if at >= 0 else None

    def capitalised(self, place: tuple[int, int]) -> bool:
        """Whether a word there begins with a capital or a digit; always, if the question has no capitals."""
        return any(place[0] <= at < place[1] for at in self._capitals)

    def rarity(self, name: Name) -> float:
        """How telling a name is: the weights of its words together. Folded words stand for those with accents."""
        if (found := self._rarities.get(name)) is None:
            found = math.fsum(self._idf(word) or 1.0 for word in set(name.key.split()) if topic(word))
            self._rarities[name] = found
        return found


class Worth:
    """What sets of the question's words are worth, given how much of each is still unexplained."""

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = shares
        self._known: dict[int, float] = {}

    def __call__(self, mask: int) -> float:
        """The weight of a set of words, 0 to 1."""
        if (found := self._known.get(mask)) is None:
            found = self._known[mask] = math.fsum(share for at, share in enumerate(self._shares) if mask >> at & 1)
        return found

    def after(self, mask: int, explained: float) -> Worth:
        """The same once a passage has explained a set of words, to a degree between 0 and 1."""
        return Worth([share * (1 - explained) if mask >> at & 1 else share for at, share in enumerate(self._shares)])
