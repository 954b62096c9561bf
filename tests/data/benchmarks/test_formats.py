"""Every benchmark's records, in every layout, become questions of one shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polyhop.data.benchmarks import BENCHMARKS, GoldFact, QuestionRecord, find_benchmark
from polyhop.data.benchmarks.formats import recognize
from polyhop.data.errors import Problem
from polyhop.data.passages import Passage

from . import records as r


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


def told(question: QuestionRecord) -> tuple[Any, ...]:
    """Its main attributes; of each gold fact the title, the sentence and the number of its passage in the pool."""
    ids = [passage.id for passage in question.pool or ()]
    gold = [
        (fact.title, fact.sentence, ids.index(fact.passage_id) if fact.passage_id in ids else fact.passage_id)
        for fact in question.gold
    ]
    return question.id, question.answers, question.hops, question.kind, len(ids), gold


COLUMNS = {
    name: {key: [row[key] for row in r.MUSIQUE[name]] for key in r.MUSIQUE[name][0]}
    for name in ("paragraphs", "question_decomposition")
}
OPEN_FACTS = {"supporting_facts": [["Slow Rain", 0], ["Mia Venn", 1]]}
QUILL, TARN = ("Ada Quill", None, None), ("Tarn (town)", None, None)
RAIN, VENN = ("Slow Rain", None, None), ("Mia Venn", None, None)


@pytest.mark.parametrize(
    ("dataset", "record", "expected"),
    [
        *(
            ("hotpotqa", record, ("h1", ("Ben Marsh",), 2, "bridge", 3, [("Ada Quill", 0, 0), ("Tarn", 1, 1)]))
            for record in (r.HOTPOTQA, r.HOTPOTQA_COLUMNS)
        ),
        *(
            ("2wiki", record, ("w1", ("Otto Venn",), 2, "compositional", 3, [("Slow Rain", 0, 0), ("Mia Venn", 1, 1)]))
            for record in (r.TWOWIKI, r.TWOWIKI_COLUMNS)
        ),
        ("2wiki", r.TWOWIKI_OPEN, ("w2", ("Otto Venn", "O. Venn"), 2, None, 0, [RAIN, VENN])),
        *(
            ("musique", record, ("2hop__12_34", ("the Orm", "Orm"), 2, "2hop", 3, [(*QUILL[:2], 1), ("Tarn", None, 2)]))
            for record in (r.MUSIQUE, {**r.MUSIQUE, **COLUMNS})
        ),
        ("nq", {**r.NQ, "id": 1}, ("1", ("Ben Marsh", "Marsh"), 1, None, 0, [])),
        ("triviaqa", r.TRIVIAQA, ("t1", ("Tarn", "Tarn town"), 1, None, 0, [])),
        *(
            ("triviaqa", record, ("t1", ("Tarn", "Tarn-Town", "tarn", "tarn town"), 1, None, 0, []))
            for record in (r.TRIVIAQA_COLUMNS, r.TRIVIAQA_DOCUMENT)
        ),
        *(
            (
                "hover",
                {**record, **label},
                ("v1", (answer, *more), 2, kind, 0, [("Ada Quill", 0, None), ("Tarn", 1, None)]),
            )
            for record in (r.HOVER, r.HOVER_COLUMNS)
            for label, answer, more, kind in (
                ({}, "yes", ("true", "supported"), "SUPPORTED"),
                ({"label": 0}, "no", ("false", "not supported"), "NOT_SUPPORTED"),
            )
        ),
        *(
            ("frames", record, ("f1", ("Ben Marsh",), 2, "Multiple constraints", 0, [QUILL, TARN]))
            for record in (r.FRAMES, {**r.without(r.FRAMES, "Prompt"), "Question": r.FRAMES["Prompt"]})
        ),
        *(
            ("bamboogle", {**r.without(r.BAMBOOGLE, "Answer"), **answer}, ("b1", ("Ben Marsh",), 2, None, 0, []))
            for answer in ({"Answer": "Ben Marsh"}, {"answer": ["Ben Marsh"]})
        ),
        ("popqa", r.POPQA, ("7", ("Ben Marsh", "B. Marsh"), 1, "founder", 2, [("Tarn", None, 0)])),
        (
            "popqa",
            r.without(r.POPQA, "paragraphs"),
            ("7", ("Ben Marsh", "B. Marsh"), 1, "founder", 0, [("Tarn", None, None)]),
        ),
        (
            "browsecomp-plus",
            r.BROWSECOMP_PLUS,
            ("769", ("Ben Marsh",), 2, None, 0, [("12", None, "12"), ("5", None, "5")]),
        ),
        (
            "multihoprag",
            {**r.MULTIHOPRAG, "id": 17},
            ("17", ("no",), 2, "comparison_query", 0, [("Tin rises", None, None), ("Tin falls", None, None)]),
        ),
    ],
)
def test_layouts(dataset: str, record: dict[str, Any], expected: tuple[Any, ...]) -> None:
    (question,) = read(dataset, record)
    assert told(question) == expected
    assert question.question in json.dumps(record)


def test_hotpotqa() -> None:
    """Fullwiki may lack gold passages; facts may point behind the last sentence; of two contexts with one title, the
    first is gold."""
    (question,) = read("hotpotqa", {**r.HOTPOTQA, "supporting_facts": [["Nowhere", 0], ["Moss", 9]]})
    assert question.gold[0] == GoldFact("Nowhere", 0, None, True)
    assert question.level == "hard"
    assert question.pool is not None
    assert question.pool[1].sentences == ("Tarn is a town.", "Ben Marsh founded it.")
    assert [fact.matches(passage) for fact in question.gold for passage in question.pool] == [False] * 5 + [True]
    (question,) = read("hotpotqa", {**r.HOTPOTQA, "context": [*r.HOTPOTQA["context"], ["Tarn", ["Another Tarn."]]]})
    assert question.pool is not None
    assert question.gold[1].passage_id == question.pool[1].id


@pytest.mark.parametrize("layout", [r.TWOWIKI, r.TWOWIKI_COLUMNS])
def test_twowiki(layout: dict[str, Any]) -> None:
    (question,) = read("2wiki", layout)
    assert question.evidences == (("Slow Rain", "director", "Mia Venn"), ("Mia Venn", "father", "Otto Venn"))
    assert question.answer_id == "Q3"
    (question,) = read("2wiki", {**r.TWOWIKI_OPEN, **OPEN_FACTS})
    assert [fact.sentence for fact in question.gold] == [0, 1]


def test_musique() -> None:
    """Questions of a pair are told apart; a paragraph that is given twice has the idx that supports."""
    steps = [{**row, "paragraph_support_idx": None} for row in r.MUSIQUE["question_decomposition"]]
    question, other = read("musique", r.MUSIQUE, {**r.MUSIQUE, "answerable": False, "question_decomposition": steps})
    assert question.pool is not None
    novel, quill, town = question.pool
    assert [question.gold[1].matches(passage) for passage in question.pool] == [False, False, True]
    assert question.paragraph_idx == {novel.id: 0, quill.id: 1, town.id: 2}
    assert [sub.passage_id for sub in question.sub_questions] == [quill.id, town.id]
    assert question.sub_questions[1].question == "Which river flows through #1?"
    assert (question.answerable, other.answerable) == (True, False)
    assert question.id != other.id
    assert question.official_id == other.official_id == question.id
    assert all(sub.passage_id is None for sub in other.sub_questions)
    again = {**r.MUSIQUE["paragraphs"][2], "idx": 3, "is_supporting": False}
    (question,) = read("musique", {**r.MUSIQUE, "paragraphs": [*r.MUSIQUE["paragraphs"], again]})
    assert question.paragraph_idx[question.gold[1].passage_id or ""] == 2


def test_multihoprag() -> None:
    question, null = read("multihoprag", r.MULTIHOPRAG, {**r.NULL_QUERY, "id": 17})
    assert question.gold[0].matches(Passage.of("Elsewhere", "So it is: Tin rose by\n2%. And so on."))
    assert not question.gold[0].matches(Passage.of("Tin rises", "It is said that tin rose by 2%."))
    assert (null.id, null.gold, null.hops, null.answerable) == ("17", (), None, False)


def test_squad() -> None:
    document, flat = read("squad", r.SQUAD), read("squad", *r.SQUAD_FLAT)
    assert list(map(told, document)) == list(map(told, flat))
    first, second, third, last = document
    assert (first.answers, first.article) == (("Ben Marsh", "Marsh"), "Tarn_(town)")
    assert first.pool is second.pool is third.pool
    assert [passage.title for passage in first.pool or ()] == ["Tarn (town)"] * 2
    assert [passage.text for passage in last.pool or ()] == ["Moss is a town."]
    assert [third.gold[0].matches(passage) for passage in third.pool or ()] == [False, True]


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


@pytest.mark.parametrize("name", BENCHMARKS)
def test_records_are_recognized(name: str) -> None:
    likely = [benchmark.name for benchmark in recognize(r.as_record(r.FIRST_RECORDS[name]))]
    assert likely == {"triviaqa": ["nq", "triviaqa"], "nq": ["nq", "own"]}.get(name, [name])
