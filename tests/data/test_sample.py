"""The sample world keeps its promises: every gold reference exists and says what it is said to say."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from polyhop.data.passages import Passage
from polyhop.data.sample import load_sample, sample_passages
from polyhop.data.text import fold

PASSAGES = {passage.id: passage for passage in sample_passages()}
QUESTIONS = load_sample()
KINDS = {"single", "bridge", "composition", "comparison", "yes_no", "unanswerable"}


def by_kind(*kinds: str) -> list[Any]:
    return [pytest.param(question, id=question.id) for question in QUESTIONS if question.kind in kinds]


every_question = pytest.mark.parametrize("question", by_kind(*KINDS))


def says(passage: Passage, sentence: int | None, text: str) -> bool:
    where = passage.text if sentence is None else passage.sentences[sentence]
    return fold(text) in fold(where) or fold(text) in fold(passage.title)


def test_size() -> None:
    assert len(PASSAGES) == len(sample_passages()) >= 280
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS) >= 120
    assert len({fold(question.question) for question in QUESTIONS}) == len(QUESTIONS)


def test_passages_are_short_and_titled() -> None:
    for passage in PASSAGES.values():
        assert passage.title
        assert 2 <= len(passage.sentences) <= 6, passage.id
        assert all(re.search(r"[.!?][\"'”’)]*$", sentence) for sentence in passage.sentences), passage.id


def test_some_titles_are_shared() -> None:
    assert any(count > 1 for count in Counter(passage.title for passage in PASSAGES.values()).values())


def test_all_kinds_and_hops_are_there() -> None:
    assert {question.kind for question in QUESTIONS} == KINDS
    assert {question.hops for question in QUESTIONS} == {1, 2, 3, 4}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_splits_are_balanced_by_kind(kind: str) -> None:
    counts = Counter(question.split for question in QUESTIONS if question.kind == kind)
    assert set(counts) == {"train", "dev", "test"}
    assert max(counts.values()) - min(counts.values()) <= 2


def test_splits_partition_the_questions() -> None:
    parts = [load_sample("train"), load_sample("dev"), load_sample("test")]
    assert sum(map(len, parts)) == len(QUESTIONS)


def test_an_unknown_split_is_an_error() -> None:
    with pytest.raises(ValueError, match="train, dev and test, not 'validation'"):
        load_sample("validation")  # type: ignore[arg-type]


@every_question
def test_gold_sentences_exist(question: Any) -> None:
    assert question.gold_facts
    assert len(set(question.gold_facts)) == len(question.gold_facts)
    for fact in question.gold_facts:
        assert fact.sentence is not None
        assert 0 <= fact.sentence < len(PASSAGES[fact.passage_id].sentences)
    assert set(question.gold_passages) == {fact.passage_id for fact in question.gold_facts}


@every_question
def test_sub_questions_stand_on_gold_and_point_backwards(question: Any) -> None:
    for number, sub in enumerate(question.sub_questions, 1):
        assert all(1 <= int(reference) < number for reference in re.findall(r"#(\d+)", sub.question))
        if sub.passage_id is None:
            assert question.kind == "unanswerable"
            assert sub.answer == "unknown"
        else:
            gold = [fact.sentence for fact in question.gold_facts if fact.passage_id == sub.passage_id]
            assert any(says(PASSAGES[sub.passage_id], sentence, sub.answer) for sentence in gold)


@every_question
def test_hops_count_the_sub_questions(question: Any) -> None:
    assert question.hops == len(question.sub_questions)


@pytest.mark.parametrize("question", by_kind("single", "bridge", "composition"))
def test_the_answer_stands_in_a_gold_sentence(question: Any) -> None:
    assert any(says(PASSAGES[fact.passage_id], fact.sentence, question.answers[0]) for fact in question.gold_facts)
    assert fold(question.answers[0]) == fold(question.sub_questions[-1].answer)


@pytest.mark.parametrize("question", by_kind("bridge", "composition"))
def test_the_question_does_not_name_what_it_goes_through(question: Any) -> None:
    for sub in question.sub_questions:
        assert fold(sub.answer) not in fold(question.question)


@pytest.mark.parametrize("question", by_kind("yes_no"))
def test_yes_no_questions_are_answered_yes_or_no(question: Any) -> None:
    assert question.answers in (("yes",), ("no",))


def test_yes_and_no_are_balanced() -> None:
    counts = Counter(question.answers[0] for question in QUESTIONS if question.kind == "yes_no")
    assert abs(counts["yes"] - counts["no"]) <= 2


@pytest.mark.parametrize("question", by_kind("unanswerable"))
def test_unanswerable_questions_have_no_answer(question: Any) -> None:
    assert question.answers == ("unknown",)
    assert question.sub_questions[-1].passage_id is None
