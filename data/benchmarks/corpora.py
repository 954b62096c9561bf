"""Corpora that come with benchmarks, as streams of passages.

A passage has the same id here, among a question's contexts and in an index, because the id is made of title and text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ..errors import DatasetError, Problem
from ..passages import Passage
from .benchmark import Benchmark
from .files import read_records
from .load import Report, read_questions
from .record import Malformed, Record
from .registry import recognise

NQ_WINDOW = 256  # words

_Placed = tuple[Passage, str]  # a passage and where it was read
_Read = Callable[[Iterable[Record | Problem], Report], Iterator[_Placed]]


def benchmark_passages(
    path: Path, *, strict: bool = False, on_problem: Callable[[Problem], None] = lambda problem: None
) -> Iterator[_Placed]:
    """The passages of a file that belongs to a benchmark, each once, with its place (``"corpus.json:record 17"``).

    Reads corpora (HippoRAG's lists of ``{title, text, idx}``, the articles of MultiHop-RAG, Natural Questions with
    documents, whose text is cut into windows of 256 words) and questions with contexts, whose union is the corpus
    (HotpotQA, 2WikiMultihopQA, MuSiQue, SQuAD, one's own).

    Raises:
        DatasetError: the file does not exist or is none of these; at once. While iterating: it is damaged, or
            (``strict``) has a bad record.
    """
    read, records = _opened(path)
    if read is None:
        raise DatasetError(f"{path} is no corpus of a benchmark, and holds no questions with contexts.")
    return _distinct(read(records, Report(strict, on_problem)))


def holds_passages(path: Path) -> bool:
    """Whether `benchmark_passages` can read this file, judged by its first record.

    Raises:
        DatasetError: there is no such file, it is damaged, or it is not JSON.
    """
    return _opened(path)[0] is not None


def pooled_passages(examples: Iterable[Any]) -> Iterator[Passage]:
    """The union of the questions' own contexts, each passage once; only ids are kept in memory.

    Raises:
        DatasetError: a question has no contexts.
    """
    return (passage for passage, _ in _distinct(_contexts(examples)))


def windows(passage: Passage, words: int = NQ_WINDOW) -> Iterator[Passage]:
    """Cut a passage into pieces of ``words`` words, the last perhaps shorter, whatever sentences they break.

    The pieces have the passage's title, single blanks between words, and ids made of title and text.

    Raises:
        ValueError: ``words`` is not positive.
    """
    if words < 1:
        raise ValueError(f"words must be positive, got {words}")
    split = passage.text.split()
    return (Passage.of(passage.title, " ".join(split[at : at + words])) for at in range(0, len(split), words))


# --- which format ----------------------------------------------------------------------------------------------------


def _opened(path: Path) -> tuple[_Read | None, Iterator[Record | Problem]]:
    """How to read the file, if it can be, and all its records."""
    records = read_records(path)
    looked_at: list[Record | Problem] = []
    read = None
    for record in records:
        looked_at.append(record)
        if isinstance(record, Record):
            read = _reader(record)
            break
    return read, chain(looked_at, records)


def _reader(first: Record) -> _Read | None:
    for field, read in (("document_text", _nq), ("document_tokens", _nq), ("document", _nq), ("body", _article)):
        if first.has(field):
            return partial(_each, read)
    for benchmark in recognise(first):
        if benchmark.has_contexts and first.has("context", "paragraphs", "data", "passages"):
            return partial(_pooled, benchmark)
    return partial(_each, _passage) if first.has("text") or first.has("sentences") else None


def _each(
    read: Callable[[Record], Iterator[Passage]], records: Iterable[Record | Problem], report: Report
) -> Iterator[_Placed]:
    for record in records:
        try:
            if isinstance(record, Problem):
                report(record)
            else:
                yield from ((passage, record.where) for passage in read(record))
        except Malformed as error:
            report(Problem(record.where, str(error)))


def _pooled(benchmark: Benchmark, records: Iterable[Record | Problem], report: Report) -> Iterator[_Placed]:
    return _contexts(read_questions(benchmark, records, report))


def _contexts(questions: Iterable[Any]) -> Iterator[_Placed]:
    for question in questions:
        if question.pool is None:
            raise DatasetError(f"The question {question.id!r} has no contexts that could be pooled.")
        for passage in question.pool:
            yield passage, question.where


def _distinct(passages: Iterable[_Placed]) -> Iterator[_Placed]:
    seen: set[str] = set()
    for passage, where in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage, where


# --- what a record holds ---------------------------------------------------------------------------------------------


def _passage(record: Record) -> Iterator[Passage]:
    title, id = record.maybe_text("title") or "", record.maybe_id("id", "_id")
    if record.has("sentences"):
        yield Passage.of(title, sentences=record.texts("sentences"), id=id)
    else:
        yield Passage.of(title, record.text("text"), id=id)


def _article(record: Record) -> Iterator[Passage]:
    yield Passage.of(record.text("title"), record.text("body"))


def _nq(record: Record) -> Iterator[Passage]:
    """The windows of a document: original and simplified Natural Questions, and the hub's columns."""
    source = record.within("document") if record.has("document") else record
    title = source.maybe_text("document_title", "title") or _title_in(source.maybe_text("document_url", "url") or "")
    return windows(Passage.of(title, " ".join(_tokens(source))))


_TAG = re.compile(r"</?[A-Za-z][^>\s]*>")


def _tokens(source: Record) -> Iterator[str]:
    """The tokens of the text, without those of HTML."""
    if source.has("document_text"):
        return (token for token in source.text("document_text").split() if not _TAG.fullmatch(token))
    tokens = source.rows("document_tokens") or source.rows("tokens")
    if not tokens:
        raise source.error("document_tokens", "is missing or empty")
    return (row.text("token") for row in tokens if not row.flag("html_token", row.flag("is_html", default=False)))


def _title_in(url: str) -> str:
    """The title in a Wikipedia URL: ``.../index.php?title=Walter_Scott&oldid=1`` or ``.../wiki/Walter_Scott``."""
    parts = urlsplit(url)
    named = parse_qs(parts.query).get("title") or [unquote(parts.path.rpartition("/")[2])]
    return named[0].replace("_", " ")
