"""The sample world keeps its promises: every gold reference exists and says what it is said to say."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from polyhop.data.passages import Passage
from polyhop.data.sample import load_sample, sample_passages
from polyhop.data.text import fold

PASSAGES = {passage.id: passage for passage in sample_passages()}
QUESTIONS = load_sample()
KINDS = {"single", "bridge", "composition", "comparison", "yes_no", "unanswerable"}


def says(passage: Passage, sentence: int | None, text: str) -> bool:
    where = passage.text if sentence is None else passage.sentences[sentence]
    return fold(text) in fold(where) or fold(text) in fold(passage.title)


def test_passages_and_questions() -> None:
    assert len(PASSAGES) == len(sample_passages()) >= 280
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS) >= 120
    assert {question.kind for question in QUESTIONS} == KINDS
    assert {question.hops for question in QUESTIONS} == {1, 2, 3, 4}
    assert any(count > 1 for count in Counter(passage.title for passage in PASSAGES.values()).values())
    for passage in PASSAGES.values():
        assert passage.title
        assert 2 <= len(passage.sentences) <= 6, passage.id
        assert all(re.search(r"[.!?][\"'”’)]*$", sentence) for sentence in passage.sentences), passage.id


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_gold_and_sub_questions(kind: str) -> None:
    for question in (question for question in QUESTIONS if question.kind == kind):
        assert question.gold_facts
        assert len(set(question.gold_facts)) == len(question.gold_facts)
        for fact in question.gold_facts:
            assert fact.sentence is not None
            assert 0 <= fact.sentence < len(PASSAGES[fact.passage_id].sentences)
        assert set(question.gold_passages) == {fact.passage_id for fact in question.gold_facts}
        assert question.hops == len(question.sub_questions)
        for number, sub in enumerate(question.sub_questions, 1):
            assert all(1 <= int(reference) < number for reference in re.findall(r"#(\d+)", sub.question))
            if sub.passage_id is None:
                assert (kind, sub.answer) == ("unanswerable", "unknown")
            else:
                gold = [fact.sentence for fact in question.gold_facts if fact.passage_id == sub.passage_id]
                assert any(says(PASSAGES[sub.passage_id], sentence, sub.answer) for sentence in gold)
        if kind in ("single", "bridge", "composition"):
            answer = question.answers[0]
            assert any(says(PASSAGES[fact.passage_id], fact.sentence, answer) for fact in question.gold_facts)
            assert fold(answer) == fold(question.sub_questions[-1].answer)
        if kind == "unanswerable":
            assert question.answers == ("unknown",)
            assert question.sub_questions[-1].passage_id is None


def test_the_split_without_answers_has_thirty_questions_of_each_kind() -> None:
    found = load_sample("unanswerable")
    assert Counter(question.kind for question in found) == {"unanswerable": 30, "false_premise": 30}
    assert {question.answers for question in found} == {("unknown",)}
    assert len({question.id for question in (*found, *QUESTIONS)}) == 60 + len(QUESTIONS)
