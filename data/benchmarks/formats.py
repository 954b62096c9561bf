"""The formats of twelve benchmarks, each in the official layout and in that of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ..errors import Problem
from ..passages import Passage
from ..records import Malformed, Record
from ..sample import SubQuestion
from .question import GoldFact, QuestionRecord, distinct, question_id
from .registry import register

NULL_QUERY = "null_query"
UNANSWERABLE = "/unanswerable"
SUPPORTED, NOT_SUPPORTED = "SUPPORTED", "NOT_SUPPORTED"
_VERDICTS = {SUPPORTED: ("yes", "true", "supported"), NOT_SUPPORTED: ("no", "false", "not supported")}


# --- questions with passages -----------------------------------------------------------------------------------------


def _pool(record: Record) -> tuple[Passage, ...]:
    rows = record.rows("context", "title", "sentences")
    return tuple(Passage.of(row.text("title"), sentences=row.texts("sentences", "content", blank=True)) for row in rows)


def _supporting(record: Record, pool: Sequence[Passage]) -> tuple[GoldFact, ...]:
    rows = record.rows("supporting_facts", "title", "sent_id")
    return _titled(((row.text("title"), row.get("sent_id", kind=int)) for row in rows), pool)


def _titled(facts: Iterable[tuple[str, int | None]], pool: Sequence[Passage]) -> tuple[GoldFact, ...]:
    """Distinct facts in passages with unique titles."""
    passages = {passage.title: passage for passage in reversed(pool)}
    return tuple(
        GoldFact(title, sentence, passage.id if passage else None, unique_title=True)
        for title, sentence in dict.fromkeys(facts)
        for passage in (passages.get(title.strip()),)
    )


@register(
    "hotpotqa",
    "HotpotQA",
    aliases=("hotpot",),
    hub="hotpotqa/hotpot_qa:distractor",
    has_contexts=True,
    knows=lambda record: record.has("context") and record.has("supporting_facts") and not record.has("evidences"),
)
def hotpotqa(record: Record) -> QuestionRecord:
    """Yang et al. 2018, arXiv 1809.09600: two-hop questions with ten paragraphs and gold sentences.

    In dev-fullwiki the contexts come from a retriever and may lack the gold paragraphs. The official metrics compare
    (title, sentence) pairs, titles case-sensitively.
    """
    pool = _pool(record)
    gold = _supporting(record, pool)
    return QuestionRecord(
        id=record.id("_id", "id"),
        question=record.text("question"),
        answers=distinct(record.text("answer")),
        gold=gold,
        pool=pool,
        hops=len({fact.title for fact in gold}),
        kind=record.text("type", default=None),
        level=record.text("level", default=None),
    )


@register(
    "2wiki",
    "2WikiMultihopQA",
    aliases=("2wikimultihopqa", "2wikimultihop", "wikimultihop"),
    hub="framolfese/2WikiMultihopQA",
    has_contexts=True,
    knows=lambda record: (
        (record.has("context") and record.has("supporting_facts") and not record.has("level"))
        or record.has("supporting_titles")
    ),
)
def twowiki(record: Record) -> QuestionRecord:
    """Ho et al. 2020, arXiv 2011.01060: two or four hops, gold sentences and reasoning triples.

    Also reads the open set of HippoRAG and its successors, whose questions have no contexts and name their gold
    passages in ``supporting_titles``. Titles are unique.
    """
    pool = _pool(record) if record.has("context") else None
    if record.has("supporting_facts") or not record.has("supporting_titles"):
        gold = _supporting(record, pool or ())
    else:
        gold = _titled(((title, None) for title in record.texts("supporting_titles")), pool or ())
    return QuestionRecord(
        id=record.id("_id", "id"),
        question=record.text("question"),
        answers=distinct(record.text("answer"), *record.texts("answer_aliases", default=())),
        gold=gold,
        pool=pool,
        hops=len({fact.title for fact in gold}),
        kind=record.text("type", default=None),
        evidences=_triples(record, "evidences"),
        evidences_id=_triples(record, "evidences_id"),
        answer_id=record.text("answer_id", default=None),
    )


def _triples(record: Record, name: str) -> tuple[tuple[str, str, str], ...]:
    rows = record.rows(name, "subject", "relation", "object", default=[])
    return tuple((row.text("subject", "fact"), row.text("relation"), row.text("object", "entity")) for row in rows)


@register(
    "musique",
    "MuSiQue",
    aliases=("musique-ans", "musique-full"),
    hub="dgslibisey/MuSiQue",
    has_contexts=True,
    knows=lambda record: record.has("paragraphs") and record.has("question") and not record.has("possible_answers"),
)
def musique(record: Record) -> QuestionRecord:
    """Trivedi et al. 2022, arXiv 2108.00573: two to four hops, twenty paragraphs and a decomposition per question.

    The official support metric compares the ``idx`` of paragraphs. Titles repeat, so a passage is identified by title
    and text. In MuSiQue-Full an answerable and an unanswerable question share an id: the latter gets a suffix, and both
    keep the shared id as ``official_id``.
    """
    id, answerable, rows = record.id("id"), record.get("answerable", kind=bool, default=True), record.rows("paragraphs")
    passages = {row.get("idx", kind=int): _paragraph(row) for row in rows}
    if len(passages) < len(rows):
        raise Malformed("paragraphs has the same idx twice")
    ids: dict[int | None, str] = {idx: passage.id for idx, passage in passages.items()}
    supporting = [idx for idx, row in zip(passages, rows, strict=True) if _supports(row)]
    return QuestionRecord(
        id=id if answerable else id + UNANSWERABLE,
        question=record.text("question"),
        answers=distinct(record.text("answer"), *record.texts("answer_aliases", default=())),
        gold=tuple(dict.fromkeys(GoldFact(passages[idx].title, passage_id=ids[idx]) for idx in supporting)),
        pool=tuple(passages.values()),
        hops=int(id[0]) if "1" <= id[0] <= "9" else None,
        kind=id.partition("__")[0],
        answerable=answerable,
        official_id=id,
        sub_questions=tuple(
            SubQuestion(
                step.text("question"),
                step.text("answer", blank=True),
                ids.get(step.get("paragraph_support_idx", kind=int, default=None)),
            )
            for step in record.rows("question_decomposition", default=[])
        ),
        # The supporting idx wins if a paragraph is given twice.
        paragraph_idx={ids[idx]: idx for idx in (*passages, *supporting)},
    )


def _paragraph(row: Record) -> Passage:
    return Passage.of(row.text("title", blank=True), row.text("paragraph_text", "text", blank=True))


def _supports(row: Record) -> bool:
    return bool(row.get("is_supporting", kind=bool, default=False))


def _articles(records: Iterable[Record]) -> Iterator[Record | Problem]:
    """One record per question of SQuAD, with its article's passages as ``pool``.

    Consecutive flat rows with the same title are one article, so shuffled rows have smaller pools.
    """
    article: list[Record] = []
    for record in records:
        for row in record.nested("data", "paragraphs", "qas") if record.has("data") else (record,):
            if isinstance(row, Problem):
                yield row
                continue
            if article and row.fields.get("title") != article[0].fields.get("title"):
                yield from _with_pool(article)
                article = []
            article.append(row)
    yield from _with_pool(article)


def _with_pool(rows: Sequence[Record]) -> Iterator[Record | Problem]:
    passages: dict[str, Passage] = {}
    sound = []
    for row in rows:
        try:
            passage = Passage.of(row.text("title").replace("_", " "), row.text("context"))
        except Malformed as error:
            yield Problem(row.where, str(error))
            continue
        sound.append((row, passages.setdefault(passage.id, passage)))
    pool = tuple(passages.values())
    for row, passage in sound:
        yield replace(row, fields={**row.fields, "paragraph": passage, "pool": pool})


@register(
    "squad",
    "SQuAD",
    aliases=("squad-v1.1", "squad1.1", "squad-1.1"),
    hub="rajpurkar/squad",
    has_contexts=True,
    knows=lambda record: (
        record.has("data") or (isinstance(record.fields.get("context"), str) and record.has("answers"))
    ),
    unnest=_articles,
)
def squad(record: Record) -> QuestionRecord:
    """SQuAD v1.1 (Rajpurkar et al. 2016, arXiv 1606.05250): questions about paragraphs of Wikipedia articles, which
    are the contexts of all questions about the article."""
    title = record.text("title")
    answers = distinct(*(answer.text("text", blank=True) for answer in record.rows("answers")))
    if not answers:
        raise Malformed("answers is empty")
    return QuestionRecord(
        id=record.id("id"),
        question=record.text("question"),
        answers=answers,
        gold=(GoldFact(title, passage_id=record.fields["paragraph"].id),),
        pool=record.fields["pool"],
        hops=1,
        article=title,
    )


@register(
    "popqa",
    "PopQA",
    hub="akariasai/PopQA",
    split="test",
    has_contexts=True,
    knows=lambda record: record.has("possible_answers"),
)
def popqa(record: Record) -> QuestionRecord:
    """Mallen et al. 2023, arXiv 2212.10511: questions about entities of all degrees of popularity.

    The gold passage is the page of the subject. The official data has no passages; a copy with ``paragraphs`` has.
    """
    rows = record.rows("paragraphs", default=[])
    passages, subject = [_paragraph(row) for row in rows], record.text("s_wiki_title", default="")
    gold = [
        GoldFact(passage.title, passage_id=passage.id, unique_title=True)
        for row, passage in zip(rows, passages, strict=True)
        if _supports(row)
    ]
    return QuestionRecord(
        id=record.id("id"),
        question=record.text("question"),
        answers=distinct(*record.texts("possible_answers")),
        gold=tuple(dict.fromkeys(gold or ([GoldFact(subject, unique_title=True)] if subject else []))),
        pool=tuple({passage.id: passage for passage in passages}.values()) or None,
        hops=1,
        kind=record.text("prop", default=None),
    )


# --- questions over a corpus -----------------------------------------------------------------------------------------


@register(
    "multihoprag",
    "MultiHop-RAG",
    aliases=("multihop-rag",),
    hub="yixuantt/MultiHopRAG:MultiHopRAG",
    split="train",
    knows=lambda record: record.has("evidence_list", "query") and not record.has("evidence_docs"),
)
def multihoprag(record: Record) -> QuestionRecord:
    """Tang and Yang 2024, arXiv 2401.15391: questions over news articles, with quoted facts.

    The 609 articles are a separate corpus. The official retrieval metric looks for the quoted facts in the retrieved
    texts and ignores null queries, which no article answers.
    """
    question, kind = record.text("query", "question"), record.text("question_type")
    quotes = record.rows("evidence_list", **({"default": []} if kind == NULL_QUERY else {}))
    gold = tuple(dict.fromkeys(GoldFact(quote.text("title"), text=quote.text("fact")) for quote in quotes))
    return QuestionRecord(
        id=record.id("id", "_id", default=question_id(question)),
        question=question,
        answers=distinct(record.text("answer")),
        gold=gold,
        hops=len({fact.title for fact in gold}) or None,
        kind=kind,
        answerable=kind != NULL_QUERY,
    )


@register(
    "nq",
    "Natural Questions (open)",
    aliases=("nq-open", "natural-questions"),
    hub="google-research-datasets/nq_open",
    knows=lambda record: (
        record.has("question") and any(isinstance(record.fields.get(n), list) for n in ("answer", "golden_answers"))
    ),
)
def natural_questions(record: Record) -> QuestionRecord:
    """NQ-open (Lee et al. 2019, arXiv 1906.00300): short answers and no passages."""
    question, answers = record.text("question"), distinct(*record.texts("answer", "golden_answers", "answers"))
    return QuestionRecord(record.id("id", "_id", default=question_id(question)), question, answers, hops=1)


@register(
    "triviaqa",
    "TriviaQA",
    aliases=("trivia", "trivia-qa"),
    hub="mandarjoshi/trivia_qa:rc.nocontext",
    knows=lambda record: (
        record.has("Data")
        or isinstance(record.fields.get("golden_answers"), list)
        or any(isinstance(record.fields.get(name), dict) for name in ("answer", "Answer"))
    ),
    unnest=lambda records: (
        row for record in records for row in (record.nested("Data") if record.has("Data") else (record,))
    ),
)
def triviaqa(record: Record) -> QuestionRecord:
    """Joshi et al. 2017, arXiv 1705.03551: trivia questions with many answer aliases, used without passages.

    Reads the original document (``Data``), the hub's columns, and lines of ``{id, question, golden_answers}``. The
    official script compares with the normalized aliases only; they follow the other answers.
    """
    if record.has("golden_answers"):
        answers = record.texts("golden_answers")
    else:
        answer = Record(record.get("answer", "Answer", kind=dict), record.where, record.named("answer"))
        others = (("aliases", "Aliases"), ("HumanAnswers",), ("normalized_aliases", "NormalizedAliases"))
        more = (text for names in others for text in answer.texts(*names, default=()))
        answers = (answer.text("value", "Value"), *more)
    id, question = record.id("id", "question_id", "QuestionId"), record.text("question", "Question")
    return QuestionRecord(id, question, distinct(*answers), hops=1)


@register(
    "hover",
    "HoVer",
    hub="hover-nlp/hover",
    knows=lambda record: record.has("claim") and record.has("supporting_facts"),
)
def hover(record: Record) -> QuestionRecord:
    """Jiang et al. 2020, arXiv 2011.03088: claims over two to four Wikipedia pages, supported by them or not.

    The pages are the introductions of HotpotQA's corpus. The question is the claim; "yes", "true" and "supported" are
    one answer.
    """
    label = record.get("label")
    label = {"0": NOT_SUPPORTED, "1": SUPPORTED}.get(str(label), label)  # the hub has numbers
    if not isinstance(label, str) or label not in _VERDICTS:
        raise Malformed(f"label must be {SUPPORTED} or {NOT_SUPPORTED}")
    rows = record.rows("supporting_facts", "title", "sentence")
    facts = [(row.text("title", "key"), row.get("sentence", "value", kind=int)) for row in rows]
    return QuestionRecord(
        id=record.id("uid"),
        question=record.text("claim"),
        answers=_VERDICTS[label],
        gold=_titled(facts, ()),
        hops=record.get("num_hops", kind=int),
        kind=label,
    )


@register(
    "frames",
    "FRAMES",
    hub="google/frames-benchmark",
    split="test",
    knows=lambda record: record.has("wiki_links"),
)
def frames(record: Record) -> QuestionRecord:
    """Krishna et al. 2024, arXiv 2409.12941: questions over two to fifteen Wikipedia articles.

    The gold passages are the linked articles, by title. The authors let a language model judge the answers.
    """
    question = record.text("Prompt", "prompt", "Question")
    links = record.texts("wiki_links", default=())
    titles = dict.fromkeys(title for link in links if (title := title_in_url(link.strip())))
    return QuestionRecord(
        id=record.id("id", default=question_id(question)),
        question=question,
        answers=distinct(record.text("Answer", "answer")),
        gold=_titled(((title, None) for title in titles), ()),
        hops=len(titles) or None,
        kind=record.text("reasoning_types", default=None),
    )


def title_in_url(url: str) -> str:
    """The title in a Wikipedia URL: ``.../index.php?title=Walter_Scott&oldid=1`` or ``.../wiki/Walter_Scott``."""
    parts = urlsplit(url)
    named = parse_qs(parts.query).get("title") or [unquote(parts.path.rpartition("/")[2])]
    return named[0].replace("_", " ")


@register(
    "bamboogle",
    "Bamboogle",
    hub="chiayewken/bamboogle",
    split="test",
    knows=lambda record: (
        record.has("Question")
        and isinstance(record.fields.get("Answer", record.fields.get("answer")), str | list)
        and not record.has("wiki_links")
    ),
)
def bamboogle(record: Record) -> QuestionRecord:
    """Press et al. 2023, arXiv 2210.03350: 125 two-hop questions that a search engine answers wrongly; no passages."""
    question, answer = record.text("Question"), record.get("Answer", "answer")
    answers: tuple[Any, ...] = (record.text("Answer", "answer"),) if isinstance(answer, str) else ()
    answers = answers or record.texts("Answer", "answer")
    return QuestionRecord(record.id("id", default=question_id(question)), question, distinct(*answers), hops=2)


@register(
    "browsecomp-plus",
    "BrowseComp-Plus",
    aliases=("browsecompplus",),
    hub="Tevatron/browsecomp-plus",
    split="test",
    knows=lambda record: record.has("evidence_docs"),
)
def browsecomp_plus(record: Record) -> QuestionRecord:
    """Chen et al. 2025, arXiv 2508.06600: hard questions over 100,000 web documents. Decrypt them with its script.

    The gold passages are the evidence documents, by id. The authors let a language model judge the answers.
    """
    ids = dict.fromkeys(document.id("docid") for document in record.rows("evidence_docs"))
    return QuestionRecord(
        id=record.id("query_id"),
        question=record.text("query"),
        answers=distinct(record.text("answer")),
        gold=tuple(GoldFact(id, passage_id=id) for id in ids),
        hops=len(ids),
    )
