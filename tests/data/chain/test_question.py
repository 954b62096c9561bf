"""What a question asks for: its words with weights, and where they occur."""

from __future__ import annotations

import pytest

from polyhop.data.chain.graph import Question, specificity
from polyhop.data.chain.store import Store
from polyhop.data.chain.words import PassageWords, read
from polyhop.data.passages import Passage

TEXTS = ("A film by John Smith.", "John sang.", "John danced.", "The director was born in Zavrazhye.")
STORE = Store.of(Passage.of("", text) for text in TEXTS)


def rarity(name: str) -> float:
    return STORE.rarity(stem for word in read(name) for stem in word.stems)


def test_rarer_words_weigh_more_and_unknown_ones_nothing() -> None:
    question = Question("Was John, the director, an elephant?", STORE)
    john, director, elephant = question.weights
    assert director > john > elephant == 0
    assert sum(question.weights) == pytest.approx(1)
    assert question.idf[1] == pytest.approx(1)  # one passage has it


def test_a_name_is_as_rare_as_its_distinct_topic_words_together() -> None:
    assert rarity("John Smith") > rarity("Smith") > rarity("John")
    assert rarity("John of the John Smith") == pytest.approx(rarity("John Smith"))
    assert rarity("elephant") == pytest.approx(rarity("Zavrazhye"))
    assert [specificity(value, 0.5) for value in (0.0, 0.5, 1.0)] == pytest.approx([0, 0.5, 2 / 3])


def test_what_a_passage_explains() -> None:
    """By text; a pair is two neighbours of the question that are neighbours in one sentence. A verb counts for who does
    it."""
    question = Question("Who was the director of the silent film?", STORE)
    assert question.words == ["director", "silent", "film"]
    explained = question.explained(PassageWords(Passage.of("Film", "A silent film. It was directed well. Silent.")))
    assert explained.sentences == [{2}, {1, 2}, {0}, {1}]
    assert explained.pairs == {1}
