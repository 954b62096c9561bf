"""What a question asks for: its words with weights, and where they occur."""

from __future__ import annotations

import numpy as np
import pytest

from polyhop.data.chain.store import Store
from polyhop.data.chain.words import LONGEST_NAME, Question, read, record_of, specificity, without_flags
from polyhop.data.passages import Passage

TEXTS = ("A film by John Smith.", "John sang.", "John danced.", "The director was born in Zavrazhye.")
STORE = Store.of(record_of(Passage.of("", text)) for text in TEXTS)


def name(text: str) -> np.ndarray:
    numbers = without_flags(np.array([number for word in read(text) for number in word.numbers], np.uint32))
    return np.pad(numbers, (0, LONGEST_NAME - len(numbers)))[None]


def test_rarer_words_weigh_more_and_unknown_ones_nothing() -> None:
    question = Question("Was John, the director, an elephant?", STORE)
    john, director, elephant = question.weights.tolist()
    assert director > john > elephant == 0
    assert question.weights.sum() == pytest.approx(1)
    assert question.idf[1] == pytest.approx(1)  # one passage has it


def test_a_name_is_as_rare_as_its_distinct_topic_words_together() -> None:
    one, both = STORE.rarity(name("Smith")), STORE.rarity(name("John Smith"))
    assert both > one > STORE.rarity(name("John"))
    assert STORE.rarity(name("John of the John Smith")) == pytest.approx(both)
    assert STORE.rarity(name("elephant")) == pytest.approx(STORE.rarity(name("Zavrazhye")))
    assert specificity(np.array([0.0, 0.5, 1.0]), 0.5).tolist() == pytest.approx([0, 0.5, 2 / 3])
