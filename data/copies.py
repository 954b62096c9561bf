"""Copies among the documents of a corpus: the same text again, other formats of one document, books of its pages."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import median
from typing import NamedTuple

from .converters import Text
from .folder import Source

_SAME = 0.5
"""The share of the three-word runs of a file that its twin in a richer format has. Of 766 files with the name of a
richer one (the manuals of Python and git, Debian's policy), 749 have more; of 1,500 pairs with other names, one has."""
_BOOKS = frozenset((".epub", ".pdf"))
_IN_OTHERS, _RUN, _FEWEST, _MOST, _COMMON = 0.75, 6, 20, 200, 3
"""A book is left out if this share of its runs of so many words is in documents of other formats, whatever their names;
of so few runs it cannot be told, and of more than so many, not all are looked up. What so many documents have is common
to them, and does not count. Of ten manuals of Erlang, GnuTLS and bash, as PDF and as HTML, 83 to 98% are."""
_LARGE, _IN_PAGES, _IN_ONE, _OF_PAGE = 8, 0.9, 0.5, 100
"""So is a page that is so many times as large as most, if this share of its runs is in others, but not more than so
much in one; of at least so many of those that are looked up and not common. Of ten manuals of 80 to 2,900 pages, two
have such a page: all others as one."""


class Look(NamedTuple):
    """What a document is told by.

    Attributes:
        text: A hash of its text; empty for a twin.
        runs: Hashes of some of its runs of words.
        reason: Why it is a copy; empty if it is none.
        other: The document that it is a copy of.
    """

    text: str = ""
    runs: Sequence[str] = ()
    reason: str = ""
    other: str = ""


class Copies:
    """Tells which documents are copies of others: of those seen before, and of those of an index.

    Args:
        documents: Those of the corpus.
        replaced: Those of the index that count no more. It may change.
        earlier: Returns what was noted of a key; None, after noting a value, for a new one.
        indexed: Returns the documents of an index that have a "text" or a "run", by its hash.
    """

    def __init__(
        self,
        documents: Iterable[Source],
        replaced: Collection[str],
        earlier: Callable[[str, str], str | None] | None,
        indexed: Callable[[str, str], Iterable[str]],
    ) -> None:
        notes = dict[str, str]()
        self._earlier = earlier or (lambda key, value: None if notes.setdefault(key, value) is value else notes[key])
        self._indexed, self._replaced = indexed, replaced
        sizes = {source.name: source.size for source in documents if not _is_book(source)}
        usual = median(sizes.values() or [0])
        self._large = {name: size for name, size in sizes.items() if size > _LARGE * usual}

    def order(self, group: Sequence[Source]) -> tuple[bool, bool, int]:
        """When to look at the formats of a document: after all that they are compared with."""
        are = [_is_book(source) for source in group]
        return any(are), all(are), max(self._large.get(source.name, 0) for source in group)

    def look(self, text: Text, source: Source, twins: dict[str, set[int]] | None) -> Look:
        """Compare a document with those before.

        Args:
            text: Its text.
            source: Its file.
            twins: The three-word runs of the same document in richer formats, by id, to which its own are added; None
                if it has one format.
        """
        if other := _twin(text, source.name, twins):
            return Look(reason=f"the same text as {other}, in another format", other=other)
        digest = _text_hash(text)
        if other := self._first(digest, source.name):
            return Look(digest, reason=f"the same text as {other}", other=other)
        runs = _runs(text)
        if other := self._holder(runs, source):
            return Look(digest, reason=f"its text is in other documents, most of it in {other}", other=other)
        return Look(digest, [] if _is_book(source) else runs)  # those of one book say nothing about another

    def _first(self, hashed: str, name: str) -> str | None:
        """Another document that has a text, in the index or read before."""
        for document in self._indexed("text", hashed):
            if document != name and document not in self._replaced:
                return document
        first = self._earlier(f"text {hashed}", name)
        return first if first != name else None

    def _holder(self, runs: list[str], source: Source) -> str | None:
        """The document that has the most of a book or a large page, if others have nearly all of it; the runs of other
        documents are noted. Runs that many documents have, as contracts do, do not count."""
        is_book = _is_book(source)
        if is_book or source.name in self._large:
            fewest, share, in_one = (_FEWEST, _IN_OTHERS, 1) if is_book else (_OF_PAGE, _IN_PAGES, _IN_ONE)
            held = [self._holders(run, source.name, is_book) for run in runs[:: 1 + len(runs) // _MOST]]
            told = [found for found in held if len(found) < _COMMON]
            holders = Counter(found[0] for found in told if found)
            of, most = len(told), max(holders.values(), default=0)
            if of >= fewest and holders.total() >= share * of and most <= in_one * of:
                return holders.most_common(1)[0][0]
        for run in () if is_book else runs:
            for n in range(_COMMON):
                if self._earlier(f"run {n} {run}", source.name) in (None, source.name):
                    break
        return None

    def _holders(self, run: str, name: str, is_book: bool) -> list[str]:
        """The documents other than books that have a run, not more than `_COMMON` of those read now."""
        noted = (self._earlier(f"run {n} {run}", "" if is_book else name) for n in range(_COMMON))
        indexed = (each for each in self._indexed("run", run) if each not in self._replaced)
        return [each for each in dict.fromkeys([*indexed, *filter(None, noted)]) if each != name]


def _is_book(source: Source) -> bool:
    return source.path.suffix.lower() in _BOOKS


def _text_hash(text: Text) -> str:
    """With the targets of its links: a page that leads elsewhere is no copy."""
    digest = hashlib.blake2b(text.title.encode(), digest_size=16)
    for line in text.lines:
        digest.update("\n".join(["", line.text, *(link.target for link in line.links)]).encode())
    return digest.hexdigest()


def _words(text: Text) -> list[str]:
    return [word for line in text.lines for word in re.findall(r"\w+", line.text.lower())]


def _runs(text: Text) -> list[str]:
    """Hashes of the runs that begin with a word of nine letters, which are 4% of all, in digits."""
    words = _words(text)
    starts = (at for at, word in enumerate(words[: 1 - _RUN]) if len(word) == 9)
    runs = (" ".join(words[at : at + _RUN]).encode() for at in starts)
    return [str(int.from_bytes(hashlib.blake2b(run, digest_size=7).digest())) for run in runs]


def _twin(text: Text, name: str, twins: dict[str, set[int]] | None) -> str | None:
    """The document in a richer format that says the same, if one does; else its own three-word runs are noted."""
    if twins is None:
        return None
    words = _words(text)
    runs = {hash(run) for run in zip(words, words[1:], words[2:], strict=False)}
    for other, richer in twins.items():
        if runs and len(runs & richer) >= _SAME * len(runs):
            return other
    twins[name] = runs
    return None
