"""The formats of seven benchmarks, each in the official layout and in that of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, Field, StrictBool, StrictInt

from ..errors import Problem
from ..passages import Passage
from ..sample import SubQuestion
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

NULL_QUERY = "null_query"
UNANSWERABLE = "/unanswerable"


def _alias(*names: str) -> Any:
    return Field(validation_alias=AliasChoices(*names))


def _optional(*names: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(*names))


# --- HotpotQA and 2WikiMultihopQA ------------------------------------------------------------------------------------


class _Context(RecordModel):
    title: Text
    sentences: Texts = _alias("sentences", "content")


class _SupportingFact(RecordModel):
    title: Text
    sent_id: StrictInt


Contexts = Annotated[list[_Context], table("title", "sentences"), NotEmpty]
SupportingFacts = Annotated[list[_SupportingFact], table("title", "sent_id"), NotEmpty]


def _pool(contexts: Iterable[_Context]) -> tuple[Passage, ...]:
    return tuple(Passage.of(context.title, sentences=context.sentences) for context in contexts)


def _gold(addresses: Iterable[tuple[str, int | None]], pool: Iterable[Passage]) -> tuple[GoldFact, ...]:
    """Facts of a benchmark with unique titles, each once."""
    known = {passage.title: passage for passage in reversed(tuple(pool))}  # the first of each title
    found = [(title, sentence, known.get(title.strip())) for title, sentence in dict.fromkeys(addresses)]
    return tuple(
        GoldFact(title, sentence, passage.id if passage else None, unique_title=True)
        for title, sentence, passage in found
    )


@register("hotpotqa", "HotpotQA", aliases=("hotpot",), hub="hotpotqa/hotpot_qa:distractor")
class HotpotQA(BenchmarkQuestion):
    """Yang et al. 2018, arXiv 1809.09600: two-hop questions with ten paragraphs and gold sentences.

    In dev-fullwiki the contexts come from a retriever and may lack the gold paragraphs. The official metrics compare
    (title, sentence) pairs, titles case-sensitively.
    """

    id: Id = _alias("_id", "id")
    question: Text
    answer: Text
    context: Contexts
    supporting_facts: SupportingFacts
    type: AnyText | None = None
    level: AnyText | None = None

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("context") and record.has("supporting_facts") and not record.has("evidences")

    def to_question(self) -> QuestionRecord:
        pool = _pool(self.context)
        gold = _gold(((fact.title, fact.sent_id) for fact in self.supporting_facts), pool)
        return QuestionRecord(
            id=self.id,
            question=self.question,
            answers=distinct(self.answer),
            gold=gold,
            pool=pool,
            hops=len({fact.title for fact in gold}),
            kind=self.type,
            level=self.level,
        )


class _Triple(RecordModel):
    subject: Text = _alias("subject", "fact")
    relation: Text
    object: Text = _alias("object", "entity")


Triples = Annotated[list[_Triple], table("subject", "relation", "object")]


@register(
    "2wiki",
    "2WikiMultihopQA",
    aliases=("2wikimultihopqa", "2wikimultihop", "wikimultihop"),
    hub="framolfese/2WikiMultihopQA",
)
class TwoWiki(BenchmarkQuestion):
    """Ho et al. 2020, arXiv 2011.01060: two or four hops, gold sentences and reasoning triples.

    Also reads the open set of HippoRAG and its successors, whose questions have no contexts and name their gold
    passages in ``supporting_titles``. Titles are unique.
    """

    id: Id = _alias("_id", "id")
    question: Text
    answer: Text
    answer_aliases: Texts = Field(default=[])
    context: Contexts | None = None
    supporting_facts: SupportingFacts | None = None
    supporting_titles: Texts | None = None
    evidences: Triples = Field(default=[])
    evidences_id: Triples = Field(default=[])
    answer_id: AnyText | None = None
    type: AnyText | None = None

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        official = record.has("context") and record.has("supporting_facts") and not record.has("level")
        return official or record.has("supporting_titles")

    def to_question(self) -> QuestionRecord:
        pool = None if self.context is None else _pool(self.context)
        if self.supporting_facts is not None:
            gold = _gold(((fact.title, fact.sent_id) for fact in self.supporting_facts), pool or ())
        elif self.supporting_titles is not None:
            gold = _gold(((title, None) for title in self.supporting_titles), pool or ())
        else:
            raise Malformed("supporting_facts is missing")
        return QuestionRecord(
            id=self.id,
            question=self.question,
            answers=distinct(self.answer, *self.answer_aliases),
            gold=gold,
            pool=pool,
            hops=len({fact.title for fact in gold}),
            kind=self.type,
            evidences=_triples(self.evidences),
            evidences_id=_triples(self.evidences_id),
            answer_id=self.answer_id,
        )


def _triples(rows: Iterable[_Triple]) -> tuple[tuple[str, str, str], ...]:
    return tuple((row.subject, row.relation, row.object) for row in rows)


# --- MuSiQue ---------------------------------------------------------------------------------------------------------


class _Paragraph(RecordModel):
    idx: StrictInt
    title: AnyText
    text: AnyText = _alias("paragraph_text", "text")
    is_supporting: StrictBool = False


class _Step(RecordModel):
    question: Text
    answer: AnyText
    paragraph_support_idx: StrictInt | None = None


@register("musique", "MuSiQue", aliases=("musique-ans", "musique-full"), hub="dgslibisey/MuSiQue")
class MuSiQue(BenchmarkQuestion):
    """Trivedi et al. 2022, arXiv 2108.00573: two to four hops, twenty paragraphs and a decomposition per question.

    The official support metric compares the ``idx`` of paragraphs. Titles repeat, so a passage is identified by title
    and text. In MuSiQue-Full an answerable and an unanswerable question share an id: the latter gets a suffix, and both
    keep the shared id as ``official_id``.
    """

    id: Id
    question: Text
    answer: Text
    answer_aliases: Texts = Field(default=[])
    answerable: StrictBool = True
    paragraphs: Annotated[list[_Paragraph], table(), NotEmpty]
    question_decomposition: Annotated[list[_Step], table()] = Field(default=[])

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("paragraphs") and record.has("question") and not record.has("possible_answers")

    def to_question(self) -> QuestionRecord:
        passages = {row.idx: Passage.of(row.title, row.text) for row in self.paragraphs}
        if len(passages) < len(self.paragraphs):
            raise Malformed("paragraphs has the same idx twice")
        ids: dict[int | None, str] = {idx: passage.id for idx, passage in passages.items()}
        supporting = [row.idx for row in self.paragraphs if row.is_supporting]
        return QuestionRecord(
            id=self.id if self.answerable else self.id + UNANSWERABLE,
            question=self.question,
            answers=distinct(self.answer, *self.answer_aliases),
            gold=tuple(dict.fromkeys(GoldFact(passages[idx].title, passage_id=ids[idx]) for idx in supporting)),
            pool=tuple(passages.values()),
            hops=int(self.id[0]) if "1" <= self.id[0] <= "9" else None,
            kind=self.id.partition("__")[0],
            answerable=self.answerable,
            official_id=self.id,
            sub_questions=tuple(
                SubQuestion(step.question, step.answer, ids.get(step.paragraph_support_idx))
                for step in self.question_decomposition
            ),
            # The supporting idx wins if a paragraph is given twice.
            paragraph_idx={ids[idx]: idx for idx in (*passages, *supporting)},
        )


# --- MultiHop-RAG ----------------------------------------------------------------------------------------------------


class _Quote(RecordModel):
    title: Text
    fact: Text


@register(
    "multihoprag",
    "MultiHop-RAG",
    aliases=("multihop-rag",),
    hub="yixuantt/MultiHopRAG:MultiHopRAG",
    split="train",
    has_contexts=False,
)
class MultiHopRAG(BenchmarkQuestion):
    """Tang and Yang 2024, arXiv 2401.15391: questions over news articles, with quoted facts.

    The 609 articles are a separate corpus. The official retrieval metric looks for the quoted facts in the retrieved
    texts and ignores null queries, which no article answers.
    """

    id: Id | None = _optional("id", "_id")
    question: Text = _alias("query", "question")
    answer: Text
    question_type: Text
    evidence_list: Annotated[list[_Quote], table()] = Field(default=[])

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("evidence_list", "query") and not record.has("evidence_docs")

    def to_question(self) -> QuestionRecord:
        if not self.evidence_list and self.question_type != NULL_QUERY:
            raise Malformed(f"evidence_list is missing or empty, but question_type is not {NULL_QUERY}")
        gold = tuple(dict.fromkeys(GoldFact(quote.title, text=quote.fact) for quote in self.evidence_list))
        return QuestionRecord(
            id=self.id or question_id(self.question),
            question=self.question,
            answers=distinct(self.answer),
            gold=gold,
            hops=len({fact.title for fact in gold}) or None,
            kind=self.question_type,
            answerable=self.question_type != NULL_QUERY,
        )


# --- Natural Questions -----------------------------------------------------------------------------------------------


@register(
    "nq",
    "Natural Questions (open)",
    aliases=("nq-open", "natural-questions"),
    hub="google-research-datasets/nq_open",
    has_contexts=False,
)
class NaturalQuestions(BenchmarkQuestion):
    """NQ-open (Lee et al. 2019, arXiv 1906.00300): short answers and no passages."""

    id: Id | None = _optional("id", "_id")
    question: Text
    answer: Annotated[Texts, NotEmpty] = _alias("answer", "golden_answers", "answers")

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        answers = (record.fields.get("answer"), record.fields.get("golden_answers"))
        return record.has("question") and any(isinstance(each, list) for each in answers)

    def to_question(self) -> QuestionRecord:
        answers = _answers("answer", self.answer)
        return QuestionRecord(id=self.id or question_id(self.question), question=self.question, answers=answers, hops=1)


def _answers(name: str, texts: Iterable[str]) -> tuple[str, ...]:
    if answers := distinct(*texts):
        return answers
    raise Malformed(f"{name} is empty")


# --- SQuAD -----------------------------------------------------------------------------------------------------------


class _Answer(RecordModel):
    text: AnyText


class _SquadParagraph(RecordModel):
    title: Text
    context: Text


@register("squad", "SQuAD", aliases=("squad-v1.1", "squad1.1", "squad-1.1"), hub="rajpurkar/squad")
class SQuAD(BenchmarkQuestion):
    """SQuAD v1.1 (Rajpurkar et al. 2016, arXiv 1606.05250): questions about paragraphs of Wikipedia articles.

    The contexts of a question are the paragraphs of its article. Consecutive flat rows with the same title are one
    article, so shuffled rows have smaller pools.
    """

    id: Id
    question: Text
    answers: Annotated[list[_Answer], table(), NotEmpty]
    article: Any
    paragraph: Any
    pool: Any

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        return record.has("data") or (isinstance(record.fields.get("context"), str) and record.has("answers"))

    @classmethod
    def expand(cls, records: Iterable[Record]) -> Iterator[Record | Problem]:
        article: list[Record] = []
        for row in (row for record in records for row in _squad_rows(record)):
            if isinstance(row, Problem):
                yield row
                continue
            if article and row.fields["article"] != article[0].fields["article"]:
                yield from _with_pool(article)
                article = []
            article.append(row)
        yield from _with_pool(article)

    def to_question(self) -> QuestionRecord:
        return QuestionRecord(
            id=self.id,
            question=self.question,
            answers=_answers("answers", (answer.text for answer in self.answers)),
            gold=(GoldFact(self.article, passage_id=self.paragraph.id),),
            pool=self.pool,
            hops=1,
            article=self.article,
        )


def _squad_rows(record: Record) -> Iterator[Record | Problem]:
    """The questions of a document, or the one of a flat row, each with its article and paragraph."""
    if not record.has("data"):
        yield _squad_row(record, record, record)
        return
    for article in record.children("data"):
        for paragraph in article.children("paragraphs") if isinstance(article, Record) else (article,):
            for row in paragraph.children("qas") if isinstance(paragraph, Record) else (paragraph,):
                if isinstance(article, Record) and isinstance(paragraph, Record) and isinstance(row, Record):
                    yield _squad_row(article, paragraph, row)
                elif isinstance(row, Problem):
                    yield row


def _squad_row(article: Record, paragraph: Record, row: Record) -> Record | Problem:
    try:
        parts = {"title": article.fields.get("title"), "context": paragraph.fields.get("context")}
        found = Record(parts, row.where, paragraph.path).parse(_SquadParagraph)
    except Malformed as error:
        return paragraph.problem(error)
    passage = Passage.of(found.title.replace("_", " "), found.context)
    return Record({**row.fields, "article": found.title, "paragraph": passage}, row.where, row.path)


def _with_pool(rows: Sequence[Record]) -> Iterator[Record]:
    pool = tuple({row.fields["paragraph"].id: row.fields["paragraph"] for row in rows}.values())
    return (Record({**row.fields, "pool": pool}, row.where, row.path) for row in rows)


# --- TriviaQA --------------------------------------------------------------------------------------------------------


class _TriviaAnswer(RecordModel):
    value: Text = _alias("value", "Value")
    aliases: Texts = Field(default=[], validation_alias=AliasChoices("aliases", "Aliases"))
    human: Texts = Field(default=[], validation_alias="HumanAnswers")
    normalized: Texts = Field(default=[], validation_alias=AliasChoices("normalized_aliases", "NormalizedAliases"))


@register(
    "triviaqa",
    "TriviaQA",
    aliases=("trivia", "trivia-qa"),
    hub="mandarjoshi/trivia_qa:rc.nocontext",
    has_contexts=False,
)
class TriviaQA(BenchmarkQuestion):
    """Joshi et al. 2017, arXiv 1705.03551: trivia questions with many answer aliases, used without passages.

    Reads the original document (``Data``), the hub's columns, and lines of ``{id, question, golden_answers}``. The
    official script compares with the normalized aliases only; they follow the other answers.
    """

    id: Id = _alias("id", "question_id", "QuestionId")
    question: Text = _alias("question", "Question")
    golden_answers: Texts | None = None
    answer: _TriviaAnswer | None = _optional("answer", "Answer")

    @classmethod
    def recognizes(cls, record: Record) -> bool:
        golden, answer = record.fields.get("golden_answers"), record.fields.get("answer")
        nested = isinstance(answer, Mapping) or isinstance(record.fields.get("Answer"), Mapping)
        return record.has("Data") or isinstance(golden, list) or nested

    @classmethod
    def expand(cls, records: Iterable[Record]) -> Iterator[Record | Problem]:
        for record in records:
            yield from record.children("Data") if record.has("Data") else (record,)

    def to_question(self) -> QuestionRecord:
        if self.golden_answers is not None:
            answers = _answers("golden_answers", self.golden_answers)
        elif self.answer is not None:
            known = self.answer
            answers = distinct(known.value, *known.aliases, *known.human, *known.normalized)
        else:
            raise Malformed("answer is missing")
        return QuestionRecord(id=self.id, question=self.question, answers=answers, hops=1)
