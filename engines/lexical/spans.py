"""Word lists (``vocabulary.json``), and spans in texts: names, dates, numbers, quotations, code, countries, and every
span that could answer a question."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from ...data.text import FUNCTION_WORDS, MONTH, MONTHS, content_terms, fold, stem

_LISTS = json.loads((files(__package__) / "vocabulary.json").read_text(encoding="utf-8"))

PERSON_NOUNS, PLACE_NOUNS, OCCUPATION_NOUNS, WORK_NOUNS, ORGANISATION_NOUNS = (
    frozenset(_LISTS["nouns"][kind].split()) for kind in ("person", "place", "occupation", "work", "organisation")
)
# Verbs that end a noun phrase; regular pasts and participles are recognized by their endings.
VERBS = frozenset(_LISTS["verbs"].split())
# Verbs that separate the clauses of a question; without regular pasts, which are participles as often.
FINITE = rf"(?:{'|'.join(_LISTS['finite'].split())})"
WH = r"(?:who|whom|whose|what|which|where|when|how|why)"
WORKS = "|".join(_LISTS["works"].split(", "))
KIND_NOUNS = (
    rf"(?:{WORKS}|city|town|village|river|lake|mountain|island|actor|actress|singer|author|writer|physicist|chemist)"
)

# Words of one family name the same relation: "Who directed X" is answered by "the director of X". A word of two
# families belongs to the first.
_FAMILY = {stem(word): name for name, words in reversed(_LISTS["relations"].items()) for word in words.split()}
FAMILIES = frozenset(_LISTS["relations"])


@lru_cache(maxsize=1024)
def relation_terms(text: str) -> frozenset[str]:
    """The content terms of a text, with the terms of one family as one."""
    return frozenset(_FAMILY.get(term, term) for term in content_terms(text))


@lru_cache(maxsize=8192)
def relation_term(word: str) -> str:
    """The relation term of one word; empty for a function word. Bypasses the caches, which words would fill."""
    terms = content_terms.__wrapped__(word)
    return _FAMILY.get(terms[0], terms[0]) if terms else ""


# --- countries -------------------------------------------------------------------------------------------------------


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_COUNTRY = {
    fold(name.strip()): country
    for country, others in _LISTS["countries"].items()
    for name in (country, *others.split(","))
}
_STATES = frozenset(_LISTS["states"].split(", "))
_MENTION = re.compile(rf"(?<![\w-])(?=[A-Z])((?i:{_any_of(_COUNTRY)}))(?!\w)|\b({_any_of(_STATES)})\b")


class Mention(NamedTuple):
    """A country, the words by which a text names it, and where they start."""

    country: str
    written: str
    start: int


def countries(text: str) -> tuple[Mention, ...]:
    """The countries that a text names or implies, in order; a state of the United States implies the country."""
    return tuple(
        Mention(_COUNTRY[fold(match[1])] if match[1] else "United States", match[0], match.start())
        for match in _MENTION.finditer(text)
        if match[0] != "Us"
    )


def is_country(text: str) -> bool:
    """Whether the whole text is the name or adjective of a country or an American state."""
    name = text.removeprefix("The ").removeprefix("the ")
    return name[:1].isupper() and (fold(name) in _COUNTRY or is_state(name))


def is_state(text: str) -> bool:
    """Whether a text is the name of an American state."""
    return text in _STATES


def is_adjective(text: str) -> bool:
    """Whether a text is a nationality ("Austrian", "Canadian-American")."""
    parts = fold(text).removeprefix("the ").replace("–", "-").split("-")
    return all(part in _COUNTRY and fold(_COUNTRY[part]) != part for part in parts)


# --- names, dates, numbers -------------------------------------------------------------------------------------------

_CAPITALISED = r"(?<![a-z0-9_])[A-ZÀ-ÖØ-ÞĀ-ž\u0391-\u03ab\u0400-\u042f][\w'’.\-–+]*"
_JOIN = r"(?:of|the|de|da|di|du|des|del|della|la|le|les|von|van|der|den|bin|ibn|al|el|y|for|à)"
_NAMES = re.compile(
    rf"{_CAPITALISED}(?:(?:\s+(?:{_JOIN}\s+){{0,2}}|\s*&\s*)(?:{_CAPITALISED}|\d{{1,3}}(?![\d,.%]*\d)))*"
)
_QUOTES = re.compile(r"[\"“]\s*([^\"”“]{2,80}?)\s*[\"”]")
_MONTH_NUMBER = {month[:3]: number for number, month in enumerate(MONTHS.split("|"), 1)}
_DATES = re.compile(
    rf"\b(?:(?P<bc>\d{{1,4}}) (?:BCE?\b|B\.C\.)"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<m1>{MONTH}),?\s+(?P<y1>\d{{3,4}})"
    rf"|(?P<m2>{MONTH})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y2>\d{{3,4}})"
    rf"|(?P<m3>{MONTH})\s+(?P<y3>\d{{4}})"
    r"|(?<![\w-])(?P<y5>\d{4})-(?P<m5>\d\d)-(?P<d5>\d\d)(?![\w-]|\.\d)"
    rf"|(?P<y4>(?:1\d|20)\d\d)(?!\d|,\d|\.\d|\s*(?:km|m|people|inhabitants|metres|meters|feet|ft)\b))"
)
_NUMBERS = re.compile(
    r"(?<![\w.,])(?:[£$€]\s?|v(?=\d+\.\d))?\d+(?:,\d{3})*(?:\.\d+|:\d\d)*(?:\s*(?:%|percent|million|billion|thousand|hundred))?(?![\w]|,\d)"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty)\b(?:\s+(?:million|billion|thousand|hundred))?",
    re.IGNORECASE,
)
# A word of code: a function with its module or arity, a call, an option, or with an underscore, a digit or a capital or
# a dot in its midst, or in capitals.
_CODE = re.compile(
    r"(?<![\w.%/:>)\]}-])(?:https?://[^\s<>\"'`]*[\w/]|\w+(?:::\w+)+(?:\(\))?|[a-z]\w*(?::[a-z]\w*(?:/\d+|\(\))?|/\d+)|--?[a-z][\w-]+|-[a-zA-Z]\b|%\w\b|0x[0-9a-fA-F]+"
    r"|(?:[A-Za-z]\w*\.)*[A-Za-z_]\w*\(\)|(?:[A-Za-z_]\w*\.)+[a-z_]\w+|\w*[a-z0-9]_\w+|_+\w+|\w+_[A-Z]\w*"
    r"|[a-z]+[A-Z]\w*|[A-Z]{2}[a-z]\w+|(?:[A-Z][a-z]+){2,}|[A-Z][A-Z0-9]{2,}|[a-z]+(?:-[a-z]+)+|[a-z]+\d+)(?![\w-]|\.\w)"
)
# Addresses, options, functions with a module or arity, versions, ISO dates and numbers with points or commas: no answer
# is a part of one.
_WHOLE = re.compile(
    r"https?://[^\s<>\"'`]*[\w/]|\w+(?:::\w+)+|(?<![\w-])--?[a-z][\w-]+|(?<![\w.])\d{1,3}(?:,\d{3})+(?!\w)"
    r"|(?<![\w.])(?:[a-z]\w*:[a-z]\w*(?:/\d+)?|[A-Za-z]\w*/\d+"
    r"|v?\d+(?:\.\d+)+(?:[+~-]?[A-Za-z][\w.-]*\w|[a-z])?|\d{4}-\d\d-\d\d)(?!\w)"
)
# What is no answer: the number of a heading, of what a text refers to or of the section of a manual page, a word that
# opens a remark, and the names of the columns of a row.
_NUMBERING = re.compile(
    r"^(?:Chapter \d+\.|(?:Appendix )?(?:[A-Z]\.)?\d+(?:\.\d+)+\.|(?:[A-Z]\.)\d+\.) (?=\w)"
    r"|\b(?:Section|Chapter|Table|Figure|Example) (?:[A-Z]\.)?\d+(?:\.\d+)+"
    r"|(?<=\w)\(\d\w{0,2}\)|^(?:Hence|Note|Otherwise|Therefore|Thus|Warning)\b|\bfollowing \w+"
)
_COLUMNS = re.compile(r"(?:^|(?<=; ))[^;:]{1,40}(?=: )")
_INITIAL = re.compile(r"\b(?:[A-Z]|Jr|Sr)\.$")

SPAN_KINDS = ("name", "date", "year", "number", "quantity", "quoted", "nationality", "phrase", "joined", "title")
NAME, DATE, YEAR, NUMBER, QUANTITY, QUOTED, NATIONALITY, PHRASE, LIST, TITLE = SPAN_KINDS


class Span(NamedTuple):
    """A stretch of a text; ``kind`` is one of `SPAN_KINDS`."""

    text: str
    start: int
    end: int
    kind: str
    key: tuple[int, int, int] = (0, 0, 0)  # orders dates; 0 for an unknown month or day


def _found(pattern: re.Pattern[str], text: str, kind: str, group: int = 0) -> tuple[Span, ...]:
    return tuple(Span(m[group], *m.span(group), kind) for m in pattern.finditer(text))


def names(text: str) -> tuple[Span, ...]:
    """Capitalized names, in order, without a function word that opens the sentence."""
    return tuple(span for match in _NAMES.finditer(text) if (span := _trim(text, *match.span())))


def _trim(text: str, start: int, end: int) -> Span | None:
    # "Jr." and initials keep their period
    while end > start and text[end - 1] in ".,;:'’\"-–&" and not _INITIAL.search(text[start:end]):
        end -= 1
    if text[start:end].endswith(("'s", "’s")):
        end -= 2
    piece = text[start:end]
    first, _, rest = piece.partition(" ")
    opens = not any(character.isalnum() for character in text[max(0, start - 3) : start])
    if opens and first.lower() in FUNCTION_WORDS and first.lower() not in ("the", "a", "an"):
        rest = rest.lstrip()
        return _trim(text, end - len(rest), end) if rest[:1].isupper() else None
    if piece.lower() in FUNCTION_WORDS or re.fullmatch(MONTHS, piece.capitalize()) or len(piece) < 2:
        return None
    return Span(piece, start, end, NAME)


def quoted(text: str) -> tuple[Span, ...]:
    return _found(_QUOTES, text, QUOTED, 1)


@lru_cache(maxsize=1024)
def dates(text: str) -> tuple[Span, ...]:
    found = []
    for m in _DATES.finditer(text):
        year = -int(m["bc"]) if m["bc"] else int(m["y1"] or m["y2"] or m["y3"] or m["y4"] or m["y5"])
        month = m["m1"] or m["m2"] or m["m3"] or m["m5"]
        key = (year, _MONTH_NUMBER.get((month or "")[:3], int(m["m5"] or 0)), int(m["d1"] or m["d2"] or m["d5"] or 0))
        found.append(Span(m[0], *m.span(), DATE if month else YEAR, key))
    return tuple(found)


def code(text: str) -> tuple[Span, ...]:
    """Names as programs have them: ``os.environ``, ``compile()``, ``--quiet``, ``max_size``, ``FORCE``."""
    return tuple(span for span in _found(_CODE, text, NAME) if span.text.lower() not in FUNCTION_WORDS)


def numbers(text: str) -> tuple[Span, ...]:
    """Numbers in digits or words that are not part of a date."""
    taken = [(date.start, date.end) for date in dates(text)]
    found = _found(_NUMBERS, text, NUMBER)
    return tuple(number for number in found if not any(start <= number.start < end for start, end in taken))


# --- candidate answers ------------------------------------------------------------------------------------------------

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


def candidate_spans(text: str) -> tuple[Span, ...]:
    """The candidate spans of a sentence, without duplicates, in order. A sentence has about twenty.

    Noun phrases are the runs of words between function words, verbs and punctuation. Spans that belong together
    ("Salem, Oregon", "professor of physics", "from 1969 to 1974") are joined.
    """
    found: dict[tuple[int, int], str] = {}
    whole = [match.span() for match in _WHOLE.finditer(text)]
    columns = [match.span() for match in _COLUMNS.finditer(text)]
    barred = [match.span() for match in _NUMBERING.finditer(text)] + (columns if len(columns) > 1 else [])
    for start, end, kind in _all(text):
        is_cut = kind != YEAR and any(a < edge < b for a, b in whole for edge in (start, end))
        if end > start and not is_cut and not any(start < b and end > a for a, b in barred):
            found.setdefault((start, end), kind)
    return tuple(Span(text[start:end], start, end, found[start, end]) for start, end in sorted(found))


def unnumbered(title: str) -> str:
    """A title without the number of its section."""
    found = _NUMBERING.match(title)
    return title[found.end() :] if found else title


def _all(text: str) -> Iterator[tuple[int, int, str]]:
    named = [(span.start, span.end) for span in names(text)]
    for date in dates(text):
        yield date.start, date.end, date.kind
        if date.kind == DATE:
            year = str(date.key[0])
            at = text.rindex(year, date.start, date.end)
            yield at, at + len(year), YEAR
    yield from _joined(text, [(date.start, date.end) for date in dates(text)], _RANGE, DATE)
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
    runs = [*named, *_longest(phrases)]
    yield from _joined(text, named, _COMMA, LIST)
    yield from _joined(text, runs, _AND, LIST)
    yield from _joined(text, runs, _OF, PHRASE, most=2)


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A name without "The", the parts before and after its "of", and without its first or last words."""
    words = list(re.compile(r"\S+").finditer(text, start, end))
    if len(words) < 2:
        return
    yield words[1].start(), end
    yield start, (words[-2] if words[-2][0][0].isupper() else words[0]).end()
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if word[0] in ("of", "the", "de", "von", "&", "for"):
            yield start, before.end()
            yield after.start(), end
    if len(words) > 3:
        yield words[2].start(), end
        yield start, words[1].end()


def _phrases(text: str) -> Iterator[tuple[int, int]]:
    """Noun phrases: runs of content words, their ends, and the parts before or after a participle in them."""
    runs: list[list[re.Match[str]]] = [[]]
    for match in _TOKEN.finditer(text):
        if match[0].lower() in _STOP or not match[0][0].isalnum():
            runs.append([])
        else:
            runs[-1].append(match)
    for run in runs:
        size, words = len(run), [match[0].lower() for match in run]
        inner = [n for n, word in enumerate(words) if word.endswith(("ed", "ing", "ly", "s"))]
        starts = {0, 1, *range(max(0, size - 3), size), *(n + 1 for n in inner)}
        ends = {size - 1, size, *inner, *(n + 1 for n in inner if words[n].endswith("s"))}
        yield from ((run[a].start(), run[b - 1].end()) for a in starts for b in ends if 0 < b - a <= _MOST_WORDS)


def _longest(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    reached = 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > reached:
            yield start, end
            reached = end


def _joined(
    text: str, spans: Iterable[tuple[int, int]], between: re.Pattern[str], kind: str, most: int = 4
) -> Iterator[tuple[int, int, str]]:
    """Runs of two to ``most`` neighbors with only ``between`` between them, as one span."""
    spans = sorted(set(spans))
    for i, (start, end) in enumerate(spans):
        for following, last in spans[i + 1 : i + 1 + most * 2]:
            if following < end:
                continue
            if not between.fullmatch(text, end, following):
                break
            yield start, last, kind
            end = last
