"""Passages of files that belong to a benchmark: its corpus, or the contexts of its questions.

Ids are hashes of title and text, so a passage has the same id in a question's contexts and in an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from ..errors import Problem
from ..passages import Passage
from ..records import TEXTS, Record, read_each
from .formats import recognize

_Placed = Iterator[tuple[Passage, str]]  # with their places


def passages_of(records: Iterator[Record | Problem], on_problem: Callable[[Problem], None]) -> tuple[_Placed, bool]:
    """The passages of a file's records with their places; and whether it is one of a benchmark, judged by its first
    record.

    Of benchmarks these are the articles of MultiHop-RAG, and the union of questions' contexts (HotpotQA,
    2WikiMultihopQA, MuSiQue, SQuAD, own questions), each passage once.
    """
    before = list[Record | Problem]()
    for record in records:
        before.append(record)
        if isinstance(record, Record):
            break
    first = next((record for record in before if isinstance(record, Record)), Record({}, ""))
    records = chain(before, records)

    def read(of: Callable[[Record], Iterable[Passage]]) -> _Placed:
        return read_each(lambda record: ((passage, record.where) for passage in of(record)), records, on_problem)

    if {"body", "category", "published_at"} <= first.keys():  # of MultiHop-RAG
        return _distinct(read(lambda record: [record.passage()])), True
    if first.has(*TEXTS, "sentences", "kwargs", "text_resource"):
        return read(lambda record: [record.passage()]), False
    if first.has("context", "paragraphs", "data", "passages"):
        for benchmark in recognize(first):
            if benchmark.has_contexts:
                questions = benchmark.read(records, on_problem)
                placed = ((passage, question.where) for question in questions for passage in question.pool or ())
                return _distinct(placed), True
    return read(lambda record: [record.passage()]), False


def _distinct(passages: _Placed) -> _Placed:
    seen: set[str] = set()
    for passage, where in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage, where
