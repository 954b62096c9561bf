"""Every benchmark's records, in every layout, become questions of one shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.benchmarks import BENCHMARKS, GoldFact, QuestionRecord, find_benchmark
from polyhop.data.benchmarks.formats import recognize
from polyhop.data.errors import Problem
from polyhop.data.passages import Passage

from . import records as r

LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, record) for name, record in r.FIRST_RECORDS.items()},
    "hotpotqa columns": ("hotpotqa", r.HOTPOTQA_COLUMNS),
    "2wiki columns": ("2wiki", r.TWOWIKI_COLUMNS),
    "2wiki open": ("2wiki", r.TWOWIKI_OPEN),
    "triviaqa columns": ("triviaqa", r.TRIVIAQA_COLUMNS),
    "triviaqa document": ("triviaqa", r.TRIVIAQA_DOCUMENT),
    "squad flat": ("squad", r.SQUAD_FLAT[0]),
}


def read(dataset: str, *records: Any) -> list[QuestionRecord]:
    problems: list[Problem] = []
    made = list(find_benchmark(dataset).read(map(r.as_record, records), problems.append))
    assert not problems
    return made


def refused(dataset: str, record: Any) -> str:
    problems: list[Problem] = []
    assert not list(find_benchmark(dataset).read([r.as_record(record)], problems.append))
    (problem,) = problems
    assert problem.where == "file:1"
    return problem.reason


def fields(question: QuestionRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(question).items() if name != "where"}


@pytest.mark.parametrize("layout", [r.HOTPOTQA, r.HOTPOTQA_COLUMNS])
def test_hotpotqa(layout: dict[str, Any]) -> None:
    (question,) = read("hotpotqa", layout)
    quill = Passage.of("Ada Quill", sentences=["Ada Quill was born in Tarn.", "She wrote odes."])
    tarn = Passage.of("Tarn", sentences=["Tarn is a town.", "Ben Marsh founded it."])
    moss = Passage.of("Moss", sentences=["Moss is another town."])
    assert fields(question) == fields(
        QuestionRecord(
            id="h1",
            question="Who founded the town where Ada Quill was born?",
            answers=("Ben Marsh",),
            gold=(GoldFact("Ada Quill", 0, quill.id, True), GoldFact("Tarn", 1, tarn.id, True)),
            pool=(quill, tarn, moss),
            hops=2,
            kind="bridge",
            level="hard",
        )
    )


def test_hotpotqa_fullwiki_may_lack_gold_passages_and_point_behind_the_last_sentence() -> None:
    (question,) = read("hotpotqa", {**r.HOTPOTQA, "supporting_facts": [["Nowhere", 0], ["Moss", 9]]})
    assert question.gold[0] == GoldFact("Nowhere", 0, None, True)
    assert question.gold[1].sentence == 9
    assert question.pool is not None
    assert [fact.matches(passage) for fact in question.gold for passage in question.pool] == [False] * 5 + [True]
    (question,) = read("hotpotqa", {**r.HOTPOTQA, "context": [*r.HOTPOTQA["context"], ["Tarn", ["Another Tarn."]]]})
    assert question.pool is not None
    assert question.gold[1].passage_id == question.pool[1].id  # of two contexts with one title, the first


@pytest.mark.parametrize("layout", [r.TWOWIKI, r.TWOWIKI_COLUMNS])
def test_twowiki(layout: dict[str, Any]) -> None:
    (question,) = read("2wiki", layout)
    assert (question.id, question.answers, question.kind, question.hops) == ("w1", ("Otto Venn",), "compositional", 2)
    assert [(fact.title, fact.sentence) for fact in question.gold] == [("Slow Rain", 0), ("Mia Venn", 1)]
    assert question.pool is not None
    assert [fact.passage_id for fact in question.gold] == [passage.id for passage in question.pool[:2]]
    assert question.evidences == (("Slow Rain", "director", "Mia Venn"), ("Mia Venn", "father", "Otto Venn"))
    assert question.evidences_id == (("Q1", "director", "Q2"), ("Q2", "father", "Q3"))
    assert question.answer_id == "Q3"


def test_twowiki_open_set() -> None:
    (question,) = read("2wiki", r.TWOWIKI_OPEN)
    assert question.answers == ("Otto Venn", "O. Venn")
    assert question.gold == (GoldFact("Slow Rain", unique_title=True), GoldFact("Mia Venn", unique_title=True))
    assert (question.pool, question.kind, question.hops, question.evidences) == (None, None, 2, ())
    (question,) = read("2wiki", {**r.TWOWIKI_OPEN, "supporting_facts": [["Slow Rain", 0], ["Mia Venn", 1]]})
    assert [fact.sentence for fact in question.gold] == [0, 1]


@pytest.mark.parametrize("columns", [False, True])
def test_musique(columns: bool) -> None:
    record = dict(r.MUSIQUE)
    if columns:
        for name in ("paragraphs", "question_decomposition"):
            record[name] = {key: [row[key] for row in r.MUSIQUE[name]] for key in r.MUSIQUE[name][0]}
    (question,) = read("musique", record)
    assert question.answers == ("the Orm", "Orm")
    assert (question.hops, question.kind, question.answerable) == (2, "2hop", True)
    assert question.pool is not None
    novel, quill, town = question.pool
    assert question.gold == (GoldFact("Ada Quill", passage_id=quill.id), GoldFact("Tarn", passage_id=town.id))
    assert [question.gold[1].matches(passage) for passage in question.pool] == [False, False, True]
    assert question.paragraph_idx == {novel.id: 0, quill.id: 1, town.id: 2}
    assert [sub.passage_id for sub in question.sub_questions] == [quill.id, town.id]
    assert question.sub_questions[1].question == "Which river flows through #1?"


def test_musique_full_tells_the_pair_apart() -> None:
    unanswerable = {
        **r.MUSIQUE,
        "answerable": False,
        "question_decomposition": [
            {**row, "paragraph_support_idx": None} for row in r.MUSIQUE["question_decomposition"]
        ],
    }
    answerable, other = read("musique", r.MUSIQUE, unanswerable)
    assert (answerable.answerable, other.answerable) == (True, False)
    assert answerable.id != other.id
    assert answerable.official_id == other.official_id == answerable.id
    assert all(sub.passage_id is None for sub in other.sub_questions)


def test_musique_paragraph_given_twice_has_the_idx_that_supports() -> None:
    town = r.MUSIQUE["paragraphs"][2]
    again = {**town, "idx": 3, "is_supporting": False}
    (question,) = read("musique", {**r.MUSIQUE, "paragraphs": [*r.MUSIQUE["paragraphs"], again]})
    assert question.paragraph_idx[question.gold[1].passage_id or ""] == 2


def test_multihoprag() -> None:
    question, null = read("multihoprag", r.MULTIHOPRAG, {**r.NULL_QUERY, "id": 17})
    assert question.gold == (GoldFact("Tin rises", text="Tin rose  by 2%."), GoldFact("Tin falls", text="Tin fell."))
    assert (question.hops, question.kind, question.pool, question.answerable) == (2, "comparison_query", None, True)
    assert question.gold[0].matches(Passage.of("Elsewhere", "So it is: Tin rose by\n2%. And so on."))
    assert not question.gold[0].matches(Passage.of("Tin rises", "It is said that tin rose by 2%."))
    assert (null.id, null.gold, null.hops, null.answerable) == ("17", (), None, False)
    assert null.answers == ("Insufficient information.",)


def test_nq() -> None:
    question, other = read("nq", r.NQ, {"question": "Who?", "answer": ["Ben"]})
    assert (question.answers, question.gold, question.pool, question.hops) == (("Ben Marsh", "Marsh"), (), None, 1)
    assert question.id == "d99d5169b14e9458" != other.id
    assert read("nq", {**r.NQ, "question": " who founded  tarn"})[0].id == question.id


def test_triviaqa() -> None:
    (plain,) = read("triviaqa", r.TRIVIAQA)
    assert (plain.id, plain.answers) == ("t1", ("Tarn", "Tarn town"))
    for layout in (r.TRIVIAQA_COLUMNS, r.TRIVIAQA_DOCUMENT):
        (question,) = read("triviaqa", layout)
        assert (question.id, question.question) == ("t1", r.TRIVIAQA["question"])
        assert question.answers == ("Tarn", "Tarn-Town", "tarn", "tarn town")


def test_squad() -> None:
    document, flat = read("squad", r.SQUAD), read("squad", *r.SQUAD_FLAT)
    assert [fields(question) for question in document] == [fields(question) for question in flat]
    first, second, third, last = document
    assert first.answers == ("Ben Marsh", "Marsh")
    assert first.article == "Tarn_(town)"
    assert first.pool is second.pool is third.pool
    assert [passage.title for passage in first.pool or ()] == ["Tarn (town)"] * 2
    assert [passage.text for passage in last.pool or ()] == ["Moss is a town."]
    assert [third.gold[0].matches(passage) for passage in third.pool or ()] == [False, True]


@pytest.mark.parametrize("layout", [r.HOVER, r.HOVER_COLUMNS])
def test_hover(layout: dict[str, Any]) -> None:
    (question,) = read("hover", layout)
    assert (question.id, question.question, question.hops) == ("v1", r.HOVER["claim"], 2)
    assert question.answers[0] == "yes"
    assert question.gold == (GoldFact("Ada Quill", 0, unique_title=True), GoldFact("Tarn", 1, unique_title=True))
    for label in ("NOT_SUPPORTED", 0):
        assert read("hover", {**layout, "label": label})[0].answers[0] == "no"


@pytest.mark.parametrize("layout", [r.FRAMES, {**r.without(r.FRAMES, "Prompt"), "Question": r.FRAMES["Prompt"]}])
def test_frames(layout: dict[str, Any]) -> None:
    (question,) = read("frames", layout)
    assert (question.question, question.answers, question.hops) == (r.FRAMES["Prompt"], ("Ben Marsh",), 2)
    assert question.gold == (GoldFact("Ada Quill", unique_title=True), GoldFact("Tarn (town)", unique_title=True))


@pytest.mark.parametrize("answer", [{"Answer": "Ben Marsh"}, {"answer": ["Ben Marsh"]}])
def test_bamboogle(answer: dict[str, Any]) -> None:
    (question,) = read("bamboogle", {**r.without(r.BAMBOOGLE, "Answer"), **answer})
    assert (question.id, question.answers, question.gold, question.hops) == ("b1", ("Ben Marsh",), (), 2)


def test_popqa() -> None:
    tarn, moss = Passage.of("Tarn", "Ben Marsh founded Tarn."), Passage.of("Moss", "Moss is a town.")
    (question,), (official,) = read("popqa", r.POPQA), read("popqa", r.without(r.POPQA, "paragraphs"))
    assert (question.id, question.answers, question.kind) == ("7", ("Ben Marsh", "B. Marsh"), "founder")
    assert question.pool == (tarn, moss)
    assert question.gold == (GoldFact("Tarn", passage_id=tarn.id, unique_title=True),)
    assert (official.pool, official.gold) == (None, (GoldFact("Tarn", unique_title=True),))


def test_browsecomp_plus() -> None:
    (question,) = read("browsecomp-plus", r.BROWSECOMP_PLUS)
    assert (question.id, question.answers, question.hops) == ("769", ("Ben Marsh",), 2)
    first, second = question.gold
    assert first.matches(Passage("12", "Any title", "Any text."))
    assert not first.matches(Passage("99", "12", "Another document."))
    assert second.passage_id == "5"


@pytest.mark.parametrize(
    ("dataset", "record", "reason"),
    [
        ("hotpotqa", r.without(r.HOTPOTQA, "_id"), "_id "),
        ("hotpotqa", {**r.HOTPOTQA, "context": []}, "context "),
        ("hotpotqa", {**r.HOTPOTQA, "context": [{"title": "Moss"}]}, "sentences "),
        ("2wiki", r.without(r.TWOWIKI_OPEN, "supporting_titles"), "supporting_facts "),
        ("2wiki", {**r.TWOWIKI, "evidences": [["a", "b"]]}, "evidences "),
        ("musique", {**r.MUSIQUE, "paragraphs": r.MUSIQUE["paragraphs"] * 2}, "paragraphs "),
        ("musique", {**r.MUSIQUE, "answerable": "no"}, "answerable "),
        ("multihoprag", {**r.MULTIHOPRAG, "evidence_list": []}, "evidence_list "),
        ("nq", {"question": "who", "answer": []}, "answer "),
        ("triviaqa", {**r.TRIVIAQA, "golden_answers": [" "]}, "golden_answers "),
        ("triviaqa", {"id": "t", "question": "?", "answer": {}}, "value "),
        ("triviaqa", {"Data": []}, "Data "),
        ("squad", {"data": [{"title": "Moss"}]}, "paragraphs "),
        ("squad", {**r.SQUAD_FLAT[0], "answers": {"text": [""]}}, "the answer "),
        ("squad", r.without(r.SQUAD_FLAT[0], "context"), "context "),
        ("hover", {**r.HOVER, "label": "MAYBE"}, "label "),
        ("frames", {**r.FRAMES, "wiki_links": "[http"}, "wiki_links "),
        ("bamboogle", {**r.BAMBOOGLE, "Answer": 3}, "Answer "),
        ("popqa", {**r.POPQA, "possible_answers": "[]"}, "possible_answers "),
        ("browsecomp-plus", {**r.BROWSECOMP_PLUS, "evidence_docs": []}, "evidence_docs "),
    ],
)
def test_malformed(dataset: str, record: Any, reason: str) -> None:
    assert refused(dataset, record).startswith(reason)


def test_a_bad_question_of_a_squad_document_leaves_the_rest() -> None:
    article = {"title": "Tarn", "paragraphs": [{"context": "Tarn.", "qas": [{"id": "x"}]}]}
    problems: list[Problem] = []
    made = list(find_benchmark("squad").read([r.as_record({"data": [article, *r.SQUAD["data"]]})], problems.append))
    assert len(problems) == 1
    assert [item.id for item in made] == ["s1", "s2", "s3", "s4"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """The value with something else somewhere inside it."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        changed: Any = value.copy()
        changed[key] = draw(spoilt(value[key]))
        return changed
    return draw(JSON)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
@settings(max_examples=25)
def test_whatever_is_wrong_is_a_problem_and_no_exception(layout: str, data: st.DataObject) -> None:
    dataset, record = LAYOUTS[layout]
    value = data.draw(spoilt(record).filter(lambda value: isinstance(value, dict)))
    problems: list[Problem] = []
    for made in find_benchmark(dataset).read([r.as_record(value)], problems.append):
        assert made.id
        assert made.question
        assert made.answers


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BENCHMARKS)
def test_records_are_recognize_file(name: str) -> None:
    likely = [benchmark.name for benchmark in recognize(r.as_record(r.FIRST_RECORDS[name]))]
    assert likely == {"triviaqa": ["nq", "triviaqa"], "nq": ["nq", "own"]}.get(name, [name])


# --- gold ------------------------------------------------------------------------------------------------------------


def test_matching() -> None:
    passage, namesake = Passage.of("Tarn", "A town."), Passage.of("Tarn", "A novel.")
    by_id = GoldFact("Tarn", passage_id=passage.id)
    by_title = GoldFact(" Tarn", passage_id=passage.id, unique_title=True)
    assert [by_id.matches(passage), by_id.matches(namesake)] == [True, False]
    assert [by_title.matches(passage), by_title.matches(namesake)] == [True, True]
    assert not GoldFact("tarn").matches(passage)
