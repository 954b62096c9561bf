"""Corpora of benchmarks, as streams of passages.

Ids are hashes of title and text, so a passage has the same id in a question's contexts and in an index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from ..errors import DatasetError, Problem
from ..passages import Passage
from .files import read_records
from .formats import title_in_url
from .load import ProblemReport, read_questions
from .own import written_passage
from .question import QuestionRecord
from .rows import Benchmark, Malformed, Record, recognize

NQ_WINDOW = 256  # words

_Placed = tuple[Passage, str]  # with its place
_Read = Callable[[Record], Iterable[Passage]]


def benchmark_passages(
    path: Path, *, strict: bool = False, on_problem: Callable[[Problem], None] = lambda problem: None
) -> Iterator[_Placed]:
    """The passages of a file that belongs to a benchmark, each once, with its place (``"corpus.json:record 17"``).

    Reads corpora (HippoRAG's lists of ``{title, text, idx}``, the articles of MultiHop-RAG, Natural Questions with
    documents, in windows of 256 words) and the union of questions' contexts (HotpotQA, 2WikiMultihopQA, MuSiQue, SQuAD,
    own questions).
    """
    read, records = _opened(path)
    if read is None:
        raise DatasetError(f"{path} is not a benchmark's corpus and has no questions with contexts.")
    report = ProblemReport(strict, on_problem)
    return _distinct(
        _contexts(read_questions(read, records, report))
        if isinstance(read, Benchmark)
        else _each(read, records, report)
    )


def holds_passages(path: Path) -> bool:
    """Whether `benchmark_passages` can read this file, judged by its first record."""
    return _opened(path)[0] is not None


def windows(passage: Passage, words: int = NQ_WINDOW) -> Iterator[Passage]:
    """Cut a passage into pieces of ``words`` words, ignoring sentences; the last may be shorter.

    The pieces have the passage's title, single spaces between words, and their own ids.
    """
    if words < 1:
        raise ValueError(f"words must be positive, got {words}")
    split = passage.text.split()
    return (Passage.of(passage.title, " ".join(split[at : at + words])) for at in range(0, len(split), words))


def _opened(path: Path) -> tuple[Benchmark | _Read | None, Iterator[Record | Problem]]:
    """What reads the file, if anything, and all its records."""
    records, looked_at = read_records(path), list[Record | Problem]()
    for record in records:
        looked_at.append(record)
        if isinstance(record, Record):
            return _reader(record), chain(looked_at, records)
    return None, chain(looked_at, records)


def _reader(first: Record) -> Benchmark | _Read | None:
    if first.has("document_text", "document_tokens", "document"):
        return _nq
    if first.has("body"):
        return lambda record: [Passage.of(record.text("title"), record.text("body"))]
    for benchmark in recognize(first):
        if benchmark.has_contexts and first.has("context", "paragraphs", "data", "passages"):
            return benchmark
    return (lambda record: [written_passage(record)]) if first.has("text", "sentences") else None


def _each(read: _Read, records: Iterable[Record | Problem], report: ProblemReport) -> Iterator[_Placed]:
    for record in records:
        try:
            if isinstance(record, Problem):
                report(record)
            else:
                yield from ((passage, record.where) for passage in read(record))
        except Malformed as error:
            report(Problem(record.where, str(error)))


def _contexts(questions: Iterable[QuestionRecord]) -> Iterator[_Placed]:
    for question in questions:
        if question.pool is None:
            raise DatasetError(f"The question {question.id!r} has no contexts to pool.")
        yield from ((passage, question.where) for passage in question.pool)


def _distinct(passages: Iterable[_Placed]) -> Iterator[_Placed]:
    seen: set[str] = set()
    for passage, where in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage, where


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
