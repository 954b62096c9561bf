"""SQuAD v1.1 (Rajpurkar et al. 2016, arXiv 1606.05250): questions about single paragraphs of Wikipedia articles.

Reads the original document of articles and the hub's flat rows. A question's contexts are the paragraphs of its
article; flat rows are taken for one article as long as the title stays the same, so shuffled rows have smaller pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from ..errors import Problem
from ..passages import Passage
from .benchmark import Benchmark, attempt, descend
from .question import GoldFact, Question, distinct
from .record import Malformed, Record


class _Row(NamedTuple):
    article: str
    paragraph: Passage
    asked: Record


def _read(records: Iterable[Record]) -> Iterator[Question | Problem]:
    article: list[_Row] = []
    for row in (row for record in records for row in _rows(record)):
        if isinstance(row, Problem):
            yield row
            continue
        if article and row.article != article[0].article:
            yield from _read_article(article)
            article = []
        article.append(row)
    yield from _read_article(article)


def _rows(record: Record) -> Iterator[_Row | Problem]:
    """The questions of a document, or the one of a flat row, each with its paragraph."""
    if record.has("data"):
        return descend(record, "data", _article_rows)
    return _row(record, record, record)


def _article_rows(article: Record) -> Iterator[_Row | Problem]:
    return descend(article, "paragraphs", lambda paragraph: _paragraph_rows(article, paragraph))


def _paragraph_rows(article: Record, paragraph: Record) -> Iterator[_Row | Problem]:
    return descend(paragraph, "qas", lambda asked: _row(article, paragraph, asked))


def _row(article: Record, paragraph: Record, asked: Record) -> Iterator[_Row | Problem]:
    try:
        title = article.text("title")
        passage = Passage.of(title.replace("_", " "), paragraph.text("context"))
    except Malformed as error:
        yield Problem(asked.where, str(error))
    else:
        yield _Row(title, passage, asked)


def _read_article(rows: list[_Row]) -> Iterator[Question | Problem]:
    pool = tuple({row.paragraph.id: row.paragraph for row in rows}.values())
    for row in rows:
        yield attempt(partial(_read_question, row, pool), row.asked)


def _read_question(row: _Row, pool: tuple[Passage, ...], asked: Record) -> Question:
    answers = distinct(*(answer.text("text") for answer in asked.rows("answers")))
    if not answers:
        raise asked.error("answers", "is missing or empty")
    return Question(
        id=asked.id("id"),
        question=asked.text("question"),
        answers=answers,
        gold=(GoldFact(row.article, passage_id=row.paragraph.id),),
        pool=pool,
        hops=1,
        article=row.article,
    )


SQUAD = Benchmark(
    name="squad",
    title="SQuAD",
    aliases=("squad-v1.1", "squad1.1", "squad-1.1"),
    hub="rajpurkar/squad",
    recognises=lambda record: record.has("data") or (record.holds("context", str) and record.has("answers")),
    read=_read,
)
