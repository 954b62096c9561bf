"""Decides comparisons: which of two comes first, is larger or lived longer, whether two are the same, or whether a
claim holds."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ...data.text import bare_title, content_terms, title_key
from .features import SpanTable, about
from .hops import Answer, Hop, fitted, read_hops, same
from .question import answer_type, mask
from .spans import dates, numbers
from .vocabulary import countries

ABOUT = 0.7  # least certainty that a passage is about a side of a comparison
CONSIDERED = 8  # spans of a side

_COMPARATIVE = re.compile(
    r"\b(first|earlier|earliest|older|oldest|before|later|latest|younger|youngest|last|recently|recent|longer|longest|"
    r"larger|largest|bigger|higher|highest|taller|tallest|more|most|fewer|less|shorter|smaller|sooner)\b",
    re.I,
)
_SMALLER = frozenset("first earlier earliest older oldest before fewer less shorter smaller sooner".split())
_LIVED_LONGER = re.compile(r"\blived longer\b|\blonger li(?:fe|ved)|\blongest life", re.I)
_SAME = re.compile(r"\bsame\b|\bshare\b|\bin common\b|\bboth (?:located|from|in)\b", re.I)
_SIDE = r"((?:[a-z]+ of (?:the )?)?@\d+)"
_OR = re.compile(rf"{_SIDE}[^@,]{{0,20}},? or (?:the |an? )?(?:[a-z]+ ){{0,3}}?{_SIDE}")
_AFTER_COMMA = re.compile(r"^(?:[^,:]|[,:](?! ))*[,:] (?:the )?(.+?),? or (?:the )?([^?]+)\??", re.I)

Verdict = tuple[float, str]
"""The probability of the first side, and how it was found."""


def compare(question: str, hops: Sequence[Hop], table: SpanTable) -> tuple[Answer, ...]:
    """The two answers of a comparison, the likelier one first.

    Empty if the answer has to be read from the text, or what is compared was not found.
    """
    kind, sides = answer_type(question).kind, options(question)
    found: Verdict | None = None
    if kind == "yes/no":
        sides = ("yes", "no")
        if len(hops) >= 2 and _SAME.search(question):
            found = _sameness(table, hops[-2], hops[-1], question), "same"
        else:
            found = _first_wins(question, hops, table) or (_held(question, table), "claim")
    elif kind == "either" and sides:
        if _LIVED_LONGER.search(question):
            found = _lived_longer(sides, table)
        else:
            found = _first_wins(question, hops, table) if _comparative(question) else _claimed(question, sides, table)
    if not found or not sides:
        return ()
    steps = tuple(hop.best for hop in hops)
    ranked = sorted(zip((found[0], 1 - found[0]), sides, strict=True), key=lambda pair: -pair[0])
    return tuple(Answer(text, calibrated(found[1], chance), steps=steps) for chance, text in ranked)


def calibrated(way: str, *inputs: float) -> float:
    """The probability that an answer is right: logistic regression on the log-odds of the inputs.

    Args:
        way: How the answer was reached: ``span``, ``comparison``, ``same`` or ``claim``.
    """
    *weights, offset = fitted("calibration")[way]
    total = offset + sum(weight * log_odds(value) for weight, value in zip(weights, inputs, strict=True))
    return 1 / (1 + math.exp(-total))


def log_odds(chance: float) -> float:
    """The log-odds of a probability, clipped to 0.001 and 0.999."""
    chance = min(max(chance, 0.001), 0.999)
    return math.log(chance / (1 - chance))


@lru_cache(maxsize=512)
def options(question: str) -> tuple[str, str] | None:
    """The two answers that a question offers."""
    masked = mask(question)
    if found := _OR.search(masked.text):
        first, second = map(masked.unmask, found.groups())
    elif found := _AFTER_COMMA.search(question.strip()):
        first, second = found.groups()
    else:
        return None
    return first.strip(' "“”'), second.strip(' "“”')


def _comparative(question: str) -> str:
    found = _COMPARATIVE.search(re.sub(r"@\d+", " ", mask(question).text))
    return found[1].lower() if found else ""


def _claimed(question: str, sides: tuple[str, str], table: SpanTable) -> Verdict | None:
    """The side whose passages have more of the question's words; None if both have as many."""
    claim = frozenset(content_terms(question)).difference(*(content_terms(side) for side in sides))
    keys = [(title_key(bare_title(side)), title_key(side)) for side in sides]
    known = [frozenset[str]().union(*(p.terms for p in table.passages if about(p, *key) >= ABOUT)) for key in keys]
    first, second = (_share(claim, terms) for terms in known)
    return (0.5 + (first - second) / 2, "claim") if first != second else None


def _sameness(table: SpanTable, left: Hop, right: Hop, question: str) -> float:
    """The probability that two sub-questions have one answer; as countries if the question is about countries."""
    if re.search(r"\bcountr|\bnation", question, re.I):
        a, b = _countries(table, left), _countries(table, right)
        if a and b:
            shared = sum(share * b.get(country, 0.0) for country, share in sorted(a.items()))
            return shared / (sum(a.values()) * sum(b.values()))
    pairs = [(a, b) for a in left.answers for b in right.answers if same(a.text, b.text)]
    return max((a.probability * b.probability for a, b in pairs), default=0.0)


def _countries(table: SpanTable, hop: Hop) -> dict[str, float]:
    """How likely each country answers a sub-question."""
    found = defaultdict[str, float](float)
    for n in _likeliest(hop):
        for mention in countries(table.spans[n].text):
            found[mention.country] += float(hop.chances[n])
    return found


def _likeliest(hop: Hop) -> list[int]:
    """The likeliest spans of a sub-question."""
    return list(map(int, np.argsort(-hop.chances, kind="stable")[:CONSIDERED]))


def _held(question: str, table: SpanTable) -> float:
    """The share of a claim that one sentence has; for "both", the share that both passages have."""
    key = f" {title_key(question)} "
    named = [p for p in table.passages if any(f" {name} " in key for name in p.names)] or list(table.passages)
    claim = frozenset(content_terms(question)) - {"both"}
    if re.search(r"\bboth\b", question, re.I):
        claim -= frozenset().union(*(p.title_terms for p in named))
        return min((_share(claim, p.terms) for p in named), default=0.0)
    return max((_share(claim - p.title_terms, s.terms) for p in named for s in p.sentences), default=0.0)


def _share(claim: frozenset[str], terms: frozenset[str]) -> float:
    return len(claim & terms) / max(len(claim), 1)


# --- magnitudes ------------------------------------------------------------------------------------------------------

Magnitudes = list[tuple[str, tuple[float, ...], float]]  # kind, value, share

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WORDS = {word: n for n, word in enumerate(_COUNTED)} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_METRES = {"km": 1e3, "kilomet": 1e3, "mile": 1609.344, "metre": 1, "meter": 1, "m": 1, "feet": 0.3048, "ft": 0.3048}
_UNIT = re.compile(r"\s*(km|kilomet|mile|metre|meter|feet|ft|m\b)")


def _first_wins(question: str, hops: Sequence[Hop], table: SpanTable) -> Verdict | None:
    """The probability that the first side wins; None if nothing can be compared."""
    if len(hops) < 2 or not (word := _comparative(question)):
        return None
    left, right = _magnitudes(table, hops[-2]), _magnitudes(table, hops[-1])
    kinds = {kind for kind, *_ in left} & {kind for kind, *_ in right}
    if not kinds:
        return None
    kind = max(sorted(kinds), key=lambda kind: sum(share for k, _, share in (*left, *right) if k == kind))
    pairs = [(a, b, p * q) for k, a, p in left if k == kind for m, b, q in right if m == kind]
    total = sum(chance for *_, chance in pairs)
    if not total:
        return None
    less = sum(chance * (0.5 if a == b else float(a < b)) for a, b, chance in pairs)
    smaller_wins = word in _SMALLER or (kind == "date" and word in ("longer", "longest"))  # "the longer history"
    return less / total if smaller_wins else 1 - less / total, "comparison"


def _magnitudes(table: SpanTable, hop: Hop) -> Magnitudes:
    """The magnitudes of the likeliest spans of a sub-question, with their shares."""
    measured = [
        (*_magnitude(table.spans[n].text + table.text_after(n)), float(hop.chances[n])) for n in _likeliest(hop)
    ]
    return [(kind, value, share) for kind, value, share in measured if value]


def _magnitude(text: str) -> tuple[str, tuple[float, ...]]:
    """What a text measures ("date", "length", "number") and its value, lengths in metres; empty if nothing."""
    if found := dates(text):
        return "date", tuple(map(float, found[0].key))
    for figure in numbers(text):
        digits, scale, *_ = [*figure.text.lower().split(), ""]
        plain = re.sub(r"[^\d.]", "", digits).strip(".")
        value = float(plain or _WORDS[digits]) * _SCALES.get(scale, 1.0)
        unit = _UNIT.match(text.lower(), figure.end)
        return ("length", (value * _METRES[unit[1]],)) if unit else ("number", (value,))
    return "", ()


def _lived_longer(sides: tuple[str, str], table: SpanTable) -> Verdict | None:
    years = []
    for side in sides:
        hops = read_hops((f"When was {side} born?", f"When did {side} die?"), table.passages)
        dated = [[value for kind, value, _ in _magnitudes(table, hop) if kind == "date"] for hop in hops]
        if not all(dated):
            return None
        (born, *_), (died, *_) = dated
        years.append(sum(scale * (d - b) for scale, b, d in zip((1, 1 / 12, 1 / 365), born, died, strict=True)))
    return 0.9 if years[0] > years[1] else 0.1, "comparison"
