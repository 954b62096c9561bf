"""What the rankers are trained on: the candidates of sub-questions, and of whole questions with their chains read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ....engines.lexical.vocabulary import countries
from ....engines.lexical.features import features, parse_question
from ....engines.lexical.hops import read_hops
from ....engines.lexical.prompt import parse_passages
from ....engines.lexical.ranker import Ranker
from ....engines.lexical.reader import compare, whole_features
from ....engines.lexical.span_table import SpanTable, Vector, span_table
from ....eval.scoring import answer_scores, normalize_answer
from .examples import MIXED, Example
from .hops import Hop
from .network import Task

YES_NO = ("yes", "no")
STEP = "step"  # the condition under which an annotated sub-question is read as a question of its own


@dataclass(frozen=True, eq=False)
class Read:
    """A question read under one condition: what the whole ranker needs, and the verdict where a comparison decides.

    Attributes:
        example, asked: The number of its example, and what was asked: the example's question or one of its hops.
        pages: As the prompt shows them.
        signs: (how it was reached, what speaks for it) of the verdict.
        answer: The verdict's.
    """

    example: int
    asked: Hop
    condition: str
    pages: str
    task: Task
    answer: str = ""
    signs: tuple[str, tuple[float, ...]] | None = None


def scored(book: SpanTable, answers: Sequence[str], is_country: bool = False) -> Vector:
    """The F1 of every candidate; for a country, 1 for each of its names and adjectives."""
    wanted = {mention.country for mention in countries(answers[0])} if is_country else set()
    words = frozenset(word for answer in answers for word in normalize_answer(answer).split())

    def score(text: str) -> float:
        named = countries(text) if wanted else ()
        if len(named) == 1 and named[0].written == text and named[0].country in wanted:
            return 1.0
        return 0.0 if words.isdisjoint(normalize_answer(text).split()) else answer_scores(text, answers).f1

    scores = {text: score(text) for text in dict.fromkeys(book.texts)}
    return np.array([scores[text] for text in book.texts], np.float32)


def hop_tasks(example: Example) -> list[Task]:
    """The annotated sub-questions of an example, or the question itself where it has none and is a single one."""
    hops = example.hops
    if not hops and len(example.sub_questions) == 1 and example.answers[0].lower() not in YES_NO:
        hops = (Hop(example.question, (), example.answers),)
    others = [pages for condition, pages in example.pages.items() if condition != MIXED]
    tasks = []
    for n, hop in enumerate(hops):
        # Each is read by itself over mixed pages, where there are some, and in turn over one of the others.
        readings = [((), example.pages.get(MIXED, "")), (hop.bound, others[(n + len(example.question)) % len(others)])]
        for bound, pages in readings:
            book = span_table(parse_passages(pages))
            if book.texts:
                rows = features(parse_question(hop.question, bound), book).astype(np.float16)
                task = Task(rows, scored(book, hop.answers, hop.is_country))
                tasks.append(task.thinned(np.random.default_rng(len(hop.question))))
    return tasks


def read_all(ranker: Ranker, numbered: Sequence[tuple[int, Example]]) -> list[Read]:
    """Some examples under all their conditions, their chains read with a ranker of sub-questions."""
    return [read for number, example in numbered for read in _read(ranker, number, example)]


def _read(ranker: Ranker, number: int, example: Example) -> Iterator[Read]:
    for hop, sub_questions, condition, pages in _readings(example):
        book = span_table(parse_passages(pages))
        if not book.texts:
            continue
        hops = read_hops(sub_questions, book, ranker)
        rows = whole_features(hop.question, hops, book).astype(np.float16)
        task = Task(rows, scored(book, hop.answers, hop.is_country))
        verdict = compare(hop.question, hops, book, ranker)
        if verdict is None:
            yield Read(number, hop, condition, pages, task)
        else:
            answer, chance = verdict.ranked()[0]
            yield Read(number, hop, condition, pages, task, answer, (verdict.by, (chance,)))


def _readings(example: Example) -> Iterator[tuple[Hop, Sequence[str], str, str]]:
    """An example's question under each condition, and one of its sub-questions as a question over mixed pages."""
    whole = Hop(example.question, (), example.answers)
    for condition, pages in example.pages.items():
        if condition != MIXED:
            yield whole, example.sub_questions, condition, pages
        elif example.hops:
            step = example.hops[len(example.question) % len(example.hops)]
            yield step, (step.question,), STEP, pages
        else:
            yield whole, (example.question,), STEP, pages
