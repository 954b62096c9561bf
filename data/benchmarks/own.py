"""The user's own questions over their own documents: JSON Lines, a JSON list, or a table (CSV, TSV) with a header.

    {"question": "Where does the owner of Kestrel Mill live?", "answer": "Tarn", "gold": ["Kestrel Mill", "berg.md"]}

============  =========================================================================================================
question      The question.
answer        The right answer: a text or a number, or a list of alternatives. Or ``answers``.
answerable    false if the passages do not contain the answer; ``answer`` is optional then.
gold          The passages that the answer needs, each by title, id, file name or the end of its path (``"a/b.md"``
              for ``notes/a/b.md``); or ``{"title": ..., "sentence": 0}`` with a sentence counted from 0; or
              ``{"title": ..., "text": ...}`` with words of the passage, if several have the title.
passages      The question's own passages, if any: ``{"title": ..., "text": ...}`` or with ``sentences``.
id            By default a hash of the question.
hops          Number of passages that the answer needs; by default the number of gold passages.
type          A kind of question, for results by kind.
============  =========================================================================================================

Only the question and an answer are required; other fields are kept, for metrics and programs of the user's own. In a
table, or in one text in place of a list, semicolons separate the items of ``gold`` and of ``answers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..errors import DataError
from ..passages import Passage
from ..records import Malformed, Record
from ..text import clean, ends_path, title_key
from .question import GoldFact, QuestionRecord, distinct, question_id

_UNKNOWN = "unknown"
_FIELDS = (
    *("question", "answer", "answers", "answerable", "gold", "passages", "id", "_id", "hops", "type"),
    *(field.name for field in fields(QuestionRecord)),
)
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}  # in tables


@dataclass(frozen=True)
class NamedFact(GoldFact):
    """A gold fact as a person names it: ``title`` is a title, an id, or the name of a file."""

    def matches(self, passage: Passage) -> bool:
        """Whether the passage has that name, in any spelling, and the quoted words, if any."""
        name = self.title.strip()
        is_titled = passage.title == name or ((key := title_key(name)) and title_key(passage.title) == key)
        is_named = is_titled or ends_path(passage.document, name) or self._is_own(passage)
        return is_named and (self.text is None or super().matches(passage))

    def _is_own(self, passage: Passage) -> bool:
        return ends_path(passage.id, self.title)


def named_facts(gold: object) -> tuple[NamedFact, ...]:
    """The facts that a value of ``gold`` names, without repetitions.

    Raises:
        DataError: it is no such value.
    """
    try:
        return _gold(Record({"gold": list(gold) if isinstance(gold, tuple) else gold}, ""))
    except Malformed as error:
        raise DataError(f"gold: {error}") from None


def _gold(record: Record) -> tuple[NamedFact, ...]:
    facts = []
    for item in _items(record, "gold", split=True):
        fact = Record({"title": item} if isinstance(item, str) else item, record.where)
        sentence = fact.value("sentence", kind=int, default=None)
        if sentence is not None and sentence < 0:
            raise Malformed("a gold sentence is counted from 0")
        facts.append(NamedFact(fact.id("title", "id"), sentence, text=fact.text("text", default=None)))
    return tuple(dict.fromkeys(facts))


def _items(record: Record, name: str, split: bool = False) -> list[str | Mapping[str, Any]]:
    """A value or a list of values; numbers become texts."""
    value = record.get(name, [])
    if split and isinstance(value, str):
        value = [item.strip() for item in value.split(";") if item.strip()]
    items: list[str | Mapping[str, Any]] = []
    for item in value if isinstance(value, list) else [value]:
        if type(item) in (int, float):
            item = f"{item:.15g}" if isinstance(item, float) else str(item)
        if not isinstance(item, str | Mapping):
            raise Malformed(f"{name} must be a text, a number, or a list of them")
        items.append(clean(item) if isinstance(item, str) else item)
    return items


def own_question(record: Record) -> QuestionRecord:
    """A question of the user's own; the module describes its fields."""
    question, gold = record.text("question"), _gold(record)
    pool = tuple(row.passage() for row in record.rows("passages", default=[])) or None
    answerable = record.get("answerable", True)
    answerable = _FLAGS.get(answerable.strip().casefold()) if isinstance(answerable, str) else answerable
    answers = [*_items(record, "answer"), *_items(record, "answers", split=True)]
    hops = str(record.get("hops", len({fact.title for fact in gold}) or "")).strip()
    if not isinstance(answerable, bool):
        raise Malformed("answerable must be true or false")
    if not all(isinstance(answer, str) for answer in answers):
        raise Malformed("answer must be a text, a number, or a list of them")
    texts = distinct(*map(str, answers))
    if answerable and not texts:
        raise Malformed('answer is missing; if the passages do not contain it, set "answerable": false')
    for fact in gold if pool else ():
        if not any(map(fact.matches, pool or ())):
            raise Malformed(f"gold names {fact.title!r}, which is none of the passages")
    if hops and not (hops.isdecimal() and len(hops) < 5 and 1 <= int(hops) <= 1_000):
        raise Malformed("hops must be an integer from 1 to 1,000")
    return QuestionRecord(
        *(record.id("id", "_id", default=question_id(question)), question, texts or (_UNKNOWN,), gold, pool),
        hops=int(hops) if hops else None,
        kind=record.text("type", default=None),
        more={name: value for name, value in record.items() if name not in _FIELDS},
        answerable=answerable,
    )
