"""The formats of twelve benchmarks, each in the official layout and in that of the Hugging Face hub, and their table.

A format is a function from a `Record` to a `QuestionRecord`; what it cannot read is `Malformed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ..errors import DataError, Problem
from ..passages import Passage
from ..records import LONGEST_ID, Malformed, Record, read_each
from ..sample import SubQuestion
from .own import own_question
from .question import GoldFact, QuestionRecord, distinct, question_id

SAMPLE = "sample"
NULL_QUERY = "null_query"
UNANSWERABLE = "/unanswerable"
SUPPORTED, NOT_SUPPORTED = "SUPPORTED", "NOT_SUPPORTED"
LONGEST_QUESTION = 20_000  # characters
_VERDICTS = {SUPPORTED: ("yes", "true", "supported"), NOT_SUPPORTED: ("no", "false", "not supported")}

_Report = Callable[[Problem], None]


# --- questions with passages -----------------------------------------------------------------------------------------


def _pool(record: Record) -> tuple[Passage, ...]:
    rows = record.rows("context", "title", "sentences")
    return tuple(Passage.of(row.text("title"), sentences=row.texts("sentences", "content", blank=True)) for row in rows)


def _supporting(record: Record, pool: Sequence[Passage]) -> tuple[GoldFact, ...]:
    rows = record.rows("supporting_facts", "title", "sent_id")
    return _titled(((row.text("title"), row.value("sent_id", kind=int)) for row in rows), pool)


def _titled(facts: Iterable[tuple[str, int | None]], pool: Sequence[Passage] = ()) -> tuple[GoldFact, ...]:
    """Distinct facts in passages with unique titles."""
    ids = {passage.title: passage.id for passage in reversed(pool)}
    return tuple(
        GoldFact(title, sentence, ids.get(title.strip()), unique_title=True) for title, sentence in dict.fromkeys(facts)
    )


def hotpotqa(record: Record) -> QuestionRecord:
    """Yang et al. 2018, arXiv 1809.09600: two-hop questions with ten paragraphs and gold sentences.

    In dev-fullwiki the contexts come from a retriever and may lack the gold paragraphs. The official metrics compare
    (title, sentence) pairs, titles case-sensitively.
    """
    pool = _pool(record)
    return _about_titles(record, pool, _supporting(record, pool), level=record.text("level", default=None))


def _about_titles(
    record: Record, pool: tuple[Passage, ...] | None, gold: tuple[GoldFact, ...], **more: Any
) -> QuestionRecord:
    answers = distinct(record.text("answer"), *record.texts("answer_aliases", default=()))
    hops, kind = len({fact.title for fact in gold}), record.text("type", default=None)
    return QuestionRecord(record.id("_id", "id"), record.text("question"), answers, gold, pool, hops, kind, **more)


def twowiki(record: Record) -> QuestionRecord:
    """Ho et al. 2020, arXiv 2011.01060: two or four hops, gold sentences and reasoning triples.

    Also reads the open set of HippoRAG and its successors, whose questions have no contexts and name their gold
    passages in ``supporting_titles``. Titles are unique.
    """
    pool = _pool(record) if "context" in record else None
    if "supporting_facts" in record or "supporting_titles" not in record:
        gold = _supporting(record, pool or ())
    else:
        gold = _titled(((title, None) for title in record.texts("supporting_titles")), pool or ())
    triples = tuple(
        (row.text("subject", "fact"), row.text("relation"), row.text("object", "entity"))
        for row in record.rows("evidences", "subject", "relation", "object", default=[])
    )
    return _about_titles(record, pool, gold, evidences=triples, answer_id=record.text("answer_id", default=None))


def musique(record: Record) -> QuestionRecord:
    """Trivedi et al. 2022, arXiv 2108.00573: two to four hops, twenty paragraphs and a decomposition per question.

    The official support metric compares the ``idx`` of paragraphs. Titles repeat, so a passage is identified by title
    and text. In MuSiQue-Full an answerable and an unanswerable question share an id: the latter gets a suffix, and both
    keep the shared id as ``official_id``.
    """
    id, rows = record.id("id"), record.rows("paragraphs")
    answerable = record.value("answerable", kind=bool, default=True)
    passages = {row.value("idx", kind=int): _paragraph(row) for row in rows}
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
                step.text("question"), step.text("answer", blank=True), ids.get(step.get("paragraph_support_idx"))
            )
            for step in record.rows("question_decomposition", default=[])
        ),
        # The supporting idx wins if a paragraph is given twice.
        paragraph_idx={ids[idx]: idx for idx in (*passages, *supporting)},
    )


def _paragraph(row: Record) -> Passage:
    return Passage.of(row.text("title", blank=True), row.text("paragraph_text", "text", blank=True))


def _supports(row: Record) -> bool:
    return bool(row.value("is_supporting", kind=bool, default=False))


def _articles(records: Iterable[Record | Problem], on_problem: _Report) -> Iterator[Record]:
    """One record per question of SQuAD, with its article's passages as ``pool``. Consecutive flat rows with the same
    title are one article, so shuffled rows have smaller pools."""

    def flat(record: Record) -> Iterable[Record]:
        for article in record.rows("data") if "data" in record else ():
            for paragraph in article.rows("paragraphs"):
                for question in paragraph.rows("qas"):
                    yield Record({**article, **paragraph, **question}, record.where)
        if "data" not in record:
            yield record

    def placed(record: Record) -> Iterable[Record]:
        record["passage"] = Passage.of(record.text("title").replace("_", " "), record.text("context"))
        yield record

    rows = read_each(placed, read_each(flat, records, on_problem), on_problem)
    for _, article in groupby(rows, key=lambda row: row["title"]):
        questions = list(article)
        pool = tuple({row["passage"].id: row["passage"] for row in questions}.values())
        yield from (Record({**row, "pool": pool}, row.where) for row in questions)


def squad(record: Record) -> QuestionRecord:
    """SQuAD v1.1 (Rajpurkar et al. 2016, arXiv 1606.05250): questions about paragraphs of Wikipedia articles, which
    are the contexts of all questions about the article."""
    title, answers = record.text("title"), [answer.text("text", blank=True) for answer in record.rows("answers")]
    gold = (GoldFact(title, passage_id=record["passage"].id),)
    return QuestionRecord(
        *(record.id("id"), record.text("question"), distinct(*answers), gold, record["pool"]), hops=1, article=title
    )


def popqa(record: Record) -> QuestionRecord:
    """Mallen et al. 2023, arXiv 2212.10511: questions about entities of all degrees of popularity.

    The gold passage is the page of the subject. The official data has no passages; a copy with ``paragraphs`` has.
    """
    rows = [(row, _paragraph(row)) for row in record.rows("paragraphs", default=[])]
    gold = [GoldFact(passage.title, None, passage.id, unique_title=True) for row, passage in rows if _supports(row)]
    if not gold and (subject := record.text("s_wiki_title", default="")):
        gold = [GoldFact(subject, unique_title=True)]
    pool = tuple({passage.id: passage for _, passage in rows}.values()) or None
    answers, kind = distinct(*record.texts("possible_answers")), record.text("prop", default=None)
    return QuestionRecord(record.id("id"), record.text("question"), answers, tuple(dict.fromkeys(gold)), pool, 1, kind)


# --- questions over a corpus -----------------------------------------------------------------------------------------


def multihoprag(record: Record) -> QuestionRecord:
    """Tang and Yang 2024, arXiv 2401.15391: questions over news articles, with quoted facts.

    The 609 articles are a separate corpus. The official retrieval metric looks for the quoted facts in the retrieved
    texts and ignores null queries, which no article answers.
    """
    question, kind = record.text("query", "question"), record.text("question_type")
    quotes = record.rows("evidence_list", **({"default": []} if kind == NULL_QUERY else {}))
    gold = tuple(dict.fromkeys(GoldFact(quote.text("title"), text=quote.text("fact")) for quote in quotes))
    id, answers = record.id("id", "_id", default=question_id(question)), distinct(record.text("answer"))
    hops = len({fact.title for fact in gold}) or None
    return QuestionRecord(id, question, answers, gold, hops=hops, kind=kind, answerable=kind != NULL_QUERY)


def natural_questions(record: Record) -> QuestionRecord:
    """NQ-open (Lee et al. 2019, arXiv 1906.00300): short answers and no passages."""
    question, answers = record.text("question"), distinct(*record.texts("answer", "golden_answers", "answers"))
    return QuestionRecord(record.id("id", "_id", default=question_id(question)), question, answers, hops=1)


def triviaqa(record: Record) -> QuestionRecord:
    """Joshi et al. 2017, arXiv 1705.03551: trivia questions with many answer aliases, used without passages.

    Reads the original document (``Data``), the hub's columns, and lines of ``{id, question, golden_answers}``. The
    official script compares with the normalized aliases only; they follow the other answers.
    """
    if "golden_answers" in record:
        answers = record.texts("golden_answers")
    else:
        answer = Record(record.value("answer", "Answer", kind=dict), record.where)
        aliases = (("aliases", "Aliases"), ("HumanAnswers",), ("normalized_aliases", "NormalizedAliases"))
        more = (text for names in aliases for text in answer.texts(*names, default=()))
        answers = (answer.text("value", "Value"), *more)
    id, question = record.id("id", "question_id", "QuestionId"), record.text("question", "Question")
    return QuestionRecord(id, question, distinct(*answers), hops=1)


def hover(record: Record) -> QuestionRecord:
    """Jiang et al. 2020, arXiv 2011.03088: claims over two to four Wikipedia pages, supported by them or not.

    The pages are the introductions of HotpotQA's corpus. The question is the claim; "yes", "true" and "supported" are
    one answer.
    """
    label = str(record.value("label"))
    label = {"0": NOT_SUPPORTED, "1": SUPPORTED}.get(label, label)  # the hub has numbers
    if label not in _VERDICTS:
        raise Malformed(f"label must be {SUPPORTED} or {NOT_SUPPORTED}")
    rows = record.rows("supporting_facts", "title", "sentence")
    gold = _titled((row.text("title", "key"), row.value("sentence", "value", kind=int)) for row in rows)
    id, claim, hops = record.id("uid"), record.text("claim"), record.value("num_hops", kind=int)
    return QuestionRecord(id, claim, _VERDICTS[label], gold, hops=hops, kind=label)


def frames(record: Record) -> QuestionRecord:
    """Krishna et al. 2024, arXiv 2409.12941: questions over two to fifteen Wikipedia articles.

    The gold passages are the linked articles, by title. The authors let a language model judge the answers.
    """
    question, links = record.text("Prompt", "prompt", "Question"), record.texts("wiki_links", default=())
    gold = _titled((title, None) for link in links if (title := title_in_url(link.strip())))
    id, answers = record.id("id", default=question_id(question)), distinct(record.text("Answer", "answer"))
    kind = record.text("reasoning_types", default=None)
    return QuestionRecord(id, question, answers, gold, hops=len(gold) or None, kind=kind)


def title_in_url(url: str) -> str:
    """The title in a Wikipedia URL: ``.../index.php?title=Walter_Scott&oldid=1`` or ``.../wiki/Walter_Scott``."""
    parts = urlsplit(url)
    named = parse_qs(parts.query).get("title") or [unquote(parts.path.rpartition("/")[2])]
    return named[0].replace("_", " ")


def bamboogle(record: Record) -> QuestionRecord:
    """Press et al. 2023, arXiv 2210.03350: 125 two-hop questions that a search engine answers wrongly; no passages."""
    question, answer = record.text("Question"), record.value("Answer", "answer")
    answers = (record.text("Answer", "answer"),) if isinstance(answer, str) else record.texts("Answer", "answer")
    return QuestionRecord(record.id("id", default=question_id(question)), question, distinct(*answers), hops=2)


def browsecomp_plus(record: Record) -> QuestionRecord:
    """Chen et al. 2025, arXiv 2508.06600: hard questions over 100,000 web documents. Decrypt them with its script.

    The gold passages are the evidence documents, by id. The authors let a language model judge the answers.
    """
    ids = dict.fromkeys(document.id("docid") for document in record.rows("evidence_docs"))
    id, question, answers = record.id("query_id"), record.text("query"), distinct(record.text("answer"))
    return QuestionRecord(id, question, answers, tuple(GoldFact(id, passage_id=id) for id in ids), hops=len(ids))


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that can be read."""

    name: str  # on the command line and in results
    title: str  # as its authors write it
    question: Callable[[Record], QuestionRecord] = field(repr=False)
    fields: str
    """By which its records are known: those they have (lists with "[]"), and with "-" those they lack; "|" between
    layouts."""
    hub: str | None = None  # `OWNER/NAME[:CONFIG]` on the Hugging Face hub, if it is there
    split: str = "validation"  # the hub's split to evaluate on
    has_contexts: bool = False  # its questions have passages of their own, so the setting `distractor` exists
    unnest: Callable[[Iterable[Record | Problem], _Report], Iterable[Record | Problem]] | None = field(
        default=None, repr=False
    )
    """Makes one record per question, for benchmarks that nest several in one."""

    def knows(self, record: Record) -> bool:
        """Whether a record may be of it, judged by its fields."""

        def fits(name: str) -> bool:
            if name.startswith("-"):
                return name[1:] not in record
            return isinstance(record.get(name[:-2]), list) if name.endswith("[]") else name in record

        return any(all(map(fits, layout.split())) for layout in self.fields.split("|"))

    def read(self, records: Iterable[Record | Problem], on_problem: _Report) -> Iterator[QuestionRecord]:
        """The questions of some records, with distinct ids. What is malformed is reported."""
        seen: set[int] = set()  # hashes need a few bytes per question

        def checked(record: Record) -> Iterator[QuestionRecord]:
            question = self.question(record)
            if len(question.question) > LONGEST_QUESTION or len(question.id) > LONGEST_ID:
                raise Malformed(f"more than {LONGEST_QUESTION:,} characters of a question, or {LONGEST_ID} of an id")
            if not question.answers:
                raise Malformed("the answer is empty")
            if hash(question.id) in seen:
                raise Malformed(f"an earlier question has the same id {question.id!r}")
            seen.add(hash(question.id))
            yield replace(question, where=record.where)

        return read_each(checked, self.unnest(records, on_problem) if self.unnest else records, on_problem)


_BENCHMARKS = (
    Benchmark(
        *("hotpotqa", "HotpotQA", hotpotqa, "context supporting_facts -evidences", "hotpotqa/hotpot_qa:distractor"),
        has_contexts=True,
    ),
    Benchmark(
        *("2wiki", "2WikiMultihopQA", twowiki, "context supporting_facts -level | supporting_titles"),
        hub="framolfese/2WikiMultihopQA",
        has_contexts=True,
    ),
    Benchmark(
        *("musique", "MuSiQue", musique, "paragraphs question -possible_answers", "dgslibisey/MuSiQue"),
        has_contexts=True,
    ),
    Benchmark(
        *("multihoprag", "MultiHop-RAG", multihoprag, "evidence_list | query -evidence_docs"),
        *("yixuantt/MultiHopRAG:MultiHopRAG", "train"),
    ),
    Benchmark(
        *("nq", "Natural Questions (open)", natural_questions),
        *("question answer[] | question golden_answers[]", "google-research-datasets/nq_open"),
    ),
    Benchmark(
        *("squad", "SQuAD", squad, "data | context answers", "rajpurkar/squad"),
        has_contexts=True,
        unnest=_articles,
    ),
    Benchmark(
        *("triviaqa", "TriviaQA", triviaqa, "Data | golden_answers[] | question_id answer"),
        hub="mandarjoshi/trivia_qa:rc.nocontext",
        unnest=lambda records, on_problem: read_each(
            lambda record: record.rows("Data") if "Data" in record else (record,), records, on_problem
        ),
    ),
    Benchmark("hover", "HoVer", hover, "claim supporting_facts", "hover-nlp/hover"),
    Benchmark("frames", "FRAMES", frames, "wiki_links", "google/frames-benchmark", "test"),
    Benchmark(
        *("bamboogle", "Bamboogle", bamboogle, "Question Answer -wiki_links | Question answer -wiki_links"),
        *("chiayewken/bamboogle", "test"),
    ),
    Benchmark("popqa", "PopQA", popqa, "possible_answers", "akariasai/PopQA", "test", has_contexts=True),
    Benchmark(
        "browsecomp-plus", "BrowseComp-Plus", browsecomp_plus, "evidence_docs", "Tevatron/browsecomp-plus", "test"
    ),
    Benchmark("own", "own questions", own_question, "question", has_contexts=True),
)
BENCHMARKS = {benchmark.name: benchmark for benchmark in _BENCHMARKS}


def find_benchmark(name: str) -> Benchmark:
    """The benchmark with a name or title; case, spaces, hyphens and underscores are ignored."""

    def folded(name: str) -> str:
        return "".join(filter(str.isalnum, name.casefold()))

    for benchmark in BENCHMARKS.values():
        if folded(name) in map(folded, (benchmark.name, benchmark.title)):
            return benchmark
    raise DataError(f"There is no benchmark {name!r}. Known are {', '.join(BENCHMARKS)} and {SAMPLE}.")


def recognize(record: Record) -> list[Benchmark]:
    """The benchmarks that a record may be of, judged by its fields; a plain question may also be the user's own."""
    likely = [benchmark for benchmark in BENCHMARKS.values() if benchmark.knows(record)]
    plain = all(benchmark.name in ("nq", "own") for benchmark in likely)
    return [benchmark for benchmark in likely if plain or benchmark.name != "own"]
