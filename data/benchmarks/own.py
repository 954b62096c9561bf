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

Only the question and an answer are required. In a table, or in one text in place of a list, semicolons separate the
items of ``gold`` and of ``answers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, StrictInt, TypeAdapter, ValidationError, field_validator

from ..errors import DatasetError, first_error
from ..passages import Passage
from ..text import clean, ends_path, title_key
from .question import GoldFact, QuestionRecord, distinct, question_id
from .records import (
    AnyText,
    BenchmarkQuestion,
    Id,
    Malformed,
    PassageRecord,
    Record,
    RecordModel,
    Text,
    json_kind,
    register,
    table,
)

_UNKNOWN = "unknown"
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}  # in tables


@dataclass(frozen=True)
class NamedFact(GoldFact):
    """A gold fact as a person names it: ``title`` is a title, an id, or the name of a file."""

    def matches(self, passage: Passage) -> bool:
        """Whether the passage has that name, in any spelling, and the quoted words, if any."""
        return self._names(passage) and (self.text is None or super().matches(passage))

    def _names(self, passage: Passage) -> bool:
        name = self.title.strip()
        if passage.title == name or ((key := title_key(name)) and title_key(passage.title) == key):
            return True
        return ends_path(passage.document, name) or self._is_own(passage)

    def _is_own(self, passage: Passage) -> bool:
        return ends_path(passage.id, self.title)


class _Gold(RecordModel):
    title: Id = Field(validation_alias=AliasChoices("title", "id"))
    sentence: StrictInt | None = None
    text: AnyText | None = None

    @field_validator("sentence")
    @classmethod
    def _from_zero(cls, value: int | None) -> int | None:
        if value is not None and value < 0:
            raise ValueError("is counted from 0")
        return value


def _split(value: Any) -> Any:
    return [item.strip() for item in value.split(";") if item.strip()] if isinstance(value, str) else value


def _items(value: Any) -> list[Any]:
    """A value or a list of values; numbers become texts."""
    return [_item(item, f"[{n}] ") for n, item in enumerate(value)] if isinstance(value, list) else [_item(value, "")]


def _item(value: Any, place: str) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if not isinstance(value, Mapping):
        raise ValueError(f"{place}cannot be {json_kind(value)}")
    return value


def _named(value: Any) -> Any:
    return [{"title": item} if isinstance(item, str) else item for item in value]


def _texts(value: list[Any]) -> list[Any]:
    if not all(isinstance(item, str) for item in value):
        raise ValueError("must be a text, a number, or a list of them")
    return value


def _flag(value: Any) -> Any:
    value = _FLAGS.get(value.strip().casefold(), value) if isinstance(value, str) else value
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _hops(value: Any) -> Any:
    value = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a positive integer")
    return value


# The last validator runs first.
Answers = Annotated[list[str], BeforeValidator(_texts), BeforeValidator(_items)]
Gold = Annotated[list[_Gold], BeforeValidator(_named), BeforeValidator(_items), BeforeValidator(_split)]


def named_facts(gold: object) -> tuple[NamedFact, ...]:
    """The facts that a value of ``gold`` names, without repetitions.

    Raises:
        DatasetError: it is no such value.
    """
    try:
        found = TypeAdapter(Gold).validate_python(list(gold) if isinstance(gold, tuple) else gold)
    except ValidationError as error:
        raise DatasetError(f"gold: {first_error(error)}") from None
    return tuple(dict.fromkeys(NamedFact(fact.title, fact.sentence, text=fact.text) for fact in found))


@register("own", "own questions", aliases=("custom",))
class OwnQuestion(BenchmarkQuestion):
    """A question of the user's own; the module describes its fields."""

    id: Id | None = Field(default=None, validation_alias=AliasChoices("id", "_id"))
    question: Text
    answer: Answers = Field(default=[])
    answers: Annotated[Answers, BeforeValidator(_split)] = Field(default=[])
    answerable: Annotated[bool, BeforeValidator(_flag)] = True
    gold: Gold = Field(default=[])
    passages: Annotated[list[PassageRecord], table()] = Field(default=[])
    hops: Annotated[int | None, BeforeValidator(_hops)] = None
    type: AnyText | None = None

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("question")

    def to_question(self) -> QuestionRecord:
        answers = distinct(*self.answer, *self.answers) or (() if self.answerable else (_UNKNOWN,))
        if not answers:
            raise Malformed('answer is missing; if the passages do not contain it, set "answerable": false')
        pool = tuple(_passages(self.passages)) or None
        gold = tuple(dict.fromkeys(NamedFact(fact.title, fact.sentence, text=fact.text) for fact in self.gold))
        for fact in gold if pool else ():
            if not any(fact.matches(passage) for passage in pool or ()):
                raise Malformed(f"gold names {fact.title!r}, which is none of the passages")
        return QuestionRecord(
            id=self.id or question_id(self.question),
            question=self.question,
            answers=answers,
            gold=gold,
            pool=pool,
            hops=self.hops or len({fact.title for fact in gold}) or None,
            kind=self.type,
            answerable=self.answerable,
        )


def _passages(records: list[PassageRecord]) -> list[Passage]:
    passages = []
    for number, record in enumerate(records):
        try:
            passages.append(record.to_passage())
        except Malformed as error:
            raise Malformed(f"passages[{number}].{error}") from None
    return passages
