"""Answers sub-questions from passages, one after the other, and lists those that are still open.

A sub-question is read once for each likely answer of the sub-questions that it refers to, and its answers are weighed
by the probabilities of those: a beam over chains of answers, so that one wrong answer need not break the chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ...data.references import references, replace_references
from ...data.text import bare_title, title_key
from .features import ParsedQuestion, about, features, parse_question, within
from .prompt import ParsedPassage, Sentence
from .question import mask
from .ranker import ranker
from .span_table import SpanTable, Vector, span_table
from .vocabulary import relation_terms

BEAM = 3  # answers of a sub-question that are put into later ones
LEAST = 0.15  # of them, least share of the best answer's probability
OWN_PASSAGE = 0.5  # least certainty that a passage is about the bearer of a name
RELATED = 0.5  # least share of the asked-for words in a sentence with the name


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
    """The probability of every span of a table to answer a sub-question, and the best answers."""

    chances: Vector
    answers: tuple[Answer, ...]

    @property
    def best(self) -> Answer:
        return self.answers[0] if self.answers else NONE


def resolve(sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> list[Answer]:
    """The best answer of each sub-question, in order."""
    return [hop.best for hop in read_hops(sub_questions, passages)]


def support(sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> dict[str, float]:
    """How much each sentence supports the answers: 1 for the best sentence of a sub-question, less for the others."""
    table = span_table(tuple(passages))
    found: dict[str, float] = {}
    for hop in read_hops(sub_questions, passages):
        if not len(hop.chances):
            continue
        by_sentence = np.bincount(table.sentence, hop.chances, len(table.sentences))
        for (_, sentence), share in zip(table.sentences, by_sentence / by_sentence.max(), strict=True):
            found[sentence.id] = max(found.get(sentence.id, 0.0), float(share))
    return found


def read_hops(sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> tuple[Hop, ...]:
    """Answer sub-questions one after the other."""
    return _hops(tuple(sub_questions), tuple(passages))


@lru_cache(maxsize=64)
def _hops(sub_questions: tuple[str, ...], passages: tuple[ParsedPassage, ...]) -> tuple[Hop, ...]:
    table, found = span_table(passages), list[Hop]()
    for text in sub_questions:
        chances = np.zeros(len(table.texts), np.float32)
        for bound, weight in _bound(text, found):
            chances += weight * ranker("hop").probabilities(features(bound, table))
        found.append(Hop(chances, tuple(best_answers(table, chances, BEAM))))
    return tuple(found)


def _bound(text: str, found: Sequence[Hop]) -> Iterator[tuple[ParsedQuestion, float]]:
    """The sub-question with likely earlier answers put in, and their weights, which sum to 1."""
    referred = [n for n in references(text) if 0 < n <= len(found)]
    hops = [found[n - 1] for n in referred]
    options = [[a for a in hop.answers if a.probability >= LEAST * hop.best.probability] for hop in hops]
    if any(not option for option in options):
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
    if not len(chances):
        return
    by_answer = np.bincount(table.group, chances, len(table.groups))
    for group in np.argsort(-by_answer, kind="stable")[:most]:
        members = np.flatnonzero(table.group == group)
        chosen = int(members[chances[members].argmax()])
        passage, sentence = table.sentences[table.sentence[chosen]]
        yield Answer(table.texts[chosen], float(by_answer[group]), sentence, passage)


def same(a: str, b: str) -> bool:
    """Whether two answers name the same thing: one name within the other."""
    a, b = title_key(a), title_key(b)
    return bool(a and b) and (a == b or within(a, b) or within(b, a))


# --- open sub-questions ----------------------------------------------------------------------------------------------

# The probability of an answer only compares the spans at hand, which may all be about something else. So an answer
# counts if the passages cover what its sub-question names. `find_gaps` and `sub_goals` differ in how strict they are:
# each rule suits its agents better than the other one (KAIR and polyhop would search more, IRCoT would be misled).


class Gap(NamedTuple):
    """A sub-question without an answer."""

    number: int  # its index, from 0
    question: str  # its text with the known answers in place of the references
    is_ready: bool  # whether it can be searched for, because it refers to no other gap


def find_gaps(question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> list[Gap]:
    """The sub-questions that the passages do not answer, in order; the question itself if there are none."""
    steps = tuple(sub_questions) or (question,)
    answers: list[Answer] = []
    gaps = []
    for number, (text, answer) in enumerate(zip(steps, resolve(steps, passages), strict=True)):
        bound = fill_references(text, answers)
        given = [answers[n - 1].text for n in references(text) if 0 < n <= number]
        covered = answer.text and not references(bound) and is_covered(bound, given, passages)
        answers.append(answer if covered else NONE)
        if not covered:
            gaps.append(Gap(number, bound, not references(bound)))
    return gaps


def is_covered(question: str, given: Iterable[str], passages: Sequence[ParsedPassage]) -> bool:
    """Whether the passages cover a name in a question or an answer put into it: by a passage about it, or by a sentence
    with the name and half of the asked-for words."""
    names = [name.strip('"“” ') for name in mask(question).names]
    keys = [(title_key(bare_title(name)), title_key(name)) for name in (*names, *given) if title_key(name)]
    if any(about(passage, bare, whole) >= OWN_PASSAGE for passage in passages for bare, whole in keys):
        return True
    asked = relation_terms(mask(question).text) - relation_terms(" ".join((*names, *given)))
    named = (s for passage in passages for s in passage.sentences if any(f" {bare} " in s.key for bare, _ in keys))
    return not keys or any(len(asked & relation_terms(s.text)) >= RELATED * len(asked) for s in named)


def fill_references(text: str, answers: Sequence[Answer]) -> str:
    """A sub-question with the known answers in place of the references to them."""
    known = {number: answer.text for number, answer in enumerate(answers, 1) if answer.text}
    return replace_references(text, known.get)


class SubGoal(NamedTuple):
    """A sub-question with earlier answers in place of its references, and its own answer; empty if it has none."""

    question: str
    answer: str


def sub_goals(sub_questions: Sequence[str], passages: Sequence[ParsedPassage], least: float) -> Iterator[SubGoal]:
    """The sub-goals whose references are all answered, in order; an answer is at least as probable as ``least``."""
    answers = resolve(sub_questions, passages) if passages else []
    reached: dict[int, str] = {}
    for n, text in enumerate(sub_questions, 1):
        referred = [number for number in references(text) if number <= len(sub_questions)]
        if all(number in reached for number in referred):
            question = replace_references(text, reached.get)
            answer = answers[n - 1] if answers else NONE
            if answer.text and answer.probability >= least and _is_on_named_passage(question, answer):
                reached[n] = answer.text
            yield SubGoal(question, reached.get(n, ""))


def _is_on_named_passage(question: str, answer: Answer) -> bool:
    key = f" {title_key(question)} "
    if not mask(question).names:
        return True
    return answer.passage is not None and any(f" {name} " in key for name in answer.passage.names)
