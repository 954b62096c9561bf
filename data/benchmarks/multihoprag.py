"""MultiHop-RAG (Tang and Yang 2024, arXiv 2401.15391): questions over news articles, with quoted facts.

The questions have no contexts: the 609 articles are a corpus (`corpora.benchmark_passages`). The official retrieval
metric looks for the quoted facts in what was retrieved and leaves out the null queries, which no article answers.
"""

from __future__ import annotations

from .benchmark import Benchmark, one_each
from .question import GoldFact, Question, distinct, question_id
from .record import Record

NULL_QUERY = "null_query"


def _read(record: Record) -> Question:
    question = record.text("query", "question")
    kind = record.text("question_type")
    evidence = record.rows("evidence_list")
    if not evidence and kind != NULL_QUERY:
        raise record.error("evidence_list", f"is missing or empty, and this is no {NULL_QUERY}")
    gold = tuple(GoldFact(row.text("title"), text=row.text("fact")) for row in evidence)
    return Question(
        id=record.maybe_id("id", "_id") or question_id(question),
        question=question,
        answers=distinct(record.text("answer")),
        gold=tuple(dict.fromkeys(gold)),
        hops=len({fact.title for fact in gold}) or None,
        kind=kind,
        answerable=kind != NULL_QUERY,
    )


MULTIHOPRAG = Benchmark(
    name="multihoprag",
    title="MultiHop-RAG",
    aliases=("multihop-rag",),
    hub="yixuantt/MultiHopRAG:MultiHopRAG",
    split="train",
    recognises=lambda record: record.has("evidence_list") or record.has("query"),
    read=one_each(_read),
    has_contexts=False,
)
