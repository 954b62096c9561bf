"""MuSiQue (Trivedi et al. 2022, arXiv 2108.00573): two to four hops, twenty paragraphs and a decomposition a question.

Reads MuSiQue-Ans and MuSiQue-Full: the official JSON Lines and the hub's copy. The official support metric compares the
``idx`` of paragraphs. Titles repeat, so that a passage is identified by title and text. In MuSiQue-Full an answerable
and an unanswerable question share an id: here the unanswerable one has a suffix, and both keep the shared id as
``official_id``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..passages import Passage
from ..sample import SubQuestion
from .benchmark import Benchmark, one_each
from .question import GoldFact, Question, distinct
from .record import Record

UNANSWERABLE = "/unanswerable"


def _read(record: Record) -> Question:
    id = record.id("id")
    answerable = record.flag("answerable", default=True)
    rows = record.rows("paragraphs")
    passages = {row.integer("idx"): _passage(row) for row in rows}
    if not rows or len(passages) < len(rows):
        raise record.error("paragraphs", "has the same idx twice" if rows else "is missing or empty")
    supporting = [row.integer("idx") for row in rows if row.flag("is_supporting", default=False)]
    return Question(
        id=id if answerable else id + UNANSWERABLE,
        question=record.text("question"),
        answers=distinct(record.text("answer"), *record.texts("answer_aliases")),
        gold=tuple(dict.fromkeys(GoldFact(passages[idx].title, passage_id=passages[idx].id) for idx in supporting)),
        pool=tuple(passages.values()),
        hops=int(id[0]) if "1" <= id[0] <= "9" else None,
        kind=id.partition("__")[0],
        answerable=answerable,
        official_id=id,
        sub_questions=tuple(_sub_question(row, passages) for row in record.rows("question_decomposition")),
        # Of a paragraph that is given twice, the idx that supports.
        paragraph_idx={passages[idx].id: idx for idx in (*passages, *supporting)},
    )


def _passage(row: Record) -> Passage:
    return Passage.of(row.text("title", blank=True), row.text("paragraph_text", "text", blank=True))


def _sub_question(row: Record, passages: Mapping[int, Passage]) -> SubQuestion:
    passage = passages.get(row.integer("paragraph_support_idx")) if row.has("paragraph_support_idx") else None
    return SubQuestion(row.text("question"), row.text("answer", blank=True), passage.id if passage else None)


MUSIQUE = Benchmark(
    name="musique",
    title="MuSiQue",
    aliases=("musique-ans", "musique-full"),
    hub="dgslibisey/MuSiQue",
    recognises=lambda record: record.has("paragraphs") and record.has("question"),
    read=one_each(_read),
)
