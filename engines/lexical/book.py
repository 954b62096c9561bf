"""Pages prepared for reading: every candidate span of every line in one table, with all that does not depend on the
question. Kept by line and by pages, since the same texts come back for every sub-question and in every round."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...data.text import FUNCTION_WORDS, bare_title, title_key
from .gazetteer import is_adjective, is_country, is_state
from .reading import Line, Page
from .relations import relation_term, relation_terms
from .spans import DATE, KINDS, TITLE, YEAR, Candidate, candidates
from .vocabulary import ORGANISATION_NOUNS, PERSON_NOUNS, PLACE_NOUNS, WORK_NOUNS

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]
Indices = NDArray[np.int64]

# The words beside a span that are told apart; of others only how they are written.
_BEFORE = (
    "by in of at from as the a an and to for with on is was were are ( , : \" ' named called born died since near into "
    "his her or than between under that who which"
).split()
_AFTER = ". , ( ) and of in is was 's ; who which that \" for at from to or has had".split()
_NOUNS = {
    "person noun": PERSON_NOUNS, "place noun": PLACE_NOUNS, "work noun": WORK_NOUNS,
    "organisation noun": ORGANISATION_NOUNS,
}  # fmt: skip
SIGNS = (
    *KINDS, "1 word", "2 words", "3 words", "4 words", "capitals", "first capital", "digit", "country", "state",
    "adjective",
    *_NOUNS, "opens line", "in parentheses", "first of life", "last of life", "longest", "place in line",
    "article", "list", "of", "like a person", *(f"after {word}" for word in _BEFORE), "after a capital",
    "after a digit",
    *(f"before {word}" for word in _AFTER), "before a capital", "before another",
)  # fmt: skip
_COLUMN = {name: number for number, name in enumerate(SIGNS)}

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LIFE = re.compile(r"\(([^()]*\d{3,4}[^()]*)\)")  # "(12 May 1901 – 3 June 1980)"
_PREVIOUS = re.compile(r"(?:[\w'’]+|[^\w\s])\s*$")
_NEXT = re.compile(r"\s*('s|\w+|[^\w\s])")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Reading:
    """A line prepared.

    Attributes:
        words: How many words it has.
        where: At which of them each relation term stands.
        spans: The candidates.
        keys: Of each, under which it is one answer with others.
        first: Of each, its first word.
        last: Of each, its last word.
        content: Of each, how many of its words carry a topic.
        signs: Of each, a row in the order of `SIGNS`.
    """

    words: int
    where: dict[str, tuple[int, ...]]
    spans: tuple[Candidate, ...]
    keys: tuple[str, ...]
    first: Indices
    last: Indices
    content: Indices
    signs: Matrix


@lru_cache(maxsize=8192)
def read_line(text: str) -> Reading:
    """Prepare a line."""
    words = list(_WORD.finditer(text))
    where: dict[str, tuple[int, ...]] = {}
    topical = [0]
    for n, word in enumerate(words):
        if term := relation_term(word.group()):
            where[term] = (*where.get(term, ()), n)
        topical.append(topical[-1] + bool(term))
    spans = candidates(text)
    first = np.searchsorted([word.end() for word in words], [span.start for span in spans], side="right")
    last = np.searchsorted([word.start() for word in words], [span.end for span in spans], side="left") - 1
    counts = np.array(topical)
    return Reading(
        len(words), where, spans, tuple(answer_key(span.text) for span in spans), first, last,
        counts[last + 1] - counts[first], _signs(text, spans),
    )  # fmt: skip


@lru_cache(maxsize=32768)
def answer_key(text: str) -> str:
    """What two spellings of one answer share."""
    return title_key.__wrapped__(text).removeprefix("the ")


def _signs(text: str, spans: Sequence[Candidate]) -> Matrix:
    rows = np.zeros((len(spans), len(SIGNS)), np.float32)
    life = _LIFE.search(text)
    dated = [s for s in spans if life and s.kind in (DATE, YEAR) and life.start() <= s.start < life.end()]
    holds: list[int] = []  # in the flattened rows
    reached = 0
    for n, span in enumerate(spans):
        on = [*_own_signs(span.text, span.kind), *_neighbours(text, span)]
        if span.end > reached:
            on.append(_COLUMN["longest"])
            reached = span.end
        if dated and span.start == dated[0].start:
            on.append(_COLUMN["first of life"])
        elif dated and span.end == dated[-1].end:
            on.append(_COLUMN["last of life"])
        row = n * len(SIGNS)
        holds += [row + column for column in on]
    if holds:
        rows.ravel()[holds] = 1
        rows[:, _COLUMN["place in line"]] = [span.start / len(text) for span in spans]
    return rows


@lru_cache(maxsize=32768)
def _own_signs(text: str, kind: str) -> tuple[int, ...]:
    words = text.split()
    capitals = [word[0].isupper() for word in words if word.lower() not in FUNCTION_WORDS]
    capital = bool(capitals) and all(capitals)
    digit = _DIGIT.search(text) is not None
    last = words[-1].lower().rstrip(".") if words else ""
    on = [kind, ("1 word", "2 words", "3 words", "4 words")[min(len(words), 4) - 1]]
    on += [name for name, nouns in _NOUNS.items() if last in nouns or last.removesuffix("s") in nouns]
    if is_country(text):
        on.append("state" if is_state(text) else "adjective" if is_adjective(text) else "country")
    elif is_adjective(text):
        on.append("adjective")
    if capital:
        on.append("capitals")
    if text[:1].isupper():
        on.append("first capital")
    if digit:
        on.append("digit")
    if words and words[0].lower() in ("the", "a", "an"):
        on.append("article")
    if "," in text or " and " in text:
        on.append("list")
    if " of " in text:
        on.append("of")
    if capital and 2 <= len(words) <= 4 and not digit and "," not in text and "of" not in words:
        on.append("like a person")
    return tuple(_COLUMN[name] for name in on)


def _neighbours(text: str, span: Candidate) -> list[int]:
    on = []
    if text.rfind("(", 0, span.start) > text.rfind(")", 0, span.start):
        on.append(_COLUMN["in parentheses"])
    if previous := _PREVIOUS.search(text[max(0, span.start - 24) : span.start]):
        on.append(_beside(previous.group().rstrip(), True))
    else:
        on.append(_COLUMN["opens line"])
    if following := _NEXT.match(text, span.end):
        on.append(_beside(following[1], False))
    return [column for column in on if column >= 0]


@lru_cache(maxsize=8192)
def _beside(word: str, is_before: bool) -> int:
    """The column of the word before or after a span; -1 where nothing is made of it."""
    side, known = ("after", _BEFORE) if is_before else ("before", _AFTER)
    if word.lower() in known:
        return _COLUMN[f"{side} {word.lower()}"]
    if is_before:
        return (
            _COLUMN["after a capital"] if word[0].isupper() else _COLUMN["after a digit"] if word[0].isdigit() else -1
        )
    if not word[0].isalpha():
        return -1
    return _COLUMN["before a capital" if word[0].isupper() else "before another"]


class Book:
    """Pages prepared. Every line also offers the title of its page.

    Attributes:
        lines: All lines, each with its page.
        readings: Of each line.
        page_of_line: The number of each line's page.
        place: Of each line in its page.
        weight: How much a term says about a line: more, the fewer lines have it.
        page_terms: Of each page, with its title.
        opening: Of each page, the terms of its title and first line.
        links: links[a, b] is how surely page a mentions page b.
        spans, texts: The candidates. Of each:
        line, page: where it stands;
        first, last: its words in the line, or -2 for a title;
        content: how many of its words carry a topic;
        signs: its row in the order of `SIGNS`;
        group: the number of the answer that it is, the same for all candidates of one key;
        is_own: whether it is the title of its page;
        keys, groups: of each group, its key; of each key, its group;
        mentions, page_mentions: of each group, how many candidates and pages have it;
        entitled: the pages whose title is a group.
    """

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self.lines: list[tuple[Page, Line]] = [(page, line) for page in pages for line in page.lines]
        self.readings = [read_line(line.text) for _, line in self.lines]
        sizes = [len(page.lines) for page in pages]
        self.page_of_line = np.repeat(np.arange(len(pages)), sizes)
        self.place = np.array([n for size in sizes for n in range(size)], np.float32)
        self._rate_terms()
        self.links = _links(pages)

        tables = [
            r
            for r, (page, _) in zip(self.readings, self.lines, strict=True)
            for r in (r, _title(bare_title(page.title)))
        ]
        self.spans = [span for table in tables for span in table.spans]
        self.texts = [span.text for span in self.spans]
        self.line = np.repeat(np.repeat(np.arange(len(self.lines)), 2), [len(table.spans) for table in tables])
        self.page = self.page_of_line[self.line]
        self.first = _joined([table.first for table in tables])
        self.last = _joined([table.last for table in tables])
        self.content = _joined([table.content for table in tables])
        self.signs = (
            np.concatenate([table.signs for table in tables]) if tables else np.zeros((0, len(SIGNS)), np.float32)
        )
        keys = [key for table in tables for key in table.keys]
        self.keys = list(dict.fromkeys(keys))
        self.groups = {key: n for n, key in enumerate(self.keys)}
        self.group = np.array([self.groups[key] for key in keys], np.int64)
        self._count_mentions()

    def text_after(self, candidate: int, most: int = 16) -> str:
        """What stands behind a candidate in its line: the unit of a number."""
        span, (_, line) = self.spans[candidate], self.lines[self.line[candidate]]
        return "" if span.kind == TITLE else line.text[span.end : span.end + most]

    def _rate_terms(self) -> None:
        frequency: dict[str, int] = {}
        for reading in self.readings:
            for term in reading.where:
                frequency[term] = frequency.get(term, 0) + 1
        self.weight = {term: math.log(1 + len(self.lines) / found) for term, found in frequency.items()}
        self.page_terms = [
            relation_terms(page.title).union(*(read_line(line.text).where for line in page.lines))
            for page in self.pages
        ]
        self.opening = [
            relation_terms(page.title).union(*(read_line(line.text).where for line in page.lines[:1]))
            for page in self.pages
        ]

    def _count_mentions(self) -> None:
        size, pages = len(self.groups), len(self.pages) + 1
        self.mentions = np.bincount(self.group, minlength=size)
        self.page_mentions = np.bincount(np.unique(self.group * pages + self.page) // pages, minlength=size)
        self.entitled: dict[int, list[int]] = {}
        for n, page in enumerate(self.pages):
            for name in dict.fromkeys(answer_key(name) for name in page.names[:2]):
                if (group := self.groups.get(name)) is not None:
                    self.entitled.setdefault(group, []).append(n)
        own = [group * pages + n for group, numbers in self.entitled.items() for n in numbers]
        self.is_own = np.isin(self.group * pages + self.page, own)


@lru_cache(maxsize=64)
def book_of(pages: tuple[Page, ...]) -> Book:
    """The pages prepared."""
    return Book(pages)


@lru_cache(maxsize=4096)
def _title(name: str) -> Reading:
    """A page's title as a candidate that stands outside the line."""
    spans = (Candidate(name, 0, len(name), TITLE),) if name else ()
    outside = np.full(len(spans), -2)
    return Reading(
        0, {}, spans, tuple(answer_key(s.text) for s in spans), outside, outside, outside * 0 + 1, _signs(name, spans)
    )


def _joined(parts: Sequence[Indices]) -> Indices:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)


def _links(pages: Sequence[Page]) -> Matrix:
    found = np.zeros((len(pages), len(pages)), np.float32)
    by_word: dict[str, list[tuple[str, int, float]]] = {}  # names by their first word
    for b, page in enumerate(pages):
        for name, worth in zip(page.names, (1.0, 0.9, 0.6, 0.6), strict=False):
            if len(name) > 2:
                by_word.setdefault(name.split()[0], []).append((f" {name} ", b, worth))
    for a, page in enumerate(pages):
        text = " ".join(line.key for line in page.lines)
        for word in by_word.keys() & text.split():
            for name, b, worth in by_word[word]:
                if a != b and worth > found[a, b] and name in text:
                    found[a, b] = worth
    return found
