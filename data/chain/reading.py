"""What a passage says, as far as a chain of evidence needs it: its names, its sentences, the names it mentions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..passages import Passage
from ..text import (
    FUNCTION_WORDS,
    WORD,
    bare_title,
    join_initials,
    key_word,
    key_words,
    stem,
    title_key,
    title_names,
    words,
)

_LONGEST_NAME = 7  # words
_COPY = 0.7  # share of the shorter passage's different words that the longer one has too
_JOINING = frozenset("of the and de la le du des del della di da von van der den for in".split())


class Name(NamedTuple):
    """A name to look for: its folded words with a space on either side, and the longest of them."""

    key: str
    probe: str

    @classmethod
    def of(cls, folded: str) -> Name:
        return cls(f" {folded} ", max(folded.split(), key=len))


class Reading:
    """A passage, analysed. Everything in it depends on the passage alone, so that it can be kept between questions.

    Attributes:
        names: The forms under which other texts may mention the subject, with the certainty that they mean it.
        subject: The stems of the title's words that carry a topic.
        sentences: Each sentence as folded words with a space on either side, and the stems of its words.
        title_key: The title in the same form.
        text_key: The sentences in the same form; no name runs across two of them.
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

    def mentions(self, name: Name) -> bool:
        """Whether a name stands in the text."""
        return name.probe in self._forms and name.key in self.text_key  # the first is much faster

    def capitalises(self, name: Name) -> bool:
        """Whether the text writes the name's longest word with a capital, or it is of a script without them."""
        return name.probe in self._capitals or not name.probe.islower()

    def is_about(self, name: Name) -> bool:
        """Whether a name stands in the title."""
        return name.probe in self._forms and name.key in self.title_key

    def copies(self, other: Reading) -> bool:
        """Whether both say much the same: another version of one page."""
        shorter = min(len(self._forms), len(other._forms))
        return self.title_key == other.title_key and len(self._forms & other._forms) >= _COPY * shorter

    @cached_property
    def _capitals(self) -> frozenset[str]:
        return frozenset(word for name in self.mentioned for word in name.key.split())

    @cached_property
    def mentioned(self) -> tuple[Name, ...]:
        """The capitalised names in the text, each once; the title's own name comes first."""
        own = title_key(bare_title(self.passage.title))
        found = (name for sentence in self.passage.sentences for name in _capitalised(sentence))
        return tuple(Name.of(name) for name in dict.fromkeys((own, *found)) if carries_topic(name))

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
    """The runs of words that a title may have: from one of ``starts``, if given, to a word that carries a topic."""
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
def _names(title: str) -> tuple[tuple[Name, float], ...]:
    whole, bare = title_key(title), title_key(bare_title(title))
    forms = {whole: 1.0, bare: 0.9} | dict.fromkeys(title_names(title), 0.6)
    parts = bare.split()
    if len(parts) > 2 and parts[0] not in FUNCTION_WORDS:
        forms.setdefault(f"{parts[0]} {parts[-1]}", 0.6)  # a person's first and last name
    forms |= {bare: 0.9, whole: 1.0}
    return tuple((Name.of(form), sure) for form, sure in forms.items() if len(form) > 1 and carries_topic(form))


def _capitalised(sentence: str) -> Iterator[str]:
    """The capitalised names of a sentence: "University of Amsterdam" is one, "Moore, Smith" are two.

    A single word that opens the sentence is none: it may have its capital from there.
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
    """Without the function words that it opens with: "In Paris" is Paris."""
    start = next((at for at, key in enumerate(words) if key not in FUNCTION_WORDS), len(words))
    return "" if first + start == 0 and len(words) == 1 else " ".join(words[start:])
