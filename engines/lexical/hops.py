"""Answers sub-questions from passages, one after the other, and tells which of them are still open.

A network with one small hidden layer and a linear part scores every candidate by its `features`; the softmax over all
candidates gives their probabilities. Its weights (``ranker.json``, in thousandths) were fitted on train and dev
questions in version 0.1. A sub-question is read once for each likely answer of the sub-questions that it refers to, and
its answers are weighed by the probabilities of those: a beam over chains of answers, so that one wrong answer need not
break the chain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from ...data.references import references, replace_references
from ...data.text import title_key
from .clauses import misplaced
from .features import Matrix, ParsedQuestion, SpanTable, Vector, about, features, parse_question, span_table, within
from .negation import denied, differs, rivals
from .prompt import ParsedPassage, Sentence
from .spans import relation_terms

BEAM = 3  # answers of a sub-question that are put into later ones
LEAST = 0.15  # of them, least share of the best answer's probability
MISFIT = 0.02  # factor of a span that does not fit what is asked for
OWN_PASSAGE = 0.5  # least certainty that a passage is about the bearer of a name


@cache
def fitted(name: str) -> Any:
    """Weights: of a ranker ``hidden`` (features x units), ``bias``, ``out`` (units), ``linear`` (features)."""
    found = json.loads((files(__package__) / "ranker.json").read_bytes())[name]
    if name == "calibration":
        return found
    return [np.array(found[part], np.float32) / np.float32(1000) for part in ("hidden", "bias", "out", "linear")]


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def rank(name: str, rows: Matrix) -> Vector:
    """The probability of each candidate to be the answer.

    Args:
        name: ``hop`` ranks the answers of a sub-question, ``bare`` those of a whole question, ``whole`` the same with
            columns for the chain of sub-questions.
        rows: Features, one row per candidate.
    """
    if not len(rows):
        return np.zeros(0, np.float32)
    hidden, bias, out, linear = fitted(name)
    with _blas().limit(limits=1):  # starting threads takes longer than these small products
        scores = np.maximum(rows @ hidden + bias, 0) @ out + rows @ linear
    odds = np.exp(scores - scores.max())
    share: Vector = odds / odds.sum()
    return share


@dataclass(frozen=True)
class Answer:
    """An answer to a question or sub-question.

    Attributes:
        text: As the passage has it.
        probability: That it is right; of a sub-question's answer, among the candidates.
        sentence, passage: Where it was read; None for the verdict of a comparison.
        steps: Of a question: the best answers of its sub-questions; this answer if it has no parts.
    """

    text: str
    probability: float
    sentence: Sentence | None = None
    passage: ParsedPassage | None = None
    steps: tuple[Answer, ...] = ()


NONE = Answer("", 0.0)


@dataclass(frozen=True, eq=False)
class Hop:
    """The probability of every span of a table to answer a sub-question; the same with 0 for spans whose sentence
    denies what is asked; and the best answers of those that are left."""

    chances: Vector
    affirmed: Vector
    answers: tuple[Answer, ...]

    @property
    def best(self) -> Answer:
        return self.answers[0] if self.answers else NONE


def read_hops(sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> tuple[Hop, ...]:
    """Answer sub-questions one after the other."""
    return _hops(tuple(sub_questions), tuple(passages))


@lru_cache(maxsize=64)
def _hops(sub_questions: tuple[str, ...], passages: tuple[ParsedPassage, ...]) -> tuple[Hop, ...]:
    table, found = span_table(passages), list[Hop]()
    # Few sentences deny anything, or say what is like it: only their spans are compared with each sub-question.
    denies = [bool(denied(said.text) or denied(_above(passage))) for passage, said in table.sentences]
    for text in sub_questions:
        others = rivals(text)
        doubted = np.array(
            [no or not others.isdisjoint(row.where) for no, row in zip(denies, table.rows, strict=True)], bool
        )
        suspects = np.flatnonzero(doubted[table.sentence]) if table.spans else ()
        chances = np.zeros(len(table.spans), np.float32)
        for bound, weight in _bound(text, found):
            chances += weight * rank("hop", features(bound, table)) * np.where(misplaced(bound, table), MISFIT, 1)
        affirmed = chances.copy()
        for n in suspects:
            passage, sentence = table.sentences[table.sentence[n]]
            if differs(text, table.spans[n].text, sentence.text, _above(passage)):
                affirmed[n] = 0
        found.append(Hop(chances, affirmed, tuple(best_answers(table, affirmed, BEAM))))
    return tuple(found)


def _above(passage: ParsedPassage) -> str:
    return f"{passage.title} {passage.headings}"


def _bound(text: str, found: Sequence[Hop]) -> Iterator[tuple[ParsedQuestion, float]]:
    """The sub-question with likely earlier answers put in, and their weights, which sum to 1."""
    referred = [n for n in references(text) if 0 < n <= len(found)]
    hops = [found[n - 1] for n in referred]
    options = [[a for a in hop.answers if a.probability >= LEAST * hop.best.probability] for hop in hops]
    if not all(options):
        options, referred = [], []
    if len(options) > 1:
        options = [option[:2] for option in options]
    weighed = [(each, math.prod((answer.probability for answer in each), start=1.0)) for each in product(*options)]
    total = sum(weight for _, weight in weighed) or 1.0
    for answers, weight in weighed:
        texts = dict(zip(referred, (answer.text for answer in answers), strict=True))
        bound = replace_references(text, lambda n: texts.get(n, ""))  # noqa: B023
        yield parse_question(bound, tuple(texts.values())), weight / total


def best_answers(table: SpanTable, chances: Vector, most: int) -> Iterator[Answer]:
    """The likeliest answers. Spans with one key are one answer, written as the likeliest of them is."""
    by_answer = np.bincount(table.group, chances, len(table.keys))
    for group in (n for n in np.argsort(-by_answer, kind="stable")[:most] if by_answer[n]):
        members = np.flatnonzero(table.group == group)
        chosen = int(members[chances[members].argmax()])
        passage, sentence = table.sentences[table.sentence[chosen]]
        yield Answer(table.spans[chosen].text, float(by_answer[group]), sentence, passage)


def support(sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> dict[str, float]:
    """How much each sentence supports the answers: 1 for the best sentence of a sub-question, less for the others."""
    table = span_table(tuple(passages))
    found: dict[str, float] = {}
    for hop in read_hops(sub_questions, passages) if table.spans else ():
        by_sentence = np.bincount(table.sentence, hop.chances, len(table.sentences))
        for (_, sentence), share in zip(table.sentences, by_sentence / by_sentence.max(), strict=True):
            found[sentence.id] = max(found.get(sentence.id, 0.0), float(share))
    return found


def same(a: str, b: str) -> bool:
    """Whether two answers name the same thing: one name within the other."""
    a, b = title_key(a), title_key(b)
    return bool(a and b) and (a == b or within(a, b) or within(b, a))


# --- open sub-questions ----------------------------------------------------------------------------------------------


class SubGoal(NamedTuple):
    """A sub-question with the known answers in place of its references, and its own answer; `NONE` if it is open."""

    question: str
    answer: Answer

    @property
    def is_ready(self) -> bool:
        """Whether it can be searched for: it refers to no open sub-question."""
        return not references(self.question)


def sub_goals(
    sub_questions: Sequence[str],
    passages: Sequence[ParsedPassage],
    least: float = 0.0,
    known: Mapping[int, str] | None = None,
) -> list[SubGoal]:
    """Every sub-question, in order.

    The probability of an answer only compares the spans at hand, which may all be about something else. So an answer
    counts if the passages cover what the question names, and if its probability is not below ``least``. ``known`` has
    answers that are not asked for, by the number of their sub-question.
    """
    found, goals = dict(known or {}), list[SubGoal]()
    hops = read_hops([replace_references(text, found.get) for text in sub_questions], passages)
    for number, (text, hop) in enumerate(zip(sub_questions, hops, strict=True), 1):
        goal = SubGoal(replace_references(text, found.get), hop.best)
        given = [found[n] for n in references(text) if n in found]
        if number in found:
            goal = goal._replace(answer=Answer(found[number], 1.0))
        elif (
            hop.best.text
            and goal.is_ready
            and hop.best.probability >= least
            and is_covered(goal.question, given, passages)
        ):
            found[number] = hop.best.text
        else:
            goal = goal._replace(answer=NONE)
        goals.append(goal)
    return goals


def is_covered(question: str, given: Iterable[str], passages: Sequence[ParsedPassage]) -> bool:
    """Whether the passages cover a name in a question or an answer put into it: by a passage about it, or by a sentence
    with the name and most of the asked-for words."""
    asked = parse_question(question, tuple(given))
    names = list(zip(asked.names, asked.titles, strict=True))
    if not names or any(about(passage, *name) >= OWN_PASSAGE for passage in passages for name in names):
        return True
    named = (s for passage in passages for s in passage.sentences if any(f" {name} " in s.key for name in asked.names))
    return any(2 * len(asked.relation & relation_terms(s.text)) > len(asked.relation) for s in named)
