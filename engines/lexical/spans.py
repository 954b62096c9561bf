"""Finds spans in texts: names, dates, numbers, quotations, and every span that could answer a question.

Results are cached by text, because the same passages come back in every round and for every agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...data.text import FUNCTION_WORDS
from .vocabulary import VERBS, countries, is_adjective

_CAPITALISED = r"[A-ZÀ-ÖØ-ÞĀ-ž\u0391-\u03ab\u0400-\u042f][\w'’.\-–+]*"
_JOIN = r"(?:of|the|de|da|di|du|des|del|della|la|le|les|von|van|der|den|bin|ibn|al|el|y|for|à)"
_NAMES = re.compile(
    rf"{_CAPITALISED}(?:(?:\s+(?:{_JOIN}\s+){{0,2}}|\s*&\s*)(?:{_CAPITALISED}|\d{{1,3}}(?![\d,.%]*\d)))*"
)
_QUOTES = re.compile(r"[\"“]\s*([^\"”“]{2,80}?)\s*[\"”]")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATES = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<m1>{_MONTHS}),?\s+(?P<y1>\d{{3,4}})"
    rf"|(?P<m2>{_MONTHS})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y2>\d{{3,4}})"
    rf"|(?P<m3>{_MONTHS})\s+(?P<y3>\d{{4}})"
    rf"|(?P<y4>(?:1\d|20)\d\d)(?!\d|,\d|\.\d|\s*(?:km|m|people|inhabitants|metres|meters|feet|ft)\b))"
)
_NUMBERS = re.compile(
    r"(?<![\w.,])(?:[£$€]\s?)?\d+(?:,\d{3})*(?:\.\d+|:\d\d)*(?:\s*(?:%|percent|million|billion|thousand|hundred))?(?![\w]|,\d)"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty)\b(?:\s+(?:million|billion|thousand|hundred))?",
    re.IGNORECASE,
)
_MONTH_NUMBER = {month.lower(): number for number, month in enumerate(_MONTHS.split("|"), 1)}
# A word of code: a call, an option, or with an underscore, a digit or a capital or a dot in its midst, or in capitals.
_CODE = re.compile(
    r"(?<![\w.%/-])(?:--[a-z][\w-]+|%\w\b|0x[0-9a-fA-F]+"
    r"|(?:[A-Za-z]\w*\.)*[A-Za-z_]\w*\(\)|(?:[A-Za-z_]\w*\.)+[a-z_]\w+|\w*[a-z0-9]_\w+|_+\w+|\w+_[A-Z]\w*"
    r"|[a-z]+[A-Z]\w*|[A-Z]{2}[a-z]\w+|(?:[A-Z][a-z]+){2,}|[A-Z][A-Z0-9]{2,}|[a-z]+(?:-[a-z]+)+|[a-z]+\d+)(?![\w-])"
)
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


def names(text: str) -> tuple[Span, ...]:
    """Capitalized names, in order, without a function word that opens the sentence."""
    found = []
    for match in _NAMES.finditer(text):
        span = _trim(text, match.start(), match.end())
        if span:
            found.append(span)
    return tuple(found)


def _trim(text: str, start: int, end: int) -> Span | None:
    while end > start and text[end - 1] in _TRAILING:
        # "Jr." and initials keep their period
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


def quoted(text: str) -> tuple[Span, ...]:
    return tuple(Span(m[1], m.start(1), m.end(1)) for m in _QUOTES.finditer(text))


@lru_cache(maxsize=1024)
def dates(text: str) -> tuple[Date, ...]:
    found = []
    for m in _DATES.finditer(text):
        year = int(m["y1"] or m["y2"] or m["y3"] or m["y4"])
        month = _MONTH_NUMBER.get((m["m1"] or m["m2"] or m["m3"] or "").lower(), 0)
        found.append(Date(m.group(), m.start(), m.end(), (year, month, int(m["d1"] or m["d2"] or 0))))
    return tuple(found)


def code(text: str) -> tuple[Span, ...]:
    """Names as programs have them: ``os.environ``, ``compile()``, ``--quiet``, ``max_size``, ``FORCE``."""
    return tuple(Span(m.group(), m.start(), m.end()) for m in _CODE.finditer(text))


def numbers(text: str) -> tuple[Span, ...]:
    """Numbers in digits or words that are not part of a date."""
    taken = [(d.start, d.end) for d in dates(text)]
    return tuple(
        Span(m.group(), m.start(), m.end())
        for m in _NUMBERS.finditer(text)
        if not any(start <= m.start() < end for start, end in taken)
    )


# --- candidate answers ------------------------------------------------------------------------------------------------

SPAN_KINDS = ("name", "date", "year", "number", "quantity", "quoted", "nationality", "phrase", "joined", "title")
NAME, DATE, YEAR, NUMBER, QUANTITY, QUOTED, NATIONALITY, PHRASE, LIST, TITLE = SPAN_KINDS

_TOKEN = re.compile(r"\w+(?:[-'’./&]\w+)*\+*|[^\w\s]")
_MOST_WORDS = 6  # words of a noun phrase
_STOP = (
    FUNCTION_WORDS | VERBS | frozenset("also not however since while although unless upon within without among".split())
)
_AND = re.compile(r"(?:,? (?:and|or|&) |, )(?:(?:the|a|an) )?")
_COMMA = re.compile(r", (?:the )?")
_RANGE = re.compile(r" ?(?:to|until|and|through|–|-|—) ?(?:[a-z]+ )?")
_OF = re.compile(r" (?:of|in|for|and|at|on|to|by|with)(?: (?:the|a|an|his|her|its|their))? ")
_PARENTHESIS = re.compile(r"\s*\([^()]{1,40}\)")


@dataclass(frozen=True)
class CandidateSpan(Span):
    """A span that could answer a question; ``kind`` is one of `SPAN_KINDS`."""

    kind: str = PHRASE


def candidate_spans(text: str) -> tuple[CandidateSpan, ...]:
    """The candidate spans of a sentence, without duplicates, in order. A sentence has about twenty.

    Noun phrases are the runs of words between function words, verbs and punctuation. Spans that belong together
    ("Salem, Oregon", "professor of physics", "from 1969 to 1974") are joined.
    """
    found: dict[tuple[int, int], CandidateSpan] = {}
    for start, end, kind in _all(text):
        if end > start and (start, end) not in found:
            found[start, end] = CandidateSpan(text[start:end], start, end, kind)
    return tuple(sorted(found.values(), key=lambda span: (span.start, span.end)))


def _all(text: str) -> Iterator[tuple[int, int, str]]:
    named = [(span.start, span.end) for span in names(text)]
    when = [(date.start, date.end) for date in dates(text)]
    for date in dates(text):
        yield date.start, date.end, DATE if date.key[1] else YEAR
        if date.key[1]:
            year = text.rindex(str(date.key[0]), date.start, date.end)
            yield year, year + len(str(date.key[0])), YEAR
    yield from _joined(text, when, _RANGE, DATE)
    for number in numbers(text):
        yield number.start, number.end, NUMBER
    for mention in countries(text):
        if is_adjective(mention.written):
            yield mention.start, mention.start + len(mention.written), NATIONALITY
    for span in quoted(text):
        yield span.start, span.end, QUOTED
        yield span.start - 1, span.end + 1, QUOTED
    for span in code(text):
        yield span.start, span.end, NAME
    for start, end in named:
        yield start, end, NAME
        yield from ((a, b, NAME) for a, b in _parts(text, start, end))
        if tail := _PARENTHESIS.match(text, end):
            yield start, tail.end(), NAME
    phrases = list(_phrases(text))
    for start, end in phrases:
        yield start, end, QUANTITY if text[start].isdigit() else PHRASE
    runs = sorted({*named, *_longest(phrases)})
    yield from _joined(text, named, _COMMA, LIST)
    yield from _joined(text, runs, _AND, LIST)
    yield from _joined(text, runs, _OF, PHRASE, most=2)


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A name without "The", the parts before and after its "of", and without its first or last words."""
    words = [(m.start(), m.end()) for m in re.compile(r"\S+").finditer(text, start, end)]
    if len(words) < 2:
        return
    yield words[1][0], end
    yield start, words[-2][1] if text[words[-2][0] : words[-2][1]][0].isupper() else words[0][1]
    for i in range(1, len(words) - 1):
        if text[words[i][0] : words[i][1]] in ("of", "the", "de", "von", "&", "for"):
            yield start, words[i - 1][1]
            yield words[i + 1][0], end
    if len(words) > 3:
        yield words[2][0], end
        yield start, words[1][1]


def _phrases(text: str) -> Iterator[tuple[int, int]]:
    """Noun phrases: runs of content words, their ends, and the parts before or after a participle in them."""
    run: list[tuple[int, int, str]] = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        lowered = word.lower()
        if lowered in _STOP or not (word[0].isalnum()):
            yield from _within(run)
            run = []
        else:
            run.append((match.start(), match.end(), lowered))
    yield from _within(run)


def _within(run: list[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    if not run:
        return
    size = len(run)
    starts = {0, *range(max(0, size - 3), size)}
    ends = {size}
    for i, (_, _, word) in enumerate(run):
        if word.endswith(("ed", "ing", "ly", "s")):
            starts.add(i + 1)
            ends.add(i)
            if word.endswith("s"):
                ends.add(i + 1)
    if size > 1:
        ends.add(size - 1)
        starts.add(1)
    for a in sorted(starts):
        for b in sorted(ends):
            if 0 < b - a <= _MOST_WORDS:
                yield run[a][0], run[b - 1][1]


def _longest(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or end > kept[-1][1]:
            kept.append((start, end))
    return kept


def _joined(
    text: str, spans: list[tuple[int, int]], between: re.Pattern[str], kind: str, most: int = 4
) -> Iterator[tuple[int, int, str]]:
    """Runs of two to ``most`` neighbors with only ``between`` between them, as one span."""
    spans = sorted(spans)
    for i, (start, end) in enumerate(spans):
        for following, last in spans[i + 1 : i + 1 + most * 2]:
            if following < end:
                continue
            if not between.fullmatch(text, end, following):
                break
            yield start, last, kind
            end = last
