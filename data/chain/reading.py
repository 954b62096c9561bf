"""What a passage says, as an array of numbers that is small on disk and fast to compare.

A word is a 32-bit number: 22 bits of a hash of its stem, 8 bits of a hash of its folded form, and two flags. Function
words have stems below `TOPIC`. 0 separates the title and the sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from html import unescape
from pathlib import PurePosixPath
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..links import address, file_words
from ..passages import Passage
from ..text import FUNCTION_WORDS, WORD, bare_title, code_parts, join_initials, key_words, short_title, stem

Words = NDArray[np.uint32]

STARTS, NAMED = 1, 2  # flags: a name may start here (no lower-case letter); inside a capitalized name
TOPIC = 512  # the least stem of a topic word
FORM_BITS, STEM_BITS = 2, 10  # a word without its flags, and its stem, are what remains after this shift
LONGEST_NAME = 12  # words; of a longer name the beginning is compared
LATER = 1 << 7  # flag of a header: the passage does not open its document
_LONGEST_TITLE = 127  # words
_MOST_NAMES = 255  # of a passage
_MOST_LINKS = 200
_JOINING = frozenset("of the and de la le du des del della di da von van der den for in".split())
_LINK_KINDS = ("text", "see", "contents")
LINK_SIZE = 4  # numbers of a link: its span, the document in two, its place there with its kind
KIND_BITS = 2
_CACHED = 200_000
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w{2,8});")
_AND = re.compile(r"\s*&\s*")


class Word(NamedTuple):
    """A word as written, its folded forms (rarely more than one), and the numbers of these.

    Attributes:
        upper: It starts with a capital.
        starts: It does not start with a lower-case letter.
        joins: It may stand inside a name, as "of" does.
    """

    written: str
    forms: tuple[str, ...]
    numbers: tuple[int, ...]
    upper: bool
    starts: bool
    joins: bool


def _forms_of(written: str) -> tuple[str, ...]:
    if written.isascii() and written.isalnum():
        return (written.lower(),)
    return (*key_words(written), *(part.lower() for part in code_parts(written)))


class _Known(dict[str, Word]):
    """Words seen before; several times faster than an lru_cache."""

    def __missing__(self, written: str) -> Word:
        if len(self) >= _CACHED:
            self.clear()
        forms = _forms_of(written)
        lower = written[0].islower()
        joins = len(forms) == 1 and forms[0] in _JOINING
        numbers = tuple(number(form) | (0 if lower else STARTS) for form in forms)
        found = self[written] = Word(written, forms, numbers, written[0].isupper(), not lower, joins)
        return found


_known = _Known()


def without_flags(words: Words) -> Words:
    found: Words = np.right_shift(words, FORM_BITS)
    return found


def stems_of(words: Words) -> Words:
    """The stems of words with flags."""
    found: Words = np.right_shift(words, STEM_BITS)
    return found


def number(form: str) -> int:
    """The number of a folded word; only one without letters that have case is flagged."""
    if form in FUNCTION_WORDS:
        return (1 + crc32(form.encode()) % (TOPIC - 1)) << STEM_BITS
    slot = TOPIC + crc32(stem(form).encode()) % ((1 << 32 - STEM_BITS) - TOPIC)
    cased = 0 if form.islower() else NAMED  # a number, or a script without capitals
    return slot << STEM_BITS | (crc32(form.encode(), 1) & 0xFF) << FORM_BITS | cased


def prepared(text: str) -> str:
    """A text whose words are read: no HTML entities, which HotpotQA's titles have, "and" for "&", joined initials."""
    if "&" in text:
        text = _AND.sub(" and ", _ENTITY.sub(lambda found: unescape(found.group()), text))
    return join_initials(text)


def read(text: str) -> list[Word]:
    """The words of a title or a question."""
    return [_known[written] for written in WORD.findall(prepared(text))]


def texts_of(passage: Passage) -> tuple[str, ...]:
    """The title of a passage; the words of its file's name, and the headings above it as one sentence, if any; and its
    own sentences."""
    headings = " ".join(passage.place.headings) if passage.place else ""
    return passage.title, *filter(None, (file_words(passage.document), headings)), *passage.sentences


def folded(text: str) -> list[str]:
    """The folded words of a title or a sentence."""
    return [form for written in WORD.findall(prepared(text)) for form in _forms_of(written)]


def wording(words: Sequence[Word], start: int, end: int) -> str:
    """The forms from ``start`` to ``end`` of some words; a word of code or a number that is whole there, as written."""
    found: list[str] = []
    at = 0
    for word in words:
        forms = word.forms[max(start - at, 0) : max(end - at, 0)]
        code = len(word.forms) > 1 or any(map(str.isdigit, word.written))
        found += [word.written] if code and forms and forms == word.forms else forms
        at += len(word.forms)
    return " ".join(found)


class Record(NamedTuple):
    """What a `Store` keeps of a passage.

    Attributes:
        words: Header, names, links, words; see `Store`.
        document: The number of its document.
        places: By which links name it: the numbers of a document and of an anchor in it, 0 for its opening.
    """

    words: Words
    document: int
    places: tuple[tuple[int, int], ...]


def document_number(target: str) -> int:
    """A 64-bit number of the document that a target or an id names, see `address`."""
    return int.from_bytes(blake2b(address(target).encode(), digest_size=8).digest(), "little")


def anchor_number(target: str) -> int:
    """A 30-bit number of a target's fragment; 0 for none."""
    fragment = target.partition("#")[2]
    return crc32(fragment.encode()) >> KIND_BITS or 1 if fragment else 0


def record_of(passage: Passage) -> Record:
    """The record of a passage in a `Store`."""
    document = document_number(passage.document.replace("#", "%23"))
    texts, file = texts_of(passage), file_words(passage.document)
    reading = Reading(texts)
    opens = not (passage.place and passage.place.sentence)
    offset = len(texts) - len(passage.sentences)
    links = [
        number
        for link in passage.links[:_MOST_LINKS]
        if (target := document_number(link.target)) != document
        for number in (
            reading.span(link.sentence + offset, link.text),
            target & 0xFFFFFFFF,
            target >> 32,
            anchor_number(link.target) << KIND_BITS | _LINK_KINDS.index(link.kind),
        )
    ]
    record = reading.record(links, len(folded(file)) if file else 0)
    if not opens:
        record[0] |= LATER
    places = {(document, anchor_number(f"#{anchor}")) for anchor in passage.anchors}
    if opens:
        # Wikis link by the title or the name of the file.
        names = f"[[{passage.title}]]", f"[[{PurePosixPath(passage.document).stem}]]"
        places |= {(number, 0) for number in (document, *(map(document_number, names) if file else ()))}
    return Record(record, document, tuple(sorted(places)))


cached_record = lru_cache(maxsize=2048)(record_of)  # passages of pools are read again by the next search


class Reading:
    """The words and the names of a passage.

    Args:
        texts: See `texts_of`.

    Attributes:
        forms: The folded words, "" between the texts.
        numbers: Their numbers; 0 between.
        title: The number of words in the title; without its disambiguation; up to its first comma.
        short: The first word and the end of the title as others write it, see `short_title`; 0, 0 for the same.
        starts: The first word of each text.
        names: The capitalized names of the text as (start, end), each wording once.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        title, *sentences = map(prepared, texts)
        self.forms: list[str] = []
        self.numbers: list[int] = []
        self.names: list[tuple[int, int]] = []
        bare = bare_title(title)
        for word in read(title):
            self._add(word)
        counts = len(self.forms), len(folded(bare)), len(folded(bare.split(",")[0])) if "," in title else 0
        self.title = tuple(min(count, _LONGEST_TITLE) for count in counts)
        self.short = self._short(title)
        self.starts = [0]
        self._wordings: set[tuple[str, ...]] = {tuple(self.forms[: counts[1]])}
        for sentence in sentences:
            self._break()
            self.starts.append(len(self.forms))
            self._sentence(sentence)
        del self.names[_MOST_NAMES:]

    def record(self, links: Sequence[int] = (), file: int = 0) -> Words:
        """Headers, names, links, words; see `Store`."""
        title, bare, comma = self.title
        header = title | bare << 8 | comma << 16 | len(self.names) << 24
        second = self.short[0] | self.short[1] << 8 | len(links) // LINK_SIZE << 16 | min(file, 255) << 24
        names = [start << 16 | end for start, end in self.names]
        return np.array([header, second, *names, *links, *self.numbers], np.uint32)

    def span(self, text: int, words: str) -> int:
        """Where words are in one of the texts, as a packed (start, end); its first word if they are not there."""
        start = self.starts[min(text, len(self.starts) - 1)]
        if start >= (1 << 16) - LONGEST_NAME:
            return 0
        wanted = folded(words)[:LONGEST_NAME]
        end = self.forms.index("", start) if "" in self.forms[start:] else len(self.forms)
        for at in range(start, end - len(wanted) + 1) if wanted else ():
            if self.forms[at : at + len(wanted)] == wanted and at + len(wanted) < 1 << 16:
                return at << 16 | at + len(wanted)
        return start << 16 | start

    def _short(self, title: str) -> tuple[int, int]:
        before, short = short_title(title)
        start = len(folded(before))
        end = start + len(folded(short))
        return (start, end) if 0 < end - start < self.title[1] and end <= _LONGEST_TITLE else (0, 0)

    def _add(self, word: Word) -> None:
        self.forms += word.forms
        self.numbers += word.numbers

    def _break(self) -> None:
        self.forms.append("")
        self.numbers.append(0)

    def _sentence(self, sentence: str) -> None:
        """Add a sentence and its names: "University of Amsterdam" is one, "Moore, Smith" are two.

        A single word at the start of the sentence does not count: every sentence starts with a capital.
        """
        forms, numbers, known = self.forms, self.numbers, _known
        first = len(forms)
        start = end = -1  # of the name
        after = 0  # characters
        initials = False
        for match in WORD.finditer(sentence):
            written = match.group()
            word = known[written]
            if start >= 0:
                gap = sentence[after : match.start()].strip(" \u00a0-–")
                if (gap and not (gap == "." and initials)) or not (word.upper or word.joins):
                    self._name(start, end, first)
                    start = -1
            if word.upper:
                at = len(forms)
                start, end = (start if start >= 0 else at), at + len(word.forms)
            forms += word.forms
            numbers += word.numbers
            if start >= 0:
                after = match.end()
                initials = len(written) == 1 or "." in written
        if start >= 0:
            self._name(start, end, first)

    def _name(self, start: int, end: int, first: int) -> None:
        while start < end and self.forms[start] in FUNCTION_WORDS:
            start += 1
        if start == end or (start == first and end == start + 1) or end >= 1 << 16:
            return
        for at in range(start, end):
            self.numbers[at] |= NAMED
        if (wording := tuple(self.forms[start:end])) not in self._wordings:
            self._wordings.add(wording)
            self.names.append((start, end))
