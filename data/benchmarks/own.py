"""Questions of one's own over documents of one's own: JSON Lines, a JSON list, or a table (CSV, TSV) with a header.

    {"question": "Where does the owner of Kestrel Mill live?", "answer": "Tarn", "gold": ["Kestrel Mill", "berg.md"]}

============  =========================================================================================================
question      What is asked.
answer        What is right: a text or a number, or a list of them where several are right. Or ``answers``.
answerable    false where the right answer is that the passages do not tell; it needs no answer then.
gold          The passages that the answer needs, each by its title, its id or the name of its file; or
              ``{"title": ..., "sentence": 0}`` with a sentence counted from 0, or ``{"title": ..., "text": ...}`` with
              words of the passage that is meant, where several have the title.
passages      The question's own passages, ``{"title": ..., "text": ...}`` or with ``sentences``, if it has some.
id            By default a hash of the question.
hops          How many passages the answer needs; by default as many as are gold.
type          A kind of question, for results by kind.
============  =========================================================================================================

Only the question and an answer are needed. In a table, or wherever one text stands for a list, semicolons set the items
of ``gold`` and of ``answers`` apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..passages import Passage
from ..text import title_key
from .benchmark import Benchmark, one_each
from .question import GoldFact, Question, distinct, question_id
from .record import Record

_UNTOLD = "unknown"
_PIECE = re.compile(r"#\d+$")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}  # in tables


@dataclass(frozen=True)
class NamedFact(GoldFact):
    """What the answer stands on, as a person names it: ``title`` is a title, an id, or the name of a file."""

    def matches(self, passage: Passage) -> bool:
        """Whether the passage has that name, however it is written, and the quoted words, if there are any."""
        return self._names(passage) and (self.text is None or super().matches(passage))

    def _names(self, passage: Passage) -> bool:
        name = self.title.strip()
        if passage.title == name or ((key := title_key(name)) and title_key(passage.title) == key):
            return True
        return any(f"/{id}".endswith(f"/{name}") for id in (passage.id, _PIECE.sub("", passage.id)))


def _read(record: Record) -> Question:
    question = record.text("question")
    pool = tuple(map(_read_passage, record.rows("passages"))) or None
    gold = tuple(dict.fromkeys(_read_fact(record, item) for item in record.items("gold", separator=";")))
    for fact in gold if pool else ():
        if not any(fact.matches(passage) for passage in pool or ()):
            raise record.error("gold", f"names {fact.title!r}, which none of the passages is")
    return Question(
        id=record.maybe_id("id", "_id") or question_id(question),
        question=question,
        answers=_read_answers(record),
        gold=gold,
        pool=pool,
        hops=_read_hops(record) or len({fact.title for fact in gold}) or None,
        kind=record.maybe_text("type"),
        answerable=_is_answerable(record),
    )


def _read_answers(record: Record) -> tuple[str, ...]:
    items = [*record.items("answer"), *record.items("answers", separator=";")]
    if not all(isinstance(item, str) for item in items):
        raise record.error("answer", "must be a text, a number, or a list of them")
    answers = distinct(*map(str, items))
    if answers or not _is_answerable(record):
        return answers or (_UNTOLD,)
    raise record.error("answer", 'is missing; where the passages do not tell, say "answerable": false')


def _read_fact(record: Record, item: str | Record) -> NamedFact:
    if isinstance(item, str):
        if not item.strip():
            raise record.error("gold", "has an empty name")
        return NamedFact(item)
    sentence = item.integer("sentence") if item.has("sentence") else None
    if sentence is not None and sentence < 0:
        raise item.error("sentence", "is counted from 0")
    return NamedFact(item.id("title", "id"), sentence, text=item.maybe_text("text"))


def _read_passage(row: Record) -> Passage:
    title, id = row.maybe_text("title") or "", row.maybe_id("id", "_id")
    if row.has("sentences"):
        return Passage.of(title, sentences=row.texts("sentences"), id=id)
    return Passage.of(title, row.text("text"), id=id)


def _is_answerable(record: Record) -> bool:
    if not record.holds("answerable", str):
        return record.flag("answerable", default=True)
    written = record.text("answerable").strip().casefold()
    if written not in _FLAGS:
        raise record.error("answerable", "must be true or false")
    return _FLAGS[written]


def _read_hops(record: Record) -> int | None:
    if not record.has("hops"):
        return None
    written = record.text("hops").strip() if record.holds("hops", str) else str(record.integer("hops"))
    if not written.isdecimal() or int(written) < 1:
        raise record.error("hops", "must be a positive integer")
    return int(written)


OWN = Benchmark(
    name="own",
    title="own questions",
    aliases=("custom",),
    hub=None,
    recognises=lambda record: record.has("question"),
    read=one_each(_read),
)
