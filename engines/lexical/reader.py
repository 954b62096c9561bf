"""Reads the answer to a question from passages: candidate answers with the probability that they are right.

The sub-questions are answered one after the other (`hops`). A comparison is decided from their answers (`compare`). Any
other question is read as a whole by two rankers, one of which also knows the place of a span in the chain of
sub-questions: an answer is found although a sub-question was misread, and a consistent chain decides. A short question
without parts is read as a sub-question, too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...data.text import title_key
from .compare import compare, options
from .features import ParsedQuestion, about, features, parse_question, within
from .hops import Answer, Hop, best_answers, read_hops
from .prompt import ParsedPassage
from .question import answer_type
from .ranker import calibrated, ranker
from .span_table import Matrix, SpanTable, Vector, span_table
from .spans import DATE, code, numbers

SHORT = 12  # most words of a question that is read as a sub-question; longer ones have hidden parts
MOST = 12  # answers that are weighed against one another
MISFIT = 0.02  # factor of a span that is not of the kind that is asked for
CODE_NOUNS = frozenset(
    "attribute class command constant decorator directive exception field flag function header key keyword library "
    "method module operator option parameter property routine setting signal specifier switch tool variable".split()
)
NUMBERED = frozenset(("port", "release", "version"))
DEFINED = 0.6  # probability of a definition, chosen by hand

_ARTICLES = frozenset(("a", "an", "the"))
_UNITS = re.compile(r"\s?(?:[KMGT]i?B|bytes?|ms|seconds?|minutes?|hours?|days?)\b")
_ASKS_DEFINITION = re.compile(r"what (?:is|are) (?:an? |the )?([^,;?]+)\?", re.I)
_DEFINITION = re.compile(r"(?:an? |the )?([^,;]{2,60}?) (?:is|are) ((?:an? |the )[^.;:]{3,150})[.;:]?", re.I)


def read(question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> tuple[Answer, ...]:
    """The candidate answers of a question, best first; none if the passages do not mention what it names."""
    return _read(question, tuple(sub_questions), tuple(passages))


@lru_cache(maxsize=64)
def _read(question: str, sub_questions: tuple[str, ...], passages: tuple[ParsedPassage, ...]) -> tuple[Answer, ...]:
    table = span_table(passages)
    named = [each for each in map(parse_question, (question, *sub_questions)) if each.names]
    if not table.texts or (named and not any(_known_names(each, table) for each in named)):
        return ()
    hops = read_hops(sub_questions, passages)
    if verdict := compare(question, hops, table):
        return verdict
    if len(hops) == 1 and (defined := _define(question, passages)):
        return (defined,)
    answers = list(best_answers(table, _chances(question, hops, table), MOST))
    words = [Counter(w for w in title_key(answer.text).split() if w not in _ARTICLES) for answer in answers]
    expected = [  # F1
        sum(other.probability * _f1(own, theirs) for other, theirs in zip(answers, words, strict=True)) for own in words
    ]
    known = _known_names(parse_question(question), table)
    steps = tuple(hop.best for hop in hops)
    return tuple(
        replace(
            answer,
            probability=calibrated("span", (f1, answer.probability, known)),
            steps=steps if len(hops) > 1 else (answer,),
        )
        for f1, answer in sorted(zip(expected, answers, strict=True), key=lambda pair: -pair[0])
    )


def _known_names(question: ParsedQuestion, table: SpanTable) -> float:
    """The share of the words of the question's names that the passages have; 1 if it has no names."""
    found = frozenset[str]().union(*table.passage_terms)
    return len(question.named & found) / len(question.named) if question.named else 1.0


def _f1(a: Counter[str], b: Counter[str]) -> float:
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


def _define(question: str, passages: Sequence[ParsedPassage]) -> Answer | None:
    """The answer to "What is a journal?" in a sentence "A journal is a file of bookings."."""
    if asked := _ASKS_DEFINITION.fullmatch(question.strip()):
        for passage in passages:
            for sentence in passage.sentences:
                found = _DEFINITION.match(sentence.text)
                if found and title_key(found[1]) == title_key(asked[1]):
                    answer = Answer(found[2], DEFINED, sentence, passage)
                    return replace(answer, steps=(answer,))
    return None


def _chances(question: str, hops: Sequence[Hop], table: SpanTable) -> Vector:
    """The probability of each span to answer a whole question."""
    rows = features(parse_question(question), table)
    chances = ranker("bare").probabilities(rows)
    if len(hops) > 1:  # the geometric mean of two rankers errs less than either
        rows = np.concatenate([rows, _chain_columns(hops, table)], axis=1)
        chances = np.sqrt(chances * ranker("whole").probabilities(rows))
    elif len(question.split()) <= SHORT:
        chances = np.sqrt(chances * hops[0].chances)
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


def _chain_columns(hops: Sequence[Hop], table: SpanTable) -> Matrix:
    """The place of each span in the chain of sub-questions: seven columns of numbers."""
    by_answer = [np.bincount(table.group, hop.chances, len(table.groups))[table.group] for hop in hops]
    onward = np.zeros(len(table.passages))
    for hop in hops[:-1]:
        for answer in hop.answers:
            key = title_key(answer.text)
            near = np.array([about(passage, key, key) for passage in table.passages])
            onward = np.maximum(onward, answer.probability * near)
    last, size = by_answer[-1], len(table.texts)
    columns = (
        last,  # it answers the last hop
        np.log(last + 1e-4) / 9 + 1,
        hops[-1].chances,  # here
        np.max(by_answer[:-1], axis=0),  # it answers an earlier hop
        onward[table.passage],  # its passage is about an earlier answer
        np.full(size, math.prod(hop.best.probability for hop in hops)),  # the chain holds
        np.full(size, min(len(hops), 4) / 4),
    )
    return np.stack(columns, axis=1).astype(np.float32)
