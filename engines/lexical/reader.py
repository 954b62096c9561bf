"""Reads the answer to a question from passages: candidate answers with the probability that they are right.

The sub-questions are answered one after the other (`hops`). A comparison is decided from their answers. Any other
question is read as a whole by two rankers, one of which also knows the place of a span in the chain of sub-questions:
an answer is found although a sub-question was misread, and a consistent chain decides. A short question without parts
is read as a sub-question, too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...data.text import bare_title, content_terms, title_key
from .features import FEATURES, ParsedQuestion, about, features, parse_question, within
from .hops import Answer, Hop, best_answers, read_hops, same
from .prompt import ParsedPassage, Sentence
from .question import answer_type, mask
from .ranker import Models, Ranker, shipped_models
from .span_table import Matrix, SpanTable, Vector, span_table
from .spans import DATE, code, dates, numbers
from .vocabulary import countries

CHAIN = (
    "answers the last hop", "log of that", "here", "answers an earlier hop", "its passage is about an earlier answer",
    "chain holds", "hops",
)  # fmt: skip
SHORT = 12  # most words of a question that is read as a sub-question; longer ones have hidden parts
MOST = 12  # answers that are weighed against one another
MISFIT = 0.02  # factor of a span that is not of the kind that is asked for
CODE_NOUNS = frozenset(
    "attribute class command constant decorator directive exception field flag function header key keyword library "
    "method module operator option parameter property routine setting signal specifier switch tool variable".split()
)
NUMBERED = frozenset(("port", "release", "version"))
DEFINED = 0.6  # probability of a definition, chosen by hand
ABOUT = 0.7  # least certainty that a passage is about a side of a comparison

_ARTICLES = frozenset(("a", "an", "the"))
_UNITS = re.compile(r"\s?(?:[KMGT]i?B|bytes?|ms|seconds?|minutes?|hours?|days?)\b")
_ASKS_DEFINITION = re.compile(r"what (?:is|are) (?:an? |the )?([^,;?]+)\?", re.I)
_DEFINITION = re.compile(r"(?:an? |the )?([^,;]{2,60}?) (?:is|are) ((?:an? |the )[^.;:]{3,150})[.;:]?", re.I)


@dataclass(frozen=True)
class RankedAnswer:
    """A candidate answer.

    Attributes:
        sentence, passage: Where it was read; None for the verdict of a comparison.
    """

    text: str  # as the passage has it
    probability: float  # that it is right
    sentence: Sentence | None
    passage: ParsedPassage | None
    steps: tuple[Answer, ...]  # the best answers of the sub-questions; this answer if there is only one


def read(question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> list[RankedAnswer]:
    """The candidate answers of a question, best first; none if the passages do not mention what it names."""
    return list(_read(question, tuple(sub_questions), tuple(passages)))


@lru_cache(maxsize=64)
def _read(question: str, steps: tuple[str, ...], passages: tuple[ParsedPassage, ...]) -> tuple[RankedAnswer, ...]:
    return tuple(read_with(shipped_models(), question, steps, span_table(passages)))


def read_with(models: Models, question: str, sub_questions: Sequence[str], table: SpanTable) -> list[RankedAnswer]:
    """`read` with any models."""
    named = [each for each in map(parse_question, (question, *sub_questions)) if each.names]
    if not table.texts or (named and not any(known_names(each, table) for each in named)):
        return []
    hops = read_hops(sub_questions, table, models.hop)
    steps = tuple(hop.best for hop in hops)
    if found := compare(question, hops, table, models.hop):
        ranked = found.ranked()
        return [RankedAnswer(text, models.probability(found.by, (p,)), None, None, steps) for text, p in ranked]
    if len(hops) == 1 and (defined := define(question, table.passages)):
        return [defined]
    rows = whole_features(question, hops, table)
    chances = answer_chances(models.bare, models.whole, question, rows, table, len(hops))
    return [
        RankedAnswer(
            answer.text,
            models.probability("span", inputs),
            answer.sentence,
            answer.passage,
            steps if len(hops) > 1 else (answer,),
        )
        for answer, inputs in weighed(question, table, chances)
    ]


def answer_chances(bare: Ranker, whole: Ranker, question: str, rows: Matrix, table: SpanTable, hops: int) -> Vector:
    """The probability of each span to answer a whole question, from its `whole_features` and number of hops."""
    chances = bare.probabilities(rows[:, : len(FEATURES)])
    if hops > 1:  # the geometric mean of two rankers errs less than either
        chances = np.sqrt(chances * whole.probabilities(rows))
    elif len(question.split()) <= SHORT:
        chances = np.sqrt(chances * rows[:, len(FEATURES) + CHAIN.index("here")])
    kind = answer_type(question).kind
    if kind == "year":  # not a full date: its year is a span of its own
        chances = np.where([span.kind == DATE for span in table.spans], chances * 1e-6, chances)
    chances = chances * _fits(question, table)
    sides = options(question) if kind == "either" else None
    if sides is not None:  # a question that offers two answers allows only these
        keys = [title_key(side) for side in sides]
        offered = [any(within(key, side) or within(side, key) for side in keys) for key in table.keys]
        if any(offered):
            chances = np.where(np.array(offered)[table.group], chances + 1e-6, 0)
    share: Vector = chances / (chances.sum() or 1)
    return share


def _fits(question: str, table: SpanTable) -> Vector:
    """How well each span fits what is asked for, where the rankers, which know encyclopedias, cannot tell: a number has
    digits and its unit of time or memory, and a part of a program looks like one."""
    asks = answer_type(question)
    if asks.kind in ("number", "measure"):
        fits = [bool(numbers(text)) for text in table.texts]
        if asks.kind == "measure":
            fits = [fit and not _UNITS.match(table.text_after(n)) for n, fit in enumerate(fits)]
    elif asks.head in NUMBERED:
        fits = [any(number.text == text for number in numbers(text)) for text in table.texts]
    elif asks.head in CODE_NOUNS:
        fits = [any(span.text == text for span in code(text)) for text in table.texts]
    else:
        return np.ones(len(table.texts), np.float32)
    return np.where(fits, 1, MISFIT).astype(np.float32)


def define(question: str, passages: Sequence[ParsedPassage]) -> RankedAnswer | None:
    """The answer to "What is a journal?" in a sentence "A journal is a file of bookings."."""
    if not (asked := _ASKS_DEFINITION.fullmatch(question.strip())):
        return None
    subject = title_key(asked[1])
    for passage in passages:
        for sentence in passage.sentences:
            found = _DEFINITION.match(sentence.text)
            if found and title_key(found[1]) == subject:
                return RankedAnswer(
                    found[2], DEFINED, sentence, passage, (Answer(found[2], DEFINED, sentence, passage),)
                )
    return None


def whole_features(question: str, hops: Sequence[Hop], table: SpanTable) -> Matrix:
    """`features` of the whole question, and the place of each span in the chain."""
    return np.concatenate([features(parse_question(question), table), _chain_columns(hops, table)], axis=1)


def _chain_columns(hops: Sequence[Hop], table: SpanTable) -> Matrix:
    by_answer = [np.bincount(table.group, hop.chances, len(table.groups)) for hop in hops]
    last = by_answer[-1][table.group]
    earlier = np.max([np.zeros(len(last)), *(shares[table.group] for shares in by_answer[:-1])], axis=0)
    onward = np.zeros(len(table.passages))
    for hop in hops[:-1]:
        for answer in hop.answers:
            key = title_key(answer.text)
            near = np.array([about(passage, key, key) for passage in table.passages])
            onward = np.maximum(onward, answer.score * near)
    holds = np.full(len(last), math.prod(hop.best.score for hop in hops))
    size = np.full(len(last), min(len(hops), 4) / 4)
    return np.stack(
        [last, np.log(last + 1e-4) / 9 + 1, hops[-1].chances, earlier, onward[table.passage], holds, size],
        axis=1,
    ).astype(np.float32)


def weighed(question: str, table: SpanTable, chances: Vector) -> list[tuple[Answer, tuple[float, ...]]]:
    """The likeliest answers in order of expected F1, each with the inputs of its calibrated probability."""
    answers = list(best_answers(table, chances, MOST))
    words = [Counter(w for w in title_key(answer.text).split() if w not in _ARTICLES) for answer in answers]
    expected = [
        sum(other.score * _f1(own, theirs) for other, theirs in zip(answers, words, strict=True)) for own in words
    ]
    known = known_names(parse_question(question), table)
    ranked = sorted(zip(expected, answers, strict=True), key=lambda pair: -pair[0])
    return [(answer, (share, answer.score, known)) for share, answer in ranked]


def known_names(question: ParsedQuestion, table: SpanTable) -> float:
    """The share of the words of the question's names that the passages have; 1 if it has no names."""
    found = frozenset[str]().union(*table.passage_terms)
    return len(question.named & found) / len(question.named) if question.named else 1.0


def _f1(a: Counter[str], b: Counter[str]) -> float:
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


# --- comparisons -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedAnswers:
    """A comparison's two answers, the probability of the first, and how it was decided: ``by`` names a calibration."""

    first: str
    second: str
    chance: float
    by: str

    def ranked(self) -> list[tuple[str, float]]:
        """Both answers with their probabilities, the likelier one first."""
        return sorted([(self.first, self.chance), (self.second, 1 - self.chance)], key=lambda pair: -pair[1])


_COMPARATIVE = re.compile(
    r"\b(first|earlier|earliest|older|oldest|before|later|latest|younger|youngest|last|recently|recent|longer|longest|"
    r"larger|largest|bigger|higher|highest|taller|tallest|more|most|fewer|less|shorter|smaller|sooner)\b",
    re.I,
)
_SMALLER = frozenset("first earlier earliest older oldest before fewer less shorter smaller sooner".split())
_OR = re.compile(r"(@\d+)[^@,]{0,20},? or (?:the |an? )?(?:[a-z]+ ){0,3}(@\d+)")
_AFTER_COMMA = re.compile(r"^(?:[^,:]|[,:](?! ))*[,:] (?:the )?(.+?),? or (?:the )?([^?]+)\??", re.I)
_OF = re.compile(r"\b(?:the )?([a-z]+ of (?:the )?@\d+),? or (?:the )?([a-z]+ of (?:the )?@\d+)")


def compare(question: str, hops: Sequence[Hop], table: SpanTable, ranker: Ranker) -> ComparedAnswers | None:
    """Decide which of two comes first, is larger or lived longer, whether two are the same, or whether a claim holds.

    None if the answer has to be read from the text, or what is compared was not found.
    """
    kind = answer_type(question).kind
    if kind == "yes/no":
        return _yes_or_no(question, hops, table)
    sides = options(question) if kind == "either" else None
    if sides is None:
        return None
    if re.search(r"\blived longer\b|\blonger li(?:fe|ved)|\blongest life", question, re.I):
        return _lifespans(sides, table, ranker)
    if not _comparative(question):
        return _claimed(question, sides, table)
    chance = _first_wins(question, hops, table)
    return None if chance is None else ComparedAnswers(*sides, chance, "comparison")


@lru_cache(maxsize=512)
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


def _comparative(question: str) -> str:
    found = _COMPARATIVE.search(re.sub(r"@\d+", " ", mask(question).text))
    return found[1].lower() if found else ""


def _claimed(question: str, sides: tuple[str, str], table: SpanTable) -> ComparedAnswers | None:
    """The side whose passages have more of the question's words; None if both have as many."""
    claim = frozenset(content_terms(question)).difference(*(content_terms(side) for side in sides))
    keys = [(title_key(bare_title(side)), title_key(side)) for side in sides]
    known = [frozenset[str]().union(*(p.terms for p in table.passages if about(p, *key) >= ABOUT)) for key in keys]
    first, second = (_share(claim, terms) for terms in known)
    return ComparedAnswers(*sides, 0.5 + (first - second) / 2, "claim") if first != second else None


def _yes_or_no(question: str, hops: Sequence[Hop], table: SpanTable) -> ComparedAnswers:
    lowered = question.lower()
    if len(hops) >= 2:
        if re.search(r"\bsame\b|\bshare\b|\bin common\b|\bboth (?:located|from|in)\b", lowered):
            return ComparedAnswers("yes", "no", _sameness(table, hops[-2], hops[-1], lowered), "same")
        if _comparative(question) and (chance := _first_wins(question, hops, table)) is not None:
            return ComparedAnswers("yes", "no", chance, "comparison")
    return ComparedAnswers("yes", "no", _held(question, table), "claim")


def _sameness(table: SpanTable, left: Hop, right: Hop, question: str) -> float:
    """The probability that two sub-questions have one answer; as countries if the question is about countries."""
    if re.search(r"\bcountr|\bnation", question):
        a, b = _countries(table, left), _countries(table, right)
        if a and b:
            return sum(share * b.get(country, 0.0) for country, share in sorted(a.items()))
    return max(
        (min(a.score, 1.0) * b.score for a in left.answers for b in right.answers if same(a.text, b.text)), default=0.0
    )


def _countries(table: SpanTable, hop: Hop) -> dict[str, float]:
    """The probability of each country to answer a sub-question."""
    found: dict[str, float] = {}
    for n in np.argsort(-hop.chances, kind="stable")[:_CONSIDERED]:
        for mention in countries(table.texts[n]):
            found[mention.country] = found.get(mention.country, 0.0) + float(hop.chances[n])
    total = sum(found.values())
    return {country: share / total for country, share in found.items()}


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
_WORDS = {word: float(number) for number, word in enumerate(_COUNTED)} | {
    "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0,
}  # fmt: skip
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_METRES = {"km": 1e3, "kilomet": 1e3, "mile": 1609.344, "metre": 1, "meter": 1, "m": 1, "feet": 0.3048, "ft": 0.3048}
_UNIT = re.compile(r"\s*(km|kilomet|mile|metre|meter|feet|ft|m\b)")
_CONSIDERED = 8  # spans of a side


def _first_wins(question: str, hops: Sequence[Hop], table: SpanTable) -> float | None:
    """The probability that the first side wins; None if nothing can be compared."""
    if len(hops) < 2 or (less := _less(_magnitudes(table, hops[-2]), _magnitudes(table, hops[-1]))) is None:
        return None
    (kind, chance), word = less, _comparative(question)
    smaller_wins = word in _SMALLER or (kind == "date" and word in ("longer", "longest"))  # "the longer history"
    return chance if smaller_wins else 1 - chance


def _magnitudes(table: SpanTable, hop: Hop) -> Magnitudes:
    """The magnitudes of the likeliest spans of a sub-question, with their shares."""
    found: Magnitudes = []
    for n in np.argsort(-hop.chances, kind="stable")[:_CONSIDERED]:
        kind, value = magnitude(table.texts[n] + table.text_after(int(n)))
        if value:
            found.append((kind, value, float(hop.chances[n])))
    return found


def _less(left: Magnitudes, right: Magnitudes) -> tuple[str, float] | None:
    """What is compared, and the probability that the left side is less; None if nothing can be compared."""
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
    """What a text measures ("date", "length", "number") and its value, lengths in metres; empty if nothing."""
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


def _lifespans(sides: tuple[str, str], table: SpanTable, ranker: Ranker) -> ComparedAnswers | None:
    years = []
    for side in sides:
        hops = read_hops((f"When was {side} born?", f"When did {side} die?"), table, ranker)
        born, died = (
            next((value for kind, value, _ in _magnitudes(table, hop) if kind == "date"), None) for hop in hops
        )
        if born is None or died is None:
            return None
        years.append(sum(scale * (d - b) for scale, b, d in zip((1, 1 / 12, 1 / 365), born, died, strict=True)))
    return ComparedAnswers(*sides, 0.9 if years[0] > years[1] else 0.1, "comparison")
