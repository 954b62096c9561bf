"""Corpora of benchmarks, as streams of passages.

Ids are hashes of title and text, so a passage has the same id in a question's contexts and in an index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import AliasChoices, Field, StrictBool

from ..errors import DatasetError, Problem
from ..passages import Passage
from .files import read_records
from .load import ProblemReport, read_questions
from .records import AnyText, Benchmark, Malformed, PassageRecord, Record, RecordModel, Text, recognize, table

NQ_WINDOW = 256  # words

_Placed = tuple[Passage, str]  # with its place
_Read = Callable[[Iterable[Record | Problem], ProblemReport], Iterator[_Placed]]


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
    return _distinct(read(records, ProblemReport(strict, on_problem)))


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


# --- which format ----------------------------------------------------------------------------------------------------


def _opened(path: Path) -> tuple[_Read | None, Iterator[Record | Problem]]:
    """The reader for the file, if any, and all its records."""
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
    if first.has("document_text", "document_tokens", "document"):
        return partial(_each, _nq)
    if first.has("body"):
        return _whole(_Article)
    for benchmark in recognize(first):
        if benchmark.has_contexts and first.has("context", "paragraphs", "data", "passages"):
            return partial(_pooled, benchmark)
    return _whole(PassageRecord) if first.has("text") or first.has("sentences") else None


def _whole(model: type[PassageRecord | _Article]) -> _Read:
    return partial(_each, lambda record: iter([record.parse(model).to_passage()]))


def _each(
    read: Callable[[Record], Iterator[Passage]], records: Iterable[Record | Problem], report: ProblemReport
) -> Iterator[_Placed]:
    for record in records:
        try:
            if isinstance(record, Problem):
                report(record)
            else:
                yield from ((passage, record.where) for passage in read(record))
        except Malformed as error:
            report(Problem(record.where, str(error)))


def _pooled(benchmark: Benchmark, records: Iterable[Record | Problem], report: ProblemReport) -> Iterator[_Placed]:
    return _contexts(read_questions(benchmark, records, report))


def _contexts(questions: Iterable[Any]) -> Iterator[_Placed]:
    for question in questions:
        if question.pool is None:
            raise DatasetError(f"The question {question.id!r} has no contexts to pool.")
        for passage in question.pool:
            yield passage, question.where


def _distinct(passages: Iterable[_Placed]) -> Iterator[_Placed]:
    seen: set[str] = set()
    for passage, where in passages:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage, where


# --- what a record holds ---------------------------------------------------------------------------------------------


class _Article(RecordModel):
    title: Text
    body: Text

    def to_passage(self) -> Passage:
        return Passage.of(self.title, self.body)


class _Token(RecordModel):
    token: Text
    html: StrictBool = Field(default=False, validation_alias=AliasChoices("html_token", "is_html"))


class _Document(RecordModel):
    title: AnyText = Field(default="", validation_alias=AliasChoices("document_title", "title"))
    url: AnyText = Field(default="", validation_alias=AliasChoices("document_url", "url"))
    text: Text | None = Field(default=None, validation_alias="document_text")
    tokens: Annotated[list[_Token], table()] = Field(
        default=[], validation_alias=AliasChoices("document_tokens", "tokens")
    )


def _nq(record: Record) -> Iterator[Passage]:
    """The windows of a document: original and simplified Natural Questions, and the hub's columns."""
    source = Record(record.fields["document"], record.where, "document") if record.has("document") else record
    document = source.parse(_Document)
    if document.text is not None:
        tokens = [token for token in document.text.split() if not _TAG.fullmatch(token)]
    elif document.tokens:
        tokens = [token.token for token in document.tokens if not token.html]
    else:
        raise Malformed("document_tokens is missing or empty")
    return windows(Passage.of(document.title or title_in_url(document.url), " ".join(tokens)))


_TAG = re.compile(r"</?[A-Za-z][^>\s]*>")


def title_in_url(url: str) -> str:
    """The title in a Wikipedia URL: ``.../index.php?title=Walter_Scott&oldid=1`` or ``.../wiki/Walter_Scott``."""
    parts = urlsplit(url)
    named = parse_qs(parts.query).get("title") or [unquote(parts.path.rpartition("/")[2])]
    return named[0].replace("_", " ")
