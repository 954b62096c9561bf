"""Every span of a line that could answer a question, with what can be said of it without knowing the question.

Names, dates, numbers with what they count, quoted titles and nationalities come from `reading`; noun phrases are the
runs of words between function words, verbs and punctuation. Spans that belong together ("Salem, Oregon", "Lennon and
McCartney", "professor of physics", "from 1969 to 1974") are joined. A line has some twenty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...data.text import FUNCTION_WORDS
from .gazetteer import countries, is_adjective
from .reading import Span, dates, names, numbers, quoted
from .vocabulary import VERBS

KINDS = ("name", "date", "year", "number", "quantity", "quoted", "nationality", "phrase", "joined", "title")
NAME, DATE, YEAR, NUMBER, QUANTITY, QUOTED, NATIONALITY, PHRASE, LIST, TITLE = KINDS

_TOKEN = re.compile(r"\w+(?:[-'’./&]\w+)*\+*|[^\w\s]")
_MOST = 6  # words of a noun phrase
_STOP = FUNCTION_WORDS | VERBS | frozenset("also not however since while although upon within without among".split())
_AND = re.compile(r"(?:,? (?:and|or|&) |, )(?:(?:the|a|an) )?")
_COMMA = re.compile(r", (?:the )?")
_RANGE = re.compile(r" ?(?:to|until|and|through|–|-|—) ?(?:[a-z]+ )?")
_OF = re.compile(r" (?:of|in|for|and|at|on|to|by|with)(?: (?:the|a|an|his|her|its|their))? ")
_PARENTHESIS = re.compile(r"\s*\([^()]{1,40}\)")


@dataclass(frozen=True)
class Candidate(Span):
    """A span that could answer a question; ``kind`` is one of `KINDS`."""

    kind: str = PHRASE


@lru_cache(maxsize=8192)
def candidates(text: str) -> tuple[Candidate, ...]:
    """The candidate spans of a line, no two equal, in order."""
    found: dict[tuple[int, int], Candidate] = {}
    for start, end, kind in _all(text):
        if end > start and (start, end) not in found:
            found[start, end] = Candidate(text[start:end], start, end, kind)
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
    """A name without "The", what stands before and after its "of", and without its first or last words."""
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
    """Noun phrases: runs of content words, their ends, and what stands before or after a participle within."""
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
        if word.endswith(("ed", "ing", "ly")) or word.endswith("s"):
            starts.add(i + 1)
            ends.add(i)
            if word.endswith("s"):
                ends.add(i + 1)
    if size > 1:
        ends.add(size - 1)
        starts.add(1)
    for a in sorted(starts):
        for b in sorted(ends):
            if 0 < b - a <= _MOST:
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
    """Neighbours with only ``between`` between them, as one span: every run of two to ``most``."""
    spans = sorted(spans)
    for i, (start, end) in enumerate(spans):
        for following, last in spans[i + 1 : i + 1 + most * 2]:
            if following < end:
                continue
            if not between.fullmatch(text, end, following):
                break
            yield start, last, kind
            end = last
