"""HotpotQA (Yang et al. 2018, arXiv 1809.09600): two-hop questions with ten paragraphs and gold sentences.

Reads the original layout of train, dev-distractor and dev-fullwiki (there the contexts are a retriever's and may lack
the gold paragraphs), and the hub's columns. The official metrics compare (title, sentence) pairs, titles
case-sensitively.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..passages import Passage
from .benchmark import Benchmark, one_each
from .question import GoldFact, Question, by_title, distinct
from .record import Record


def _read(record: Record) -> Question:
    pool = read_contexts(record)
    gold = read_supporting_facts(record, by_title(pool))
    return Question(
        id=record.id("_id", "id"),
        question=record.text("question"),
        answers=distinct(record.text("answer")),
        gold=gold,
        pool=pool,
        hops=len({fact.title for fact in gold}),
        kind=record.maybe_text("type"),
        level=record.maybe_text("level"),
    )


def read_contexts(record: Record) -> tuple[Passage, ...]:
    """``context``: [title, sentences] pairs; the same in 2WikiMultihopQA."""
    rows = record.rows("context", "title", "sentences")
    if not rows:
        raise record.error("context", "is missing or empty")
    return tuple(_passage(row) for row in rows)


def _passage(row: Record) -> Passage:
    if not row.has("sentences", "content"):
        raise row.error("sentences", "is missing")
    return Passage.of(row.text("title"), sentences=row.texts("sentences", "content"))


def read_supporting_facts(record: Record, known: Mapping[str, Passage]) -> tuple[GoldFact, ...]:
    """``supporting_facts``: [title, sentence] pairs, each once, with the ids of passages that are known by title."""
    rows = record.rows("supporting_facts", "title", "sent_id")
    if not rows:
        raise record.error("supporting_facts", "is missing or empty")
    addresses = [(row.text("title"), row.integer("sent_id")) for row in rows]
    return tuple(titled(title, sentence, known) for title, sentence in dict.fromkeys(addresses))


def titled(title: str, sentence: int | None, known: Mapping[str, Passage]) -> GoldFact:
    """A fact in a benchmark whose titles are unique."""
    passage = known.get(title.strip())
    return GoldFact(title, sentence, passage.id if passage else None, unique_title=True)


HOTPOTQA = Benchmark(
    name="hotpotqa",
    title="HotpotQA",
    aliases=("hotpot",),
    hub="hotpotqa/hotpot_qa:distractor",
    recognises=lambda record: record.has("context") and record.has("supporting_facts") and not record.has("evidences"),
    read=one_each(_read),
)
