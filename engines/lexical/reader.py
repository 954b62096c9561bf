"""Reads a question over pages: its candidate answers, best first, each with the probability that it is right.

The sub-questions are read one after the other (`resolve`). A question that compares is decided from their answers
(`compare`). Any other question is read as a whole over all pages, by two rankers, one of which also knows where a span
stands in the chain of the sub-questions: an answer is found although a sub-question went astray, and a chain that holds
decides. A question without parts has no chain: if short, it is a sub-question itself and is read as one, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...data.text import title_key
from .asked import asked
from .book import Book, Matrix, Vector, book_of
from .compare import compare, options
from .features import FEATURES, Query, about, features, query, within
from .ranker import Models, Ranker, shipped
from .reading import Line, Page
from .resolve import Answer, Hop, best_answers, read_hops
from .spans import DATE

CHAIN = (
    "answers the last hop", "log of that", "here", "answers an earlier hop", "its page is about an earlier answer",
    "chain holds", "hops",
)  # fmt: skip
SHORT = 12  # words of a question without parts that is taken for a single one; longer ones hide their parts
MOST = 12  # answers that are weighed against one another

_ARTICLES = frozenset(("a", "an", "the"))


@dataclass(frozen=True)
class Reading:
    """A candidate answer.

    Attributes:
        text: As the page writes it.
        probability: That it is right.
        line, page: Where it stands; None for "yes" and "no".
        steps: The best answers of the sub-questions; of a single one, this answer.
    """

    text: str
    probability: float
    line: Line | None
    page: Page | None
    steps: tuple[Answer, ...]


def read(question: str, sub_questions: Sequence[str], pages: Sequence[Page]) -> list[Reading]:
    """The candidate answers of a question, best first; none if there is nothing to read."""
    return list(_read(question, tuple(sub_questions), tuple(pages)))


@lru_cache(maxsize=64)
def _read(question: str, sub_questions: tuple[str, ...], pages: tuple[Page, ...]) -> tuple[Reading, ...]:
    return tuple(read_with(shipped(), question, sub_questions, book_of(pages)))


def read_with(models: Models, question: str, sub_questions: Sequence[str], book: Book) -> list[Reading]:
    """`read` over prepared pages with any models."""
    named = [each for each in map(query, (question, *sub_questions)) if each.names]
    if not book.texts or (named and not any(known_names(each, book) for each in named)):
        return []  # nothing to read, or nothing that tells of what the question or a part of it is about
    hops = read_hops(sub_questions, book, models.hop)
    steps = tuple(hop.best for hop in hops)
    verdict = compare(question, hops, book, models.hop)
    if verdict is None:
        chances = answer_chances(
            models.bare, models.whole, question, whole_features(question, hops, book), book, len(hops)
        )
        return [
            Reading(
                answer.text,
                models.probability("span", signs),
                answer.line,
                answer.page,
                steps if len(hops) > 1 else (answer,),
            )
            for answer, signs in weighed(question, book, chances)
        ]
    return [
        Reading(text, models.probability(verdict.by, (chance,)), None, None, steps) for text, chance in verdict.ranked()
    ]


def answer_chances(bare: Ranker, whole: Ranker, question: str, rows: Matrix, book: Book, hops: int) -> Vector:
    """The probability of each candidate to answer a whole question, from its `whole_features` and number of hops."""
    chances = bare.probabilities(rows[:, : len(FEATURES)])
    if hops > 1:  # the geometric mean of two rankers errs less than either
        chances = np.sqrt(chances * whole.probabilities(rows))
    elif len(question.split()) <= SHORT:
        chances = np.sqrt(chances * rows[:, len(FEATURES) + CHAIN.index("here")])
    kind = asked(question).kind
    if kind == "year":  # not the day, whose year is a candidate of its own
        chances = np.where([span.kind == DATE for span in book.spans], chances * 1e-6, chances)
    sides = options(question) if kind == "either" else None
    if sides is not None:  # where a question offers two answers, only these
        keys = [title_key(side) for side in sides]
        offered = [any(within(key, side) or within(side, key) for side in keys) for key in book.keys]
        if any(offered):
            chances = np.where(np.array(offered)[book.group], chances + 1e-6, 0)
    share: Vector = chances / (chances.sum() or 1)
    return share


def whole_features(question: str, hops: Sequence[Hop], book: Book) -> Matrix:
    """`features` of the whole question, and where each candidate stands in the chain."""
    return np.concatenate([features(query(question), book), _chain(hops, book)], axis=1)


def _chain(hops: Sequence[Hop], book: Book) -> Matrix:
    by_answer = [np.bincount(book.group, hop.chances, len(book.groups)) for hop in hops]
    last = by_answer[-1][book.group]
    earlier = np.max([np.zeros(len(last)), *(shares[book.group] for shares in by_answer[:-1])], axis=0)
    onward = np.zeros(len(book.pages))
    for hop in hops[:-1]:
        for answer in hop.answers:
            key = title_key(answer.text)
            near = np.array([about(page, key, key) for page in book.pages])
            onward = np.maximum(onward, answer.score * near)
    holds = np.full(len(last), math.prod(hop.best.score for hop in hops))
    size = np.full(len(last), min(len(hops), 4) / 4)
    return np.stack(
        [last, np.log(last + 1e-4) / 9 + 1, hops[-1].chances, earlier, onward[book.page], holds, size],
        axis=1,
    ).astype(np.float32)


def weighed(question: str, book: Book, chances: Vector) -> list[tuple[Answer, tuple[float, ...]]]:
    """The likeliest answers, those first that share most words with the others, each weighed by its probability: the
    answer of the highest expected F1. With each, what its probability of being right is told from."""
    answers = list(best_answers(book, chances, MOST))
    words = [Counter(w for w in title_key(answer.text).split() if w not in _ARTICLES) for answer in answers]
    expected = [
        sum(other.score * _f1(own, theirs) for other, theirs in zip(answers, words, strict=True)) for own in words
    ]
    known = known_names(query(question), book)
    ranked = sorted(zip(expected, answers, strict=True), key=lambda pair: -pair[0])
    return [(answer, (share, answer.score, known)) for share, answer in ranked]


def known_names(question: Query, book: Book) -> float:
    """The share of the words of the question's names that stand in the pages; 1 if it has no names."""
    found = frozenset[str]().union(*book.page_terms)
    return len(question.named & found) / len(question.named) if question.named else 1.0


def _f1(a: Counter[str], b: Counter[str]) -> float:
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)
