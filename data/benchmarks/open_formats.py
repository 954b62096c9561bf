"""The formats of five benchmarks over all of Wikipedia or the web, official and as on the Hugging Face hub."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, StrictBool, StrictInt

from ..passages import Passage
from .corpora import title_in_url
from .question import GoldFact, QuestionRecord, distinct, question_id
from .records import (
    AnyText,
    BenchmarkQuestion,
    Id,
    Malformed,
    NotEmpty,
    Record,
    RecordModel,
    Text,
    Texts,
    register,
    table,
)

SUPPORTED, NOT_SUPPORTED = "SUPPORTED", "NOT_SUPPORTED"
_VERDICTS = {SUPPORTED: ("yes", "true", "supported"), NOT_SUPPORTED: ("no", "false", "not supported")}


# --- HoVer -----------------------------------------------------------------------------------------------------------


class _Fact(RecordModel):
    title: Text = Field(validation_alias=AliasChoices("title", "key"))
    sentence: StrictInt = Field(validation_alias=AliasChoices("sentence", "value"))


def _label(value: Any) -> Any:
    """The hub has numbers."""
    return {0: NOT_SUPPORTED, 1: SUPPORTED}.get(value, value) if type(value) is int else value


def _known_label(value: str) -> str:
    if value not in _VERDICTS:
        raise ValueError(f"must be {SUPPORTED} or {NOT_SUPPORTED}")
    return value


@register("hover", "HoVer", hub="hover-nlp/hover", has_contexts=False)
class HoVer(BenchmarkQuestion):
    """Jiang et al. 2020, arXiv 2011.03088: claims over two to four Wikipedia pages, supported by them or not.

    The pages are the introductions of HotpotQA's corpus. The question is the claim; "yes", "true" and "supported" are
    one answer.
    """

    uid: Id
    claim: Text
    supporting_facts: Annotated[list[_Fact], table("title", "sentence"), NotEmpty]
    label: Annotated[Text, AfterValidator(_known_label), BeforeValidator(_label)]
    num_hops: StrictInt

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("claim") and record.has("supporting_facts")

    def to_question(self) -> QuestionRecord:
        facts = dict.fromkeys((fact.title, fact.sentence) for fact in self.supporting_facts)
        return QuestionRecord(
            id=self.uid,
            question=self.claim,
            answers=_VERDICTS[self.label],
            gold=tuple(GoldFact(title, sentence, unique_title=True) for title, sentence in facts),
            hops=self.num_hops,
            kind=self.label,
        )


# --- FRAMES ----------------------------------------------------------------------------------------------------------


def _written_list(value: Any) -> Any:
    """A list may be written as text, in JSON or Python."""
    if not isinstance(value, str):
        return value
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(value)
    raise ValueError("is a text, but not of a list")


@register("frames", "FRAMES", hub="google/frames-benchmark", has_contexts=False, split="test")
class Frames(BenchmarkQuestion):
    """Krishna et al. 2024, arXiv 2409.12941: questions over two to fifteen Wikipedia articles.

    The gold passages are the linked articles, by title. The authors let a language model judge the answers.
    """

    id: Id | None = None
    question: Text = Field(validation_alias=AliasChoices("Prompt", "prompt", "Question"))
    answer: Text = Field(validation_alias=AliasChoices("Answer", "answer"))
    wiki_links: Annotated[Texts, BeforeValidator(_written_list)]
    reasoning_types: AnyText | None = None

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("wiki_links")

    def to_question(self) -> QuestionRecord:
        titles = dict.fromkeys(title for link in self.wiki_links if (title := title_in_url(link.strip())))
        return QuestionRecord(
            id=self.id or question_id(self.question),
            question=self.question,
            answers=distinct(self.answer),
            gold=tuple(GoldFact(title, unique_title=True) for title in titles),
            hops=len(titles) or None,
            kind=self.reasoning_types,
        )


# --- Bamboogle -------------------------------------------------------------------------------------------------------


@register("bamboogle", "Bamboogle", hub="chiayewken/bamboogle", has_contexts=False, split="test")
class Bamboogle(BenchmarkQuestion):
    """Press et al. 2023, arXiv 2210.03350: 125 two-hop questions that a search engine answers wrongly; no passages."""

    id: Id | None = None
    question: Text = Field(validation_alias="Question")
    answer: Any = Field(validation_alias=AliasChoices("Answer", "answer"))

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        answer = record.fields.get("Answer", record.fields.get("answer"))
        return record.has("Question") and isinstance(answer, str | list) and not record.has("wiki_links")

    def to_question(self) -> QuestionRecord:
        given = [self.answer] if isinstance(self.answer, str) else self.answer
        if not isinstance(given, list) or not all(isinstance(text, str) for text in given) or not distinct(*given):
            raise Malformed("answer must be a text or a list of texts")
        return QuestionRecord(
            id=self.id or question_id(self.question), question=self.question, answers=distinct(*given), hops=2
        )


# --- PopQA -----------------------------------------------------------------------------------------------------------


class _Paragraph(RecordModel):
    title: AnyText
    text: AnyText
    is_supporting: StrictBool = False


@register("popqa", "PopQA", hub="akariasai/PopQA", split="test")
class PopQA(BenchmarkQuestion):
    """Mallen et al. 2023, arXiv 2212.10511: questions about entities of all degrees of popularity.

    The gold passage is the page of the subject. The official data has no passages; a copy with ``paragraphs`` has.
    """

    id: Id
    question: Text
    possible_answers: Annotated[Texts, BeforeValidator(_written_list), NotEmpty]
    s_wiki_title: AnyText = ""
    prop: AnyText | None = None
    paragraphs: Annotated[list[_Paragraph], table()] = Field(default=[])

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("possible_answers")

    def to_question(self) -> QuestionRecord:
        pool = tuple(
            {passage.id: passage for passage in (Passage.of(row.title, row.text) for row in self.paragraphs)}.values()
        )
        supporting = [Passage.of(row.title, row.text) for row in self.paragraphs if row.is_supporting]
        gold = [GoldFact(passage.title, passage_id=passage.id, unique_title=True) for passage in supporting]
        if not gold and self.s_wiki_title:
            gold = [GoldFact(self.s_wiki_title, unique_title=True)]
        return QuestionRecord(
            id=self.id,
            question=self.question,
            answers=distinct(*self.possible_answers),
            gold=tuple(dict.fromkeys(gold)),
            pool=pool or None,
            hops=1,
            kind=self.prop,
        )


# --- BrowseComp-Plus -------------------------------------------------------------------------------------------------


class _Document(RecordModel):
    docid: Id


@register(
    "browsecomp-plus",
    "BrowseComp-Plus",
    aliases=("browsecompplus",),
    hub="Tevatron/browsecomp-plus",
    has_contexts=False,
    split="test",
)
class BrowseCompPlus(BenchmarkQuestion):
    """Chen et al. 2025, arXiv 2508.06600: hard questions over 100,000 web documents. Decrypt them with its script.

    The gold passages are the evidence documents, by id. The authors let a language model judge the answers.
    """

    query_id: Id
    query: Text
    answer: Text
    evidence_docs: Annotated[list[_Document], table(), NotEmpty]

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("evidence_docs")

    def to_question(self) -> QuestionRecord:
        ids = dict.fromkeys(document.docid for document in self.evidence_docs)
        return QuestionRecord(
            id=self.query_id,
            question=self.query,
            answers=distinct(self.answer),
            gold=tuple(GoldFact(id, passage_id=id) for id in ids),
            hops=len(ids),
        )
