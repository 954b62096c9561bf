"""NQ-open (Lee et al. 2019, arXiv 1906.00300): Natural Questions with short answers and no passages."""

from __future__ import annotations

from .benchmark import Benchmark, one_each
from .question import Question, distinct, question_id
from .record import Record


def _read(record: Record) -> Question:
    question = record.text("question")
    answers = distinct(*record.texts("answer", "golden_answers", "answers"))
    if not answers:
        raise record.error("answer", "is missing or empty")
    return Question(
        id=record.maybe_id("id", "_id") or question_id(question),
        question=question,
        answers=answers,
        hops=1,
    )


NQ = Benchmark(
    name="nq",
    title="Natural Questions (open)",
    aliases=("nq-open", "natural-questions"),
    hub="google-research-datasets/nq_open",
    recognises=lambda record: (
        any(record.holds(name, list) for name in ("answer", "golden_answers"))
        or (record.holds("answers", list) and not record.has("context", "paragraphs"))
    ),
    read=one_each(_read),
    has_contexts=False,
)
