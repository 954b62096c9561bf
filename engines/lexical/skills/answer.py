"""The answering agents: resolve the sub-questions over the evidence, then conclude."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ....data.text import content_terms, title_key
from ..decompose import decompose
from ..prompt import Prompt
from ..question import YES_NO, answer_type, mask
from ..reading import Page, dates, numbers, read_pages
from ..resolve import Answer, resolve, same

UNKNOWN = "unknown"
# From the score of the weakest link to the probability of an exact match: logistic regression on train questions of the
# sample, 2WikiMultihopQA, HotpotQA and MuSiQue, each set weighing the same.
SLOPE, OFFSET = 0.81, -2.05
SURE = 0.7  # least score of an answer that is given at all


def answer_question(prompt: Prompt) -> dict[str, Any]:
    """Answer from whatever passages the prompt holds; without passages nothing is known."""
    question = prompt.inputs.get("question", "")
    pages = read_pages(prompt.inputs.get("evidence") or prompt.inputs.get("passages") or "")
    if not pages:
        return {"reasoning": "There is nothing to read.", "answer": UNKNOWN, "confidence": 0.0}
    sub_questions = prompt.listed("sub_questions") or decompose(question)
    answers = resolve(sub_questions, pages)
    answer, score = _conclude(question, sub_questions, answers, pages)
    reasoning = " ".join(
        f"{text} {found.text or UNKNOWN}{f' [{found.line.id}]' if found.line else ''}."
        for text, found in zip(sub_questions, answers, strict=True)
    )
    confidence = 0.0 if answer == UNKNOWN else round(1 / (1 + math.exp(-(SLOPE * score + OFFSET))), 2)
    citations = list(dict.fromkeys(found.line.id for found in answers if found.line))
    return {"reasoning": reasoning, "answer": answer, "citations": citations, "confidence": confidence}


def _conclude(
    question: str, sub_questions: Sequence[str], answers: Sequence[Answer], pages: Sequence[Page]
) -> tuple[str, float]:
    """The answer to the question itself and its score."""
    weakest = min((a.score for a in answers), default=0.0)
    if answer_type(question) == YES_NO:
        return _yes_or_no(question, answers, pages)
    sides = _sides(question, sub_questions)
    if sides and len(answers) >= 2:
        chosen = _choose(question, answers[-2], answers[-1])
        if chosen is not None:
            return _option(sides[chosen], answers), weakest
    last = answers[-1]
    if not last.text or last.score < SURE:
        return UNKNOWN, 0.0
    return last.text, weakest


_COMPARATIVE = re.compile(
    r"\b(first|earlier|earliest|older|oldest|before|later|latest|younger|youngest|last|recently|more recent|longer|"
    r"longest|larger|largest|bigger|higher|highest|taller|tallest|more|most|fewer|shorter|smaller)\b",
    re.I,
)


def _sides(question: str, sub_questions: Sequence[str]) -> tuple[str, str] | None:
    """The two things that a question compares, as it names them."""
    if len(sub_questions) < 2 or not _COMPARATIVE.search(question):
        return None
    options = re.search(
        r"(?:,|:|\bbetween\b)\s*(?:the )?([^,?]*(?:\([^)]*\))?[^,?]*?),? (?:or|and) (?:the )?([^?]*)\??\s*$",
        question,
        re.I,
    )
    named = mask(question)
    pair = re.search(r"(@\d+|#\d+),? (?:or|and) (?:the )?(@\d+|#\d+)", named.text)
    if pair:
        return named.unmask(pair[1]), named.unmask(pair[2])
    return (options[1].strip(), options[2].strip(" ?")) if options else None


def _option(side: str, answers: Sequence[Answer]) -> str:
    """The option itself; where it is a description ("the creator of C++"), whoever was found for it."""
    if re.match(r"(?:the )?[a-z]+ of\b", side):
        key = title_key(side.split(" of ", 1)[1])
        for answer in answers:
            if answer.page and f" {key} " in f" {title_key(answer.page.title)} ":
                return answer.text
    return side


def _choose(question: str, left: Answer, right: Answer) -> int | None:
    """0 or 1: which side wins the comparison; None if the answers cannot be compared."""
    (a_kind, a), (b_kind, b) = _magnitude(left.text), _magnitude(right.text)
    if not a or not b or a_kind != b_kind or a == b:
        return None
    word = next(m[1].lower() for m in _COMPARATIVE.finditer(question))
    smaller = word in ("first", "earlier", "earliest", "older", "oldest", "before", "fewer", "shorter", "smaller")
    if word in ("longer", "longest") and a_kind == "date":
        smaller = True  # "the longer history"
    return int((a < b) != smaller)


_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WORDS = {word: float(number) for number, word in enumerate(_COUNTED)} | {
    "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0,
}  # fmt: skip
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_METRES = {"km": 1e3, "kilomet": 1e3, "mile": 1609.344, "metre": 1, "meter": 1, "m": 1, "feet": 0.3048, "ft": 0.3048}
_UNIT = re.compile(r"\s*(km|kilomet|mile|metre|meter|feet|ft|m\b)")


def _magnitude(text: str) -> tuple[str, tuple[float, ...]]:
    """What a text measures ("date", "length", "number") and how much, lengths in metres; empty if nothing."""
    if found := dates(text):
        return "date", found[0].key
    for figure in numbers(text):
        digits, scale, *_ = [*figure.text.lower().split(), ""]
        plain = re.sub(r"[^\d.]", "", digits).strip(".")
        value = float(plain) if plain else _WORDS.get(digits)
        if value is not None:
            value *= _SCALES.get(scale, 1.0)
            unit = _UNIT.match(text.lower(), figure.end)
            return ("length", (value * _METRES[unit[1]],)) if unit else ("number", (value,))
    return "", ()


def _yes_or_no(question: str, answers: Sequence[Answer], pages: Sequence[Page]) -> tuple[str, float]:
    lowered = question.lower()
    if len(answers) >= 2:
        left, right = answers[-2:]
        score = min(left.score, right.score)
        if re.search(r"\bsame\b|\bshare\b|\bin common\b|\bboth (?:located|from|in)\b", lowered):
            if not (left.text and right.text):
                return UNKNOWN, 0.0
            as_country = bool(re.search(r"\bcountr|\bnation", lowered))
            return "yes" if same(left.text, right.text, as_country) else "no", score
        if _COMPARATIVE.search(lowered):
            first = _choose(question, left, right)
            return (UNKNOWN, 0.0) if first is None else ("yes" if first == 0 else "no", score)
    held = _held(question, pages)
    return "yes" if held > 0.5 else "no", SURE + abs(held - 0.5)


def _held(question: str, pages: Sequence[Page]) -> float:
    """The share of a claim that the text tells: of "both", the less told one; otherwise by one sentence."""
    key = f" {title_key(question)} "
    about = [page for page in pages if any(f" {name} " in key for name in page.names)] or list(pages)
    asked = frozenset(content_terms(question)) - {"both"}
    if re.search(r"\bboth\b", question, re.I):
        claim = asked - frozenset().union(*(page.title_terms for page in about))
        return min((_share(claim, page.terms) for page in about), default=0.0)
    return max((_share(asked - page.title_terms, line.terms) for page in about for line in page.lines), default=0.0)


def _share(claim: frozenset[str], terms: frozenset[str]) -> float:
    return len(claim & terms) / max(len(claim), 1)
