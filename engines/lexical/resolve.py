"""Which spans answer the sub-questions of a question, each given the answers of those that it refers to.

A sub-question is put to the pages once for each likely answer of the sub-questions that it refers to, and its answers
are weighed by how likely those were: a beam over chains of answers, so that one wrong link need not lose the chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from ...data.text import title_key
from .book import Book, Vector, book_of
from .features import Query, features, query, within
from .gazetteer import countries
from .ranker import Ranker, shipped
from .reading import Line, Page

BEAM = 3  # answers of a sub-question that later ones are asked with
LEAST = 0.15  # share of the best answer's probability that another needs for that

_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True)
class Answer:
    """A span that answers a sub-question; ``score`` is its probability among the candidates, 0 to 1."""

    text: str
    score: float
    line: Line | None = None
    page: Page | None = None


NONE = Answer("", 0.0)


@dataclass(frozen=True, eq=False)
class Hop:
    """A sub-question read: the probability of every candidate of the book, and the best answers with theirs."""

    chances: Vector
    answers: tuple[Answer, ...]

    @property
    def best(self) -> Answer:
        return self.answers[0] if self.answers else NONE


def resolve(sub_questions: Sequence[str], pages: Sequence[Page]) -> list[Answer]:
    """The best answer of each sub-question, in order."""
    return [hop.best for hop in hops(tuple(sub_questions), tuple(pages))]


def support(sub_questions: Sequence[str], pages: Sequence[Page]) -> dict[str, float]:
    """How much each line is needed to answer the sub-questions: 1 for the best line of one, less for its rivals."""
    book = book_of(tuple(pages))
    needed: dict[str, float] = {}
    for hop in hops(tuple(sub_questions), tuple(pages)):
        if not len(hop.chances):
            continue
        by_line = np.bincount(book.line, hop.chances, len(book.lines))
        for (_, line), share in zip(book.lines, by_line / by_line.max(), strict=True):
            needed[line.id] = max(needed.get(line.id, 0.0), float(share))
    return needed


@lru_cache(maxsize=64)
def hops(sub_questions: tuple[str, ...], pages: tuple[Page, ...]) -> tuple[Hop, ...]:
    """The sub-questions read one after the other."""
    return tuple(read_hops(sub_questions, book_of(pages), shipped().hop))


def read_hops(sub_questions: Sequence[str], book: Book, ranker: Ranker, beam: int = BEAM) -> list[Hop]:
    """The sub-questions read one after the other, over prepared pages and with any ranker."""
    found: list[Hop] = []
    for text in sub_questions:
        chances = np.zeros(len(book.texts), np.float32)
        for bound, worth in _bound(text, found):
            chances += worth * ranker.probabilities(features(bound, book))
        found.append(Hop(chances, tuple(best_answers(book, chances, beam))))
    return found


def _bound(text: str, found: Sequence[Hop]) -> Iterator[tuple[Query, float]]:
    """The sub-question with likely earlier answers put in, and how likely they are; the shares add up to 1."""
    referred = list(dict.fromkeys(int(n) for n in _REFERENCE.findall(text) if 0 < int(n) <= len(found)))
    options = [[a for a in found[n - 1].answers if a.score >= LEAST * found[n - 1].best.score] for n in referred]
    if any(not option for option in options):
        options, referred = [], []
    if len(options) > 1:
        options = [option[:2] for option in options]
    total = sum(_product(answers) for answers in product(*options)) or 1.0
    for answers in product(*options):
        texts = dict(zip(referred, (answer.text for answer in answers), strict=True))
        bound = _REFERENCE.sub(lambda match: texts.get(int(match[1]), ""), text)  # noqa: B023
        yield query(bound, tuple(texts.values())), _product(answers) / total


def _product(answers: Sequence[Answer]) -> float:
    worth = 1.0
    for answer in answers:
        worth *= answer.score
    return worth


def best_answers(book: Book, chances: Vector, most: int) -> Iterator[Answer]:
    """The likeliest answers. Candidates with one key are one answer, written as the likeliest of them is."""
    if not len(chances):
        return
    by_answer = np.bincount(book.group, chances, len(book.groups))
    for group in np.argsort(-by_answer, kind="stable")[:most]:
        members = np.flatnonzero(book.group == group)
        chosen = int(members[chances[members].argmax()])
        page, line = book.lines[book.line[chosen]]
        yield Answer(book.texts[chosen], float(by_answer[group]), line, page)


@lru_cache(maxsize=4096)
def same(a: str, b: str, as_country: bool = False) -> bool:
    """Whether two answers name the same thing: one name within the other or, ``as_country``, the same country."""
    ca, cb = countries(a), countries(b)
    if as_country and ca and cb:
        return bool({mention.country for mention in ca} & {mention.country for mention in cb})
    ka, kb = title_key(a), title_key(b)
    return bool(ka and kb) and (ka == kb or within(ka, kb) or within(kb, ka))
