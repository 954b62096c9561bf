"""Passages of files that belong to a benchmark: its corpus, or the contexts of its questions.

Ids are hashes of title and text, so a passage has the same id in a question's contexts and in an index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from ..errors import Problem
from ..passages import Passage
from ..records import TEXTS, Malformed, Record
from .formats import title_in_url
from .registry import Benchmark, recognize, sound

NQ_WINDOW = 256  # words

_Placed = Iterator[tuple[Passage, str]]  # with their places
_Read = Callable[[Iterable[Record | Problem], Callable[[Problem], None]], _Placed]


def passages_of(records: Iterator[Record | Problem], on_problem: Callable[[Problem], None]) -> tuple[_Placed, bool]:
    """The passages of a file's records with their places; and whether it is one of a benchmark, judged by its first
    record.

    Of benchmarks these are the articles of MultiHop-RAG, Natural Questions with documents, in windows of 256 words, and
    the union of questions' contexts (HotpotQA, 2WikiMultihopQA, MuSiQue, SQuAD, own questions), each passage once.
    """
    looked_at = list[Record | Problem]()
    for record in records:
        looked_at.append(record)
        if isinstance(record, Record):
            break
    of_benchmark = next((found for each in looked_at if isinstance(each, Record) and (found := _reader(each))), None)
    read = of_benchmark or _each(lambda record: [record.passage()])
    passages = read(chain(looked_at, records), on_problem)
    return _distinct(passages) if of_benchmark else passages, of_benchmark is not None


def _distinct(passages: _Placed) -> _Placed:
    seen: set[str] = set()
    for passage, where in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage, where


def windows(passage: Passage, words: int = NQ_WINDOW) -> Iterator[Passage]:
    """Cut a passage into pieces of ``words`` words, ignoring sentences; the last may be shorter.

    The pieces have the passage's title, single spaces between words, and their own ids.
    """
    if words < 1:
        raise ValueError(f"words must be positive, got {words}")
    split = passage.text.split()
    return (Passage.of(passage.title, " ".join(split[at : at + words])) for at in range(0, len(split), words))


def _reader(first: Record) -> _Read | None:
    """What reads the file of a benchmark."""
    if first.fields.keys() >= {"body", "category", "published_at"}:  # of MultiHop-RAG
        return _each(lambda record: [record.passage()])
    if first.has(*TEXTS, "sentences", "kwargs", "text_resource"):
        return None
    if first.has("document_text", "document_tokens", "document"):
        return _each(_nq)
    if first.has("context", "paragraphs", "data", "passages"):
        return next((_contexts(each) for each in recognize(first) if each.has_contexts), None)
    return None


def _each(read: Callable[[Record], Iterable[Passage]]) -> _Read:
    def passages(records: Iterable[Record | Problem], on_problem: Callable[[Problem], None]) -> _Placed:
        for record in sound(records, on_problem):
            try:
                yield from ((passage, record.where) for passage in read(record))
            except Malformed as error:
                on_problem(Problem(record.where, str(error)))

    return passages


def _contexts(benchmark: Benchmark) -> _Read:
    def passages(records: Iterable[Record | Problem], on_problem: Callable[[Problem], None]) -> _Placed:
        for question in benchmark.read(records, on_problem):
            yield from ((passage, question.where) for passage in question.pool or ())

    return passages


_TAG = re.compile(r"</?[A-Za-z][^>\s]*>")


def _nq(record: Record) -> Iterator[Passage]:
    """The windows of a document: original and simplified Natural Questions, and the hub's columns."""
    source = Record(record.fields["document"], record.where, "document") if record.has("document") else record
    if source.has("document_text"):
        words = [word for word in source.text("document_text").split() if not _TAG.fullmatch(word)]
    else:
        tokens = source.rows("document_tokens" if source.has("document_tokens") else "tokens")
        words = [
            token.text("token") for token in tokens if not token.get("html_token", "is_html", kind=bool, default=False)
        ]
    title = source.text("document_title", "title", default="")
    return windows(Passage.of(title or title_in_url(source.text("document_url", "url", default="")), " ".join(words)))
