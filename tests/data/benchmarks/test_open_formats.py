"""Benchmarks over Wikipedia and the web: claims, links, popular entities and documents by id."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.benchmarks import GoldFact, QuestionRecord, find_benchmark
from polyhop.data.errors import Problem
from polyhop.data.passages import Passage

from . import records as r


def read(dataset: str, record: Any) -> QuestionRecord:
    (question,) = find_benchmark(dataset).read([r.as_record(record)])
    assert isinstance(question, QuestionRecord), question
    return question


@pytest.mark.parametrize("layout", [r.HOVER, r.HOVER_COLUMNS])
def test_hover(layout: dict[str, Any]) -> None:
    question = read("hover", layout)
    assert (question.id, question.question, question.hops) == ("v1", r.HOVER["claim"], 2)
    assert question.answers[0] == "yes"
    assert question.gold == (GoldFact("Ada Quill", 0, unique_title=True), GoldFact("Tarn", 1, unique_title=True))
    assert read("hover", {**layout, "label": "NOT_SUPPORTED"}).answers[0] == "no"
    assert read("hover", {**layout, "label": 0}).answers[0] == "no"


@pytest.mark.parametrize("layout", [r.FRAMES, {**r.without(r.FRAMES, "Prompt"), "Question": r.FRAMES["Prompt"]}])
def test_frames(layout: dict[str, Any]) -> None:
    question = read("frames", layout)
    assert (question.question, question.answers, question.hops) == (r.FRAMES["Prompt"], ("Ben Marsh",), 2)
    assert [fact.title for fact in question.gold] == ["Ada Quill", "Tarn (town)"]
    assert question.gold[1].matches(Passage.of("Tarn (town)", "Any edition."))


@pytest.mark.parametrize("answer", [{"Answer": "Ben Marsh"}, {"answer": ["Ben Marsh"]}])
def test_bamboogle(answer: dict[str, Any]) -> None:
    question = read("bamboogle", {**r.without(r.BAMBOOGLE, "Answer"), **answer})
    assert (question.id, question.answers, question.gold, question.hops) == ("b1", ("Ben Marsh",), (), 2)


def test_popqa() -> None:
    tarn, moss = Passage.of("Tarn", "Ben Marsh founded Tarn."), Passage.of("Moss", "Moss is a town.")
    question = read("popqa", r.POPQA)
    assert (question.id, question.answers, question.kind) == ("7", ("Ben Marsh", "B. Marsh"), "founder")
    assert question.pool == (tarn, moss)
    assert question.gold == (GoldFact("Tarn", passage_id=tarn.id, unique_title=True),)
    official = read("popqa", r.without(r.POPQA, "paragraphs"))
    assert official.pool is None
    assert official.gold == (GoldFact("Tarn", unique_title=True),)


def test_browsecomp_plus() -> None:
    question = read("BrowseComp-Plus", r.BROWSECOMP_PLUS)
    assert (question.id, question.answers, question.hops) == ("769", ("Ben Marsh",), 2)
    first, second = question.gold
    assert first.matches(Passage("12", "Any title", "Any text."))
    assert not first.matches(Passage("99", "12", "Another document."))
    assert second.passage_id == "5"


@pytest.mark.parametrize(
    ("dataset", "record", "reason"),
    [
        ("hover", {**r.HOVER, "label": "MAYBE"}, "label must be SUPPORTED or NOT_SUPPORTED"),
        ("hover", r.without(r.HOVER, "supporting_facts"), "supporting_facts is missing"),
        ("frames", {**r.FRAMES, "wiki_links": "[http"}, "wiki_links is a text, but not of a list"),
        ("bamboogle", {**r.BAMBOOGLE, "Answer": 3}, "answer must be a text or a list of texts"),
        ("bamboogle", {**r.BAMBOOGLE, "Answer": [" "]}, "answer must be a text or a list of texts"),
        ("popqa", {**r.POPQA, "possible_answers": "[]"}, "possible_answers is missing or empty"),
        ("browsecomp-plus", {**r.BROWSECOMP_PLUS, "evidence_docs": []}, "evidence_docs is missing or empty"),
    ],
)
def test_malformed_records(dataset: str, record: dict[str, Any], reason: str) -> None:
    (problem,) = find_benchmark(dataset).read([r.as_record(record)])
    assert isinstance(problem, Problem)
    assert problem.reason == reason
