"""What a text says: its names, dates, numbers and topic terms. Every result is cached by text: the same candidates come
back in every round and for every agent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ...data.text import FUNCTION_WORDS, content_terms, title_key, title_names

# --- spans -----------------------------------------------------------------------------------------------------------

_CAPITALISED = r"[A-ZÀ-ÖØ-ÞĀ-ž\u0391-\u03ab\u0400-\u042f][\w'’.\-–+]*"
_JOIN = r"(?:of|the|de|da|di|du|des|del|della|la|le|les|von|van|der|den|bin|ibn|al|el|y|for|à)"
_NAME = re.compile(
    rf"{_CAPITALISED}(?:(?:\s+(?:{_JOIN}\s+){{0,2}}|\s*&\s*)(?:{_CAPITALISED}|\d{{1,3}}(?![\d,.%]*\d)))*"
)
_QUOTED = re.compile(r"[\"“]\s*([^\"”“]{2,80}?)\s*[\"”]")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<m1>{_MONTHS}),?\s+(?P<y1>\d{{3,4}})"
    rf"|(?P<m2>{_MONTHS})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y2>\d{{3,4}})"
    rf"|(?P<m3>{_MONTHS})\s+(?P<y3>\d{{4}})"
    rf"|(?P<y4>(?:1\d|20)\d\d)(?!\d|,\d|\.\d|\s*(?:km|m|people|inhabitants|metres|meters|feet|ft)\b))"
)
_NUMBER = re.compile(
    r"(?<![\w.,])(?:[£$€]\s?)?\d+(?:,\d{3})*(?:\.\d+)?(?:\s*(?:%|percent|million|billion|thousand|hundred))?(?![\w]|,\d)"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty)\b(?:\s+(?:million|billion|thousand|hundred))?",
    re.IGNORECASE,
)
_MONTH_NUMBER = {month.lower(): number for number, month in enumerate(_MONTHS.split("|"), 1)}
_TRAILING = ".,;:'’\"-–&"


@dataclass(frozen=True)
class Span:
    """A stretch of a text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Date(Span):
    """A date; ``key`` orders dates, with 0 for an unknown month or day."""

    key: tuple[int, int, int] = (0, 0, 0)


@lru_cache(maxsize=8192)
def names(text: str) -> tuple[Span, ...]:
    """Capitalised names, in order, without the function word that a sentence may open with."""
    found = []
    for match in _NAME.finditer(text):
        span = _trim(text, match.start(), match.end())
        if span:
            found.append(span)
    return tuple(found)


def _trim(text: str, start: int, end: int) -> Span | None:
    while end > start and text[end - 1] in _TRAILING:
        # "Jr." and initials keep their stop
        if text[end - 1] == "." and (re.search(r"\b(?:[A-Z]|Jr|Sr)\.$", text[start:end])):
            break
        end -= 1
    if text[start:end].endswith(("'s", "’s")):
        end -= 2
    piece = text[start:end]
    first = piece.split(" ", 1)[0]
    opens = not any(character.isalnum() for character in text[max(0, start - 3) : start])
    if opens and first.lower() in FUNCTION_WORDS and first.lower() not in ("the", "a", "an"):
        rest = piece[len(first) :].lstrip()
        if not rest or not rest[0].isupper():
            return None
        return _trim(text, end - len(rest), end)
    if piece.lower() in FUNCTION_WORDS or piece.lower() in _MONTH_NUMBER or len(piece) < 2:
        return None
    return Span(piece, start, end)


@lru_cache(maxsize=8192)
def quoted(text: str) -> tuple[Span, ...]:
    return tuple(Span(m[1], m.start(1), m.end(1)) for m in _QUOTED.finditer(text))


@lru_cache(maxsize=8192)
def dates(text: str) -> tuple[Date, ...]:
    found = []
    for m in _DATE.finditer(text):
        year = int(m["y1"] or m["y2"] or m["y3"] or m["y4"])
        month = _MONTH_NUMBER.get((m["m1"] or m["m2"] or m["m3"] or "").lower(), 0)
        found.append(Date(m.group(), m.start(), m.end(), (year, month, int(m["d1"] or m["d2"] or 0))))
    return tuple(found)


@lru_cache(maxsize=8192)
def numbers(text: str) -> tuple[Span, ...]:
    """Numbers in digits or words that are not part of a date."""
    taken = [(d.start, d.end) for d in dates(text)]
    return tuple(
        Span(m.group(), m.start(), m.end())
        for m in _NUMBER.finditer(text)
        if not any(start <= m.start() < end for start, end in taken)
    )


# --- passages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A sentence of a page under its id ("2s3")."""

    id: str
    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(content_terms(self.text))

    @cached_property
    def key(self) -> str:
        """For finding titles and names in it: folded words between spaces."""
        return f" {title_key(self.text)} "


@dataclass(frozen=True)
class Page:
    """A numbered passage as the prompt shows it."""

    number: str
    title: str
    lines: tuple[Line, ...]

    @cached_property
    def title_terms(self) -> frozenset[str]:
        return frozenset(content_terms(self.title))

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.title_terms.union(*(line.terms for line in self.lines))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The keys under which other texts may mention this page's subject, the most specific first."""
        return title_names(self.title)


_HEAD = re.compile(r"^\[(\d+)\] (.*)$")
_LINE = re.compile(r"^(\d+s\d+) (.*)$")
_LONGEST = 2000  # characters of a line; what is longer is no sentence, and is read in pieces
_MOST = 100_000  # characters of a prompt; of a longer one, every page is read up to its share of them
_PIECE = re.compile(rf".{{1,{_LONGEST}}}(?:\s|$)|.{{{_LONGEST}}}", re.DOTALL)


@lru_cache(maxsize=64)
def read_pages(rendered: str) -> tuple[Page, ...]:
    """The pages of a rendered `NumberedPassages` field. The pieces of a line that is too long share its id."""
    pages: list[tuple[str, str, list[tuple[str, list[str]]]]] = []
    for row in rendered.splitlines():
        if head := _HEAD.match(row):
            pages.append((head[1], "" if head[2] == "(untitled)" else head[2], []))
        elif pages and (line := _LINE.match(row)):
            pages[-1][2].append((line[1], [line[2]]))
        elif pages and pages[-1][2]:  # a demo or a template may wrap a sentence
            pages[-1][2][-1][1].append(row.strip())
    share = _MOST // max(len(pages), 1) if len(rendered) > _MOST else len(rendered)
    return tuple(Page(number, title, tuple(_pieces(lines, share))) for number, title, lines in pages)


def _pieces(lines: Iterable[tuple[str, list[str]]], most: int) -> Iterator[Line]:
    for number, rows in lines:
        if most <= 0:
            return
        text = " ".join(rows)[:most]
        most -= len(text)
        yield from (Line(number, piece) for piece in (_PIECE.findall(text) if len(text) > _LONGEST else [text]))
