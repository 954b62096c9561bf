"""TriviaQA (Joshi et al. 2017, arXiv 1705.03551): trivia questions with many aliases an answer, used without passages.

Reads the original document (``Data``), the hub's columns, and lines of ``{id, question, golden_answers}``. The official
script compares with the normalised aliases only; they are among the answers, behind the main answer and the aliases as
written.
"""

from __future__ import annotations

from collections.abc import Mapping

from .benchmark import Benchmark, one_each
from .question import Question, distinct
from .record import Record


def _read(record: Record) -> Question:
    answers = _read_answers(record)
    if not answers:
        raise record.error("golden_answers", "is empty")
    return Question(
        id=record.id("id", "question_id", "QuestionId"),
        question=record.text("question", "Question"),
        answers=answers,
        hops=1,
    )


def _read_answers(record: Record) -> tuple[str, ...]:
    if record.has("golden_answers"):
        return distinct(*record.texts("golden_answers"))
    if not record.has("answer", "Answer"):
        raise record.error("answer", "is missing")
    answer = record.within("answer", "Answer")
    return distinct(
        answer.text("value", "Value"),
        *answer.texts("aliases", "Aliases"),
        *answer.texts("HumanAnswers"),
        *answer.texts("normalized_aliases", "NormalizedAliases"),
    )


TRIVIAQA = Benchmark(
    name="triviaqa",
    title="TriviaQA",
    aliases=("trivia", "trivia-qa"),
    hub="mandarjoshi/trivia_qa:rc.nocontext",
    recognises=lambda record: (
        record.has("Data", "Answer") or record.holds("golden_answers", list) or record.holds("answer", Mapping)
    ),
    read=one_each(_read, document="Data"),
    has_contexts=False,
)
