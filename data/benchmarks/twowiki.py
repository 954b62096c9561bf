"""2WikiMultihopQA (Ho et al. 2020, arXiv 2011.01060): two or four hops, gold sentences and reasoning triples.

Reads the original layout (ten contexts), the hub's columns, and the open set that HippoRAG and its successors report
on, whose questions have no contexts and name their gold passages in ``supporting_titles``. Titles are unique in all of
them.
"""

from __future__ import annotations

from ..passages import Passage
from .benchmark import Benchmark, one_each
from .hotpotqa import read_contexts, read_supporting_facts, titled
from .question import GoldFact, Question, by_title, distinct
from .record import Record


def _read(record: Record) -> Question:
    pool = read_contexts(record) if record.has("context") else None
    gold = _read_gold(record, pool or ())
    return Question(
        id=record.id("_id", "id"),
        question=record.text("question"),
        answers=distinct(record.text("answer"), *record.texts("answer_aliases")),
        gold=gold,
        pool=pool,
        hops=len({fact.title for fact in gold}),
        kind=record.maybe_text("type"),
        evidences=_read_triples(record, "evidences"),
        evidences_id=_read_triples(record, "evidences_id"),
        answer_id=record.maybe_text("answer_id"),
    )


def _read_gold(record: Record, pool: tuple[Passage, ...]) -> tuple[GoldFact, ...]:
    if record.has("supporting_facts") or not record.has("supporting_titles"):
        return read_supporting_facts(record, by_title(pool))
    titles = record.texts("supporting_titles")
    return tuple(titled(title, None, by_title(pool)) for title in dict.fromkeys(titles))


def _read_triples(record: Record, name: str) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (row.text("subject", "fact"), row.text("relation"), row.text("object", "entity"))
        for row in record.rows(name, "subject", "relation", "object")
    )


def _recognises(record: Record) -> bool:
    return record.has("supporting_titles") or (
        record.has("context") and record.has("supporting_facts") and not record.has("level")
    )


TWOWIKI = Benchmark(
    name="2wiki",
    title="2WikiMultihopQA",
    aliases=("2wikimultihopqa", "2wikimultihop", "wikimultihop"),
    hub="framolfese/2WikiMultihopQA",
    recognises=_recognises,
    read=one_each(_read),
)
