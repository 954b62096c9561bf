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
from .compare import calibrated, compare, log_odds, options
from .features import (
    Matrix,
    ParsedQuestion,
    SpanTable,
    Vector,
    about,
    features,
    parse_question,
    span_table,
    within,
)
from .hops import OWN_PASSAGE, Answer, Hop, best_answers, rank, read_hops
from .prompt import ParsedPassage
from .question import answer_type, mask
from .spans import DATE, code, numbers
from .vocabulary import is_adjective, relation_terms

SHORT = 12  # most words of a question that is read as a sub-question; longer ones have hidden parts
MOST = 12  # answers that are weighed against one another
MISFIT = 0.02  # factor of a span that is not of the kind that is asked for
CODE_NOUNS = frozenset(
    "attribute class command constant decorator directive exception field flag function header key keyword library "
    "method module operator option parameter property routine setting signal specifier switch tool variable".split()
)
DEFINED = 0.6  # probability of a definition, chosen by hand

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
    if not table.spans or (named and not any(_known_names(each, table) for each in named)):
        return ()
    hops = read_hops(sub_questions, passages)
    if verdict := compare(question, hops, table):
        return verdict
    if len(hops) == 1 and (defined := _define(question, passages)):
        return (defined,)
    answers = list(best_answers(table, _chances(question, hops, table), MOST))
    words = [Counter(w for w in title_key(answer.text).split() if w not in ("a", "an", "the")) for answer in answers]
    expected = [  # F1
        sum(other.probability * _f1(own, theirs) for other, theirs in zip(answers, words, strict=True)) for own in words
    ]
    known = _known_names(parse_question(question), table)
    steps = tuple(hop.best for hop in hops)
    return tuple(
        replace(
            answer,
            probability=calibrated("span", f1, answer.probability, known),
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
    rows, asks = features(parse_question(question), table), answer_type(question)
    chances = rank("bare", rows)
    if len(hops) > 1:  # the geometric mean of two rankers errs less than either
        chances = np.sqrt(chances * rank("whole", np.hstack([rows, _chain_columns(hops, table)])))
    elif len(question.split()) <= SHORT:
        chances = np.sqrt(chances * hops[0].chances)
    chances = chances * [_fits(asks.kind, asks.head, table, n) for n in range(len(table.spans))]
    if asks.kind == "either" and (sides := options(question)):  # only these two are allowed
        keys = [title_key(side) for side in sides]
        offered = np.array([any(within(key, side) or within(side, key) for side in keys) for key in table.keys])
        chances = np.where(offered[table.group], chances + 1e-6, 0) if any(offered) else chances
    share: Vector = chances / (chances.sum() or 1)
    return share


def _fits(kind: str, head: str, table: SpanTable, candidate: int) -> float:
    """How well a span fits what is asked for, where the rankers, which know encyclopedias, cannot tell: a number has
    digits and its unit of time or memory, and a part of a program looks like one."""
    span = table.spans[candidate]
    if kind == "year":  # not a full date: its year is a span of its own
        return 1e-6 if span.kind == DATE else 1.0
    if kind in ("number", "measure"):
        fits = bool(numbers(span.text)) and not (kind == "measure" and _UNITS.match(table.text_after(candidate)))
    elif head in ("port", "release", "version"):
        fits = any(number.text == span.text for number in numbers(span.text))
    else:
        fits = head not in CODE_NOUNS or any(found.text == span.text for found in code(span.text))
    return 1.0 if fits else MISFIT


def _chain_columns(hops: Sequence[Hop], table: SpanTable) -> Matrix:
    """The place of each span in the chain of sub-questions: seven columns of numbers."""
    by_answer = [np.bincount(table.group, hop.chances, len(table.keys))[table.group] for hop in hops]
    keys = [(title_key(answer.text), answer.probability) for hop in hops[:-1] for answer in hop.answers]
    onward = np.array([max(chance * about(each, key, key) for key, chance in keys) for each in table.passages])
    last, size = by_answer[-1], len(table.spans)
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


# --- premises --------------------------------------------------------------------------------------------------------

# Chosen on the answerable train and test questions of the sample, and on every other one of its split "unanswerable".
NAMED, COVERED = 2.0, 4.0  # the weights of having all names, and of the share of the other words
LEAST_SUPPORT = 3.4  # least sum of both and the log-odds
WORST = -1.4  # log-odds below which doubt does not grow: a poor guess that fits the question is often right


def is_supported(question: str, passages: Sequence[ParsedPassage], best: Answer) -> bool:
    """Whether passages tell what a question takes for granted.

    The reader compares the spans at hand, and one of them is always the best, also where the passages tell nothing of
    what is asked, or where its premise is wrong ("Who directed the novel X?"). So an answer also needs that the
    passages about the question's names, and those it was read from, have the names and the other words of the
    question. The less they have, the surer the reader must be. A choice between two that the question offers stands.
    """
    asked = parse_question(question)
    if best.passage is None or asked.asks.kind == "either":
        return True
    names = [name for name in mask(question).names if not is_adjective(name)]
    known = list(zip(asked.names, asked.titles, strict=True))
    read = {each.number for each in (best.passage, *(step.passage for step in best.steps)) if each}
    near = frozenset[str]().union(
        *(
            terms
            for passage, terms in zip(passages, span_table(tuple(passages)).passage_terms, strict=True)
            if not names or passage.number in read or any(about(passage, *name) >= OWN_PASSAGE for name in known)
        )
    )
    words = asked.relation - {asked.head}
    covered = len(words & near) / len(words) if words else 1.0
    has_names = relation_terms(" ".join(names)) <= near
    return max(WORST, log_odds(best.probability)) + NAMED * has_names + COVERED * covered >= LEAST_SUPPORT
