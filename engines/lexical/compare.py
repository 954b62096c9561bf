"""Questions whose answer is concluded rather than read: which of two comes first, is larger or lived longer; whether
two are the same; whether something holds of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...data.text import bare_title, content_terms, title_key
from .asked import asked
from .book import Book
from .features import about
from .gazetteer import countries
from .question import mask
from .ranker import Ranker
from .reading import dates, numbers
from .resolve import Hop, read_hops, same


@dataclass(frozen=True)
class Verdict:
    """What a comparison comes to: two answers, and the chance of the first; ``by`` says how it was reached."""

    first: str
    second: str
    chance: float
    by: str

    def ranked(self) -> list[tuple[str, float]]:
        """Both answers with their chances, the likelier one first."""
        return sorted([(self.first, self.chance), (self.second, 1 - self.chance)], key=lambda pair: -pair[1])


def compare(question: str, hops: Sequence[Hop], book: Book, ranker: Ranker) -> Verdict | None:
    """The verdict, or None where the question is to be answered from the text, or what it compares was not found."""
    kind = asked(question).kind
    if kind == "yes/no":
        return _yes_or_no(question, hops, book)
    sides = options(question) if kind == "either" else None
    if sides is None:
        return None
    if re.search(r"\blived longer\b|\blonger li(?:fe|ved)|\blongest life", question, re.I):
        return _lifespans(sides, book, ranker)
    word = _COMPARATIVE.search(_without_names(question))
    if not word:
        return _claimed(question, sides, book)
    if len(hops) < 2:
        return None
    less = _less(_magnitudes(book, hops[-2]), _magnitudes(book, hops[-1]))
    if less is None:
        return None
    return Verdict(*sides, less[1] if _smaller_wins(word[1].lower(), less[0]) else 1 - less[1], "comparison")


# --- two sides -------------------------------------------------------------------------------------------------------

_OR = re.compile(r"(@\d+)[^@,]{0,20},? or (?:the |an? )?(?:[a-z]+ ){0,3}(@\d+)")
_AFTER_COMMA = re.compile(r"^(?:[^,:]|[,:](?! ))*[,:] (?:the )?(.+?),? or (?:the )?([^?]+)\??", re.I)
_OF = re.compile(r"\b(?:the )?([a-z]+ of (?:the )?@\d+),? or (?:the )?([a-z]+ of (?:the )?@\d+)")


@lru_cache(maxsize=1024)
def options(question: str) -> tuple[str, str] | None:
    """The two answers that a question offers."""
    masked = mask(question)
    if found := _OF.search(masked.text) or _OR.search(masked.text):
        return _clean(masked.unmask(found[1])), _clean(masked.unmask(found[2]))
    if found := _AFTER_COMMA.search(question.strip()):
        return _clean(found[1]), _clean(found[2])
    return None


def _clean(text: str) -> str:
    return text.strip().strip('"“”').strip()


def _without_names(question: str) -> str:
    return re.sub(r"@\d+", " ", mask(question).text)


_COMPARATIVE = re.compile(
    r"\b(first|earlier|earliest|older|oldest|before|later|latest|younger|youngest|last|recently|recent|longer|longest|"
    r"larger|largest|bigger|higher|highest|taller|tallest|more|most|fewer|less|shorter|smaller|sooner)\b",
    re.I,
)
_SMALLER = frozenset("first earlier earliest older oldest before fewer less shorter smaller sooner".split())


def _smaller_wins(word: str, kind: str) -> bool:
    return word in _SMALLER or (kind == "date" and word in ("longer", "longest"))  # "the longer history"


def _claimed(question: str, sides: tuple[str, str], book: Book) -> Verdict | None:
    """Of which side the text tells more of what the question says; None where it is as much of both."""
    claim = frozenset(content_terms(question)).difference(*(content_terms(side) for side in sides))
    keys = [(title_key(bare_title(side)), title_key(side)) for side in sides]
    told = [frozenset[str]().union(*(page.terms for page in book.pages if about(page, *key) >= 0.7)) for key in keys]
    first, second = (_share(claim, terms) for terms in told)
    return Verdict(*sides, 0.5 + (first - second) / 2, "claim") if first != second else None


# --- magnitudes ------------------------------------------------------------------------------------------------------

Magnitudes = list[tuple[str, tuple[float, ...], float]]  # kind, value, share

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WORDS = {word: float(number) for number, word in enumerate(_COUNTED)} | {
    "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0,
}  # fmt: skip
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_METRES = {"km": 1e3, "kilomet": 1e3, "mile": 1609.344, "metre": 1, "meter": 1, "m": 1, "feet": 0.3048, "ft": 0.3048}
_UNIT = re.compile(r"\s*(km|kilomet|mile|metre|meter|feet|ft|m\b)")
_CONSIDERED = 8  # candidates of a side


def _magnitudes(book: Book, hop: Hop) -> Magnitudes:
    """What the likeliest candidates of a sub-question measure, with their shares."""
    found: Magnitudes = []
    for n in np.argsort(-hop.chances, kind="stable")[:_CONSIDERED]:
        after = book.text_after(int(n))
        kind, value = magnitude(book.texts[n] + after)
        if value:
            found.append((kind, value, float(hop.chances[n])))
    return found


def _less(left: Magnitudes, right: Magnitudes) -> tuple[str, float] | None:
    """What is compared, and the chance that the left side is less; None where nothing can be compared."""
    kinds = {kind for kind, *_ in left} & {kind for kind, *_ in right}
    if not kinds:
        return None
    kind = max(sorted(kinds), key=lambda kind: sum(share for k, _, share in (*left, *right) if k == kind))
    less = total = 0.0
    for _, a, p in (item for item in left if item[0] == kind):
        for _, b, q in (item for item in right if item[0] == kind):
            total += p * q
            less += p * q * (0.5 if a == b else float(a < b))
    return (kind, less / total) if total else None


def magnitude(text: str) -> tuple[str, tuple[float, ...]]:
    """What a text measures ("date", "length", "number") and how much, lengths in metres; empty if nothing."""
    if found := dates(text):
        return "date", tuple(map(float, found[0].key))
    for figure in numbers(text):
        digits, scale, *_ = [*figure.text.lower().split(), ""]
        plain = re.sub(r"[^\d.]", "", digits).strip(".")
        value = float(plain) if plain else _WORDS.get(digits)
        if value is not None:
            value *= _SCALES.get(scale, 1.0)
            unit = _UNIT.match(text.lower(), figure.end)
            return ("length", (value * _METRES[unit[1]],)) if unit else ("number", (value,))
    return "", ()


def _lifespans(sides: tuple[str, str], book: Book, ranker: Ranker) -> Verdict | None:
    spans = []
    for side in sides:
        hops = read_hops((f"When was {side} born?", f"When did {side} die?"), book, ranker)
        born, died = (
            next((value for kind, value, _ in _magnitudes(book, hop) if kind == "date"), None) for hop in hops
        )
        if born is None or died is None:
            return None
        spans.append(sum(scale * (d - b) for scale, b, d in zip((1, 1 / 12, 1 / 365), born, died, strict=True)))
    return Verdict(*sides, 0.9 if spans[0] > spans[1] else 0.1, "comparison")


# --- yes or no -------------------------------------------------------------------------------------------------------


def _yes_or_no(question: str, hops: Sequence[Hop], book: Book) -> Verdict:
    lowered = question.lower()
    if len(hops) >= 2:
        if re.search(r"\bsame\b|\bshare\b|\bin common\b|\bboth (?:located|from|in)\b", lowered):
            return Verdict("yes", "no", _sameness(book, hops[-2], hops[-1], lowered), "same")
        if word := _COMPARATIVE.search(_without_names(question)):
            less = _less(_magnitudes(book, hops[-2]), _magnitudes(book, hops[-1]))
            if less is not None:
                chance = less[1] if _smaller_wins(word[1].lower(), less[0]) else 1 - less[1]
                return Verdict("yes", "no", chance, "comparison")
    return Verdict("yes", "no", _held(question, book), "claim")


def _sameness(book: Book, left: Hop, right: Hop, question: str) -> float:
    """The chance that two sub-questions have one answer, as countries where the question is about countries."""
    if re.search(r"\bcountr|\bnation", question):
        a, b = _countries(book, left), _countries(book, right)
        if a and b:
            return sum(share * b.get(country, 0.0) for country, share in sorted(a.items()))
    return max(
        (min(a.score, 1.0) * b.score for a in left.answers for b in right.answers if same(a.text, b.text)), default=0.0
    )


def _countries(book: Book, hop: Hop) -> dict[str, float]:
    """How likely each country is as the answer of a sub-question."""
    found: dict[str, float] = {}
    for n in np.argsort(-hop.chances, kind="stable")[:_CONSIDERED]:
        for mention in countries(book.texts[n]):
            found[mention.country] = found.get(mention.country, 0.0) + float(hop.chances[n])
    total = sum(found.values())
    return {country: share / total for country, share in found.items()}


def _held(question: str, book: Book) -> float:
    """The share of a claim that the text tells: of "both", the less told one; otherwise by one sentence."""
    key = f" {title_key(question)} "
    named = [page for page in book.pages if any(f" {name} " in key for name in page.names)] or list(book.pages)
    claim = frozenset(content_terms(question)) - {"both"}
    if re.search(r"\bboth\b", question, re.I):
        claim -= frozenset().union(*(page.title_terms for page in named))
        return min((_share(claim, page.terms) for page in named), default=0.0)
    return max((_share(claim - page.title_terms, line.terms) for page in named for line in page.lines), default=0.0)


def _share(claim: frozenset[str], terms: frozenset[str]) -> float:
    return len(claim & terms) / max(len(claim), 1)
