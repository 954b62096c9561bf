"""Documents as sentences under headings, and their passages.

A passage has sentences of one section, or of several short ones: then their headings are among its sentences, as they
are among those of the document. A sentence is in one passage only, unless it is too long for one; a term is with the
sentence that follows, and is a heading above a passage that goes on with its definition.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise, takewhile
from math import ceil
from textwrap import dedent
from typing import Any, NamedTuple

from ..links import resolve
from ..passages import MOST_ANCHORS, MOST_LINKS, Link, LinkKind, Passage, Place

MAX_WORDS = 120  # of a passage
LONGEST_PASSAGE = 2000  # words of a record of JSON Lines or CSV that is a passage, whatever the other records are
USUAL_PASSAGE = 300  # words; where most records are longer, they are documents

_LONGEST_WORD = 24  # characters; what is longer has no spaces between its words
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


class Href(NamedTuple):
    """A hyperlink of a sentence.

    Attributes:
        at: How many characters of the sentence, without white space, are before it.
        target: As the document writes it.
    """

    at: int
    target: str
    text: str
    kind: LinkKind = "text"


class Line(NamedTuple):
    """A sentence of a document.

    Attributes:
        headings: The headings above it, from the outermost; of a heading, itself included.
        apart: Which of the blocks it belongs to that are kept apart from other text, such as code; 0 for none.
        links: In their order.
        anchors: The fragment identifiers that start here.
        is_term: What follows explains it: it is not the last of a passage.
        terms: The terms that it explains, from the outermost.
    """

    text: str
    headings: tuple[str, ...] = ()
    is_heading: bool = False
    apart: int = 0
    links: tuple[Href, ...] = ()
    anchors: tuple[str, ...] = ()
    is_term: bool = False
    terms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A document that can be split: its sentences in order, headings included."""

    id: str
    title: str
    lines: Sequence[Line]
    metadata: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, passage: Passage) -> Document:
        return cls(passage.id, passage.title, [Line(text) for text in passage.all_sentences], passage.metadata)

    def whole(self) -> Passage:
        """The document as one passage."""
        return _passage(self, self.id, self.lines, self.lines)


def _passage(
    document: Document, id: str, lines: Sequence[Line], above: Iterable[Line], place: Place | None = None
) -> Passage:
    """A passage of some lines, with the links of these, and the anchors of the lines that it stands for: also of
    headings above it, since a fragment names what follows."""
    sentences: list[str] = []
    for apart, block in groupby(lines, key=lambda line: line.apart):
        texts = [line.text for line in block]
        sentences += dedent("\n".join(texts)).split("\n") if apart else texts
    breaks = [n for n, (one, other) in enumerate(pairwise(lines), 1) if one.apart or other.apart]
    passage = Passage.of(document.title, sentences=sentences, breaks=breaks, id=id, metadata=document.metadata)
    links = (
        Link(target, href.text, number, href.kind)
        for number, line in enumerate(lines)
        for href in line.links
        if (target := resolve(document.id, href.target))
    )
    anchors = dict.fromkeys(anchor for line in above for anchor in line.anchors)
    return replace(
        passage,
        place=place,
        links=tuple(islice(links, MOST_LINKS)),
        anchors=tuple(islice(anchors, MOST_ANCHORS)),
    )


def count_words(text: str) -> int:
    """The number of words. Where none are marked, two characters of a script without spaces count as one, and six
    others."""
    return sum(map(_weight, text.split()))


def _weight(word: str) -> int:
    if len(word) <= _LONGEST_WORD and (word.isascii() or not _UNSPACED.search(word)):
        return 1
    unspaced = 0 if word.isascii() else len(_UNSPACED.findall(word))
    return ceil(unspaced / 2 + (len(word) - unspaced) / 6)


class _Sized(NamedTuple):
    line: Line
    number: int  # of the sentence in the document
    size: int  # words


def split(document: Document, max_words: int = MAX_WORDS) -> list[Passage]:
    """Split a document into passages of at most ``max_words`` words (`count_words`), at sentence boundaries.

    The passages keep the title, have the ids ``<id>#1``, ``<id>#2``, ..., and know their `Place`. A sentence that is
    longer is cut between words. A short document becomes one passage with its own id.
    """
    sized = [_Sized(line, number, count_words(line.text)) for number, line in enumerate(document.lines)]
    if sum(sentence.size for sentence in sized) <= max_words and len({sentence.line.apart for sentence in sized}) <= 1:
        return [document.whole()]
    passages: list[Passage] = []
    reached = 0  # lines whose anchors are in a passage
    for piece in _pieces(sized, max_words):
        first, headings = piece[0].number, _headings(piece)
        above = document.lines[reached : piece[-1].number + 1]
        reached = max(reached, piece[-1].number + 1)
        place, id = Place(document.id, first, headings), f"{document.id}#{len(passages) + 1}"
        passages.append(_passage(document, id, [sentence.line for sentence in piece], above, place))
    return passages


def _pieces(lines: Sequence[_Sized], max_words: int) -> Iterator[list[_Sized]]:
    """The sentences of each passage; sections and definitions are kept whole if they fit, and short ones joined."""
    joined: list[_Sized] = []
    for _, section in groupby(lines, key=lambda sentence: (sentence.line.headings, sentence.line.apart)):
        parts = list(section)
        size, apart = sum(sentence.size for sentence in parts), parts[0].line.apart
        if joined and (apart or joined[-1].line.apart or sum(sentence.size for sentence in joined) + size > max_words):
            yield from _closed(joined)
            joined = []
        if size <= max_words:
            joined += parts
        else:
            for chunk in _chunks(parts, size, max_words):
                yield from _closed(chunk)
    if joined:
        yield from _closed(joined, is_last=True)


def _closed(piece: list[_Sized], *, is_last: bool = False) -> Iterator[list[_Sized]]:
    """A piece without headings at its end, which are above what follows, and at its start, where all of it is below."""
    while piece and piece[-1].line.is_heading and not is_last:
        piece = piece[:-1]
    shared = _headings(piece)
    while (
        len(piece) > 1 and piece[0].line.is_heading and piece[0].line.headings == shared[: len(piece[0].line.headings)]
    ):
        piece = piece[1:]
    if piece:
        yield piece


def _headings(piece: Iterable[_Sized]) -> tuple[str, ...]:
    """The headings above all of a piece, and the terms that its first sentence goes on to explain."""
    parts = [sentence.line for sentence in piece if not sentence.line.is_heading]
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*(line.headings for line in parts), strict=False))
    terms = parts[0].terms if parts and not parts[0].is_term else ()
    return (*(level[0] for level in shared), *(term for term in terms if not parts[0].text.startswith(term)))


def _chunks(lines: Sequence[_Sized], size: int, max_words: int) -> Iterator[list[_Sized]]:
    """Parts of a long section, of about the same length."""
    target = end = size / ceil(size / max_words)
    chunk: list[_Sized] = []
    total = used = 0
    for sentence in _cut(lines, max_words):
        same = bool(chunk) and chunk[-1].number == sentence.number
        if chunk and (same or used + sentence.size > max_words or total + sentence.size / 2 > end):
            terms = list(takewhile(lambda part: part.line.is_term, reversed(chunk)))[::-1]
            if len(terms) == len(chunk) or sum(part.size for part in terms) + sentence.size > max_words:
                terms = []
            yield chunk[: len(chunk) - len(terms)]
            chunk, used, end = terms, sum(part.size for part in terms), max(end, total) + target
        chunk.append(sentence)
        used += sentence.size
        total += sentence.size
    yield chunk


def _cut(lines: Iterable[_Sized], max_words: int) -> Iterator[_Sized]:
    """The sentences, and the parts of those that are too long."""
    for sentence in lines:
        if sentence.size <= max_words:
            yield sentence
            continue
        part: list[str] = []
        used = start = 0
        places = [link.at for link in sentence.line.links]
        for word in chain(_short_words(sentence.line.text.split(), max_words), [""]):
            if part and (not word or used + _weight(word) > max_words):
                end = start + sum(map(len, part))
                links = sentence.line.links[bisect_left(places, start) : bisect_left(places, end)]
                yield _Sized(sentence.line._replace(text=" ".join(part), links=links), sentence.number, used)
                part, used, start = [], 0, end
            part.append(word)
            used += _weight(word)


def _short_words(words: Iterable[str], most: int) -> Iterator[str]:
    """The words, and slices of those that are too long."""
    for word in words:
        if _weight(word) <= most:
            yield word
        else:
            step = (2 if _UNSPACED.search(word) else 6) * most
            yield from (word[at : at + step] for at in range(0, len(word), step))
