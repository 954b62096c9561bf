"""The features of questions and passages that the chain retriever compares: words, names, titles and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from ..passages import Passage
from ..text import (
    FUNCTION_WORDS,
    WORD,
    bare_title,
    clean,
    join_initials,
    key_word,
    key_words,
    stem,
    title_key,
    title_names,
    words,
)

_LONGEST_NAME = 7  # words
_LONGEST_TITLE = 12  # words of a title in a question
_MOST_WORDS = 300  # of a question
_COPY = 0.7  # share of the shorter passage's distinct words that a copy has
_JOINING = frozenset("of the and de la le du des del della di da von van der den for in".split())


class NameKey(NamedTuple):
    """A name to look for: its folded words with a space at both ends, and its longest word."""

    key: str
    probe: str

    @classmethod
    def of(cls, folded: str) -> NameKey:
        return cls(f" {folded} ", max(folded.split(), key=len))


# --- questions -------------------------------------------------------------------------------------------------------


class QuestionFeatures:
    """The words of a question. A set of them is a bit mask, so that the words in a sentence are one integer.

    Args:
        text: The question.
        idf: The weight of a word in the collection: 1 if one passage has it, 0 if none has.

    Attributes:
        key: The folded words with a space at both ends.
        weights: The weight of a set of words, as a share of all.
        all_words: The set of all words.
    """

    def __init__(self, text: str, idf: Callable[[str], float]) -> None:
        written = words(join_initials(clean(text)))[:_MOST_WORDS]
        self.text, self._idf = text, idf
        self._keys = [key_word(word) for word in written]
        self.key = f" {' '.join(self._keys)} "
        starts = list(accumulate((len(key) + 1 for key in self._keys), initial=0))[:-1]
        # The capital of the first word carries no information.
        has_capitals = any(at and word[0].isupper() for at, word in zip(starts, written, strict=True))
        capitals = [at for at, word in zip(starts, written, strict=True) if not word[0].islower()]
        self._capitals = capitals if has_capitals else range(len(self.key))
        self._written: dict[str, str] = {}  # by stem
        for word, key in zip(written, self._keys, strict=True):
            if stem := topic(key):
                self._written.setdefault(stem, word)
        self._bits = {stem: 1 << at for at, stem in enumerate(self._written)}
        self._rarities: dict[NameKey, float] = {}
        self._stems = frozenset(self._bits)
        self.all_words = (1 << len(self._bits)) - 1
        idfs = [idf(word) for word in self._written.values()]
        total = math.fsum(idfs) or 1.0
        self.weights = WordWeights([each / total for each in idfs])

    @cached_property
    def title_candidates(self) -> list[str]:
        """Every run of words that may be a title."""
        return list(dict.fromkeys(runs(self._keys, longest=_LONGEST_TITLE)))

    def mask(self, stems: frozenset[str]) -> int:
        """The question's words among some stems."""
        return sum([self._bits[stem] for stem in self._stems & stems])

    def words(self, mask: int) -> tuple[str, ...]:
        """The words of a mask, as written."""
        return tuple(word for at, word in enumerate(self._written.values()) if mask >> at & 1)

    def mentions(self, name: NameKey) -> bool:
        return name.key in self.key

    def find(self, name: NameKey) -> tuple[int, int] | None:
        """Start and end of a name in the key, in characters; None if it does not occur."""
        at = self.key.find(name.key)
        return (at, at + len(name.key) - 1) if at >= 0 else None

    def capitalizes(self, span: tuple[int, int]) -> bool:
        """Whether a word there starts with a capital or a digit; always true for a question without capitals."""
        return any(span[0] <= at < span[1] for at in self._capitals)

    def rarity(self, name: NameKey) -> float:
        """The total weight of a name's words. Folded words are looked up in place of those with accents."""
        if (found := self._rarities.get(name)) is None:
            found = math.fsum(self._idf(word) or 1.0 for word in set(name.key.split()) if topic(word))
            self._rarities[name] = found
        return found


class WordWeights:
    """The weights of sets of the question's words, lowered for words that chosen passages explain."""

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = shares
        self._known: dict[int, float] = {}

    def __call__(self, mask: int) -> float:
        """The weight of a set of words, 0 to 1."""
        if (found := self._known.get(mask)) is None:
            found = self._known[mask] = math.fsum(share for at, share in enumerate(self._shares) if mask >> at & 1)
        return found

    def after(self, mask: int, explained: float) -> WordWeights:
        """The weights after a passage has explained a set of words, to a degree between 0 and 1."""
        return WordWeights(
            [share * (1 - explained) if mask >> at & 1 else share for at, share in enumerate(self._shares)]
        )


# --- passages --------------------------------------------------------------------------------------------------------


class PassageFeatures:
    """An analyzed passage. It depends on the passage alone, so it can be cached across questions.

    Attributes:
        names: The forms in which other texts may mention the subject, with the certainty that they mean it.
        subject: The stems of the title's topic words.
        sentences: For each sentence, its folded words with a space at both ends, and their stems.
        title_key: The title as folded words.
        text_key: The sentences as folded words; no name spans two of them.
    """

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.names = _names(passage.title)
        title = key_words(passage.title)
        self.title_key = f" {' '.join(title)} "
        self.subject = _stems(title)
        sentences: list[tuple[str, frozenset[str]]] = []
        forms = set(title)
        for sentence in self.passage.sentences:
            keys = key_words(sentence)
            forms.update(keys)
            sentences.append((f" {' '.join(keys)} ", _stems(keys)))
        self.sentences = tuple(sentences)
        self.text_key = "|".join([key for key, _ in sentences])
        self._forms = frozenset(forms)

    def mentions(self, name: NameKey) -> bool:
        """Whether the text contains a name."""
        return name.probe in self._forms and name.key in self.text_key  # the first test is much faster

    def capitalizes(self, name: NameKey) -> bool:
        """Whether the text capitalizes the name's longest word, or its script has no capitals."""
        return name.probe in self._capitals or not name.probe.islower()

    def is_about(self, name: NameKey) -> bool:
        """Whether the title contains a name."""
        return name.probe in self._forms and name.key in self.title_key

    def copies(self, other: PassageFeatures) -> bool:
        """Whether both are versions of one page: the same title and mostly the same words."""
        shorter = min(len(self._forms), len(other._forms))
        return self.title_key == other.title_key and len(self._forms & other._forms) >= _COPY * shorter

    @cached_property
    def _capitals(self) -> frozenset[str]:
        return frozenset(word for name in self.mentioned for word in name.key.split())

    @cached_property
    def mentioned(self) -> tuple[NameKey, ...]:
        """The distinct capitalized names in the text, after the title's own name."""
        own = title_key(bare_title(self.passage.title))
        found = (name for sentence in self.passage.sentences for name in _capitalized(sentence))
        return tuple(NameKey.of(name) for name in dict.fromkeys((own, *found)) if carries_topic(name))

    @cached_property
    def title_candidates(self) -> tuple[str, ...]:
        """Every run of words in the text that may be the title of another passage."""
        found: dict[str, None] = {}
        for sentence in self.passage.sentences:
            written = words(join_initials(sentence))
            starts = [not word[0].islower() for word in written]
            found.update(dict.fromkeys(runs([key_word(word) for word in written], starts)))
        return tuple(found)


def runs(keys: Sequence[str], starts: Iterable[bool] | None = None, longest: int = _LONGEST_NAME) -> Iterator[str]:
    """The runs of words that may be a title: from one of ``starts``, if given, to a topic word."""
    allowed = [True] * len(keys) if starts is None else list(starts)
    for first, allow in enumerate(allowed):
        if not allow:
            continue
        for last in range(first, min(first + longest, len(keys))):
            if keys[last] not in FUNCTION_WORDS and (last > first or len(keys[first]) > 1):
                yield " ".join(keys[first : last + 1])


@lru_cache(maxsize=65536)
def carries_topic(name: str) -> bool:
    """Whether a name has a word that is not a function word."""
    return any(word not in FUNCTION_WORDS for word in name.split())


class _Topics(dict[str, str]):
    """The stem of each folded word; empty for a function word. Three times as fast as an lru_cache."""

    def __missing__(self, word: str) -> str:
        if len(self) >= 200_000:
            self.clear()
        self[word] = found = "" if word in FUNCTION_WORDS else stem(word)
        return found


_topics = _Topics()


def topic(word: str) -> str:
    """The stem of a folded word; empty for a function word."""
    return _topics[word]


def _stems(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_topics.__getitem__, keys))


@lru_cache(maxsize=8192)
def _names(title: str) -> tuple[tuple[NameKey, float], ...]:
    whole, bare = title_key(title), title_key(bare_title(title))
    forms = {whole: 1.0, bare: 0.9} | dict.fromkeys(title_names(title), 0.6)
    parts = bare.split()
    if len(parts) > 2 and parts[0] not in FUNCTION_WORDS:
        forms.setdefault(f"{parts[0]} {parts[-1]}", 0.6)  # a person's first and last name
    forms |= {bare: 0.9, whole: 1.0}
    return tuple((NameKey.of(form), sure) for form, sure in forms.items() if len(form) > 1 and carries_topic(form))


def _capitalized(sentence: str) -> Iterator[str]:
    """The capitalized names of a sentence: "University of Amsterdam" is one, "Moore, Smith" are two.

    A single word at the start of the sentence does not count: every sentence starts with a capital.
    """
    name: list[str] = []
    pending: list[str] = []  # joining words, which belong to the name if a capital follows
    first = end = 0
    initials = False
    for number, match in enumerate(WORD.finditer(sentence := join_initials(sentence))):
        word, gap = match.group(), sentence[end : match.start()].strip(" \u00a0-–&")
        end = match.end()
        key = key_word(word)
        joined = not gap or (gap == "." and initials)
        initials = len(word) == 1 or "." in word
        if not joined or not (word[0].isupper() or key in _JOINING):
            yield _name(name, first)
            name, pending = [], []
        if word[0].isupper():
            first = first if name else number
            name += [*pending, key]
            pending = []
        elif name:
            pending.append(key)
    yield _name(name, first)


def _name(words: list[str], first: int) -> str:
    """The name without leading function words: "In Paris" -> "Paris"."""
    start = next((at for at, key in enumerate(words) if key not in FUNCTION_WORDS), len(words))
    return "" if first + start == 0 and len(words) == 1 else " ".join(words[start:])
