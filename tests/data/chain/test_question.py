"""What a question asks for: its words with weights, and where they occur."""

from __future__ import annotations

import numpy as np
import pytest

from polyhop.data.chain.store import Store
from polyhop.data.chain.words import LONGEST_NAME, Question, read, record_of, specificity, without_flags
from polyhop.data.passages import Passage

TEXTS = ("A film by John Smith.", "John sang.", "John danced.", "The director was born in Zavrazhye.")
STORE = Store.of(record_of(Passage.of("", text)) for text in TEXTS)


def words_of(question: Question, text: str) -> tuple[set[str], list[float]]:
    """The question's words in a text, and the weights of the pairs in it."""
    records = Store.of([record_of(Passage.of("", text))]).records([0])
    ends = records.words == 0
    has, pairs = question.occurrences(records.words, np.cumsum(ends) - ends, int(ends.sum()))
    words = {question.words[at] for at in np.flatnonzero(has.any(axis=0)).tolist()}
    return words, question.pairs[pairs.any(axis=0)].tolist()


def name(text: str) -> np.ndarray:
    numbers = without_flags(np.array([number for word in read(text) for number in word.numbers], np.uint32))
    return np.pad(numbers, (0, LONGEST_NAME - len(numbers)))[None]


def test_the_verb_counts_for_who_does_it() -> None:
    question = Question("Who is the director of Solaris, and who is its actor?", STORE)
    assert question.words == ["director", "Solaris", "actor"]
    assert words_of(question, "It was directed by her.")[0] == {"director"}
    assert words_of(question, "She acted.")[0] == {"actor"}
    both = Question("Who directed what the director acts in?", STORE)
    assert words_of(both, "It was directed by her.")[0] == {"directed"}
    assert words_of(Question("What does Tor hide?", STORE), "T is a letter.")[0] == set()


def test_rarer_words_weigh_more_and_unknown_ones_nothing() -> None:
    question = Question("Was John, the director, an elephant?", STORE)
    john, director, elephant = question.weights.tolist()
    assert director > john > elephant == 0
    assert question.weights.sum() == pytest.approx(1)
    assert question.idf[1] == pytest.approx(1)  # one passage has it


def test_pairs_are_neighbours_in_question_and_text() -> None:
    question = Question("Was the film by John Smith born of a director?", STORE)
    _, near = words_of(question, "It is a film of John's.")
    assert len(near) == 1
    assert words_of(question, "A film that nobody had ever seen, not even John.")[1] == []
    assert words_of(question, "It is a film. John sang.")[1] == []  # in two sentences


@pytest.mark.parametrize("text", ["", "What is it, and why?", "?!", "\x00\x07"])
def test_a_question_without_topic_asks_for_nothing(text: str) -> None:
    question = Question(text, STORE)
    assert len(question.words) == len(question.weights) == len(question.pairs) == 0
    assert words_of(question, "The moon.") == (set(), [])


def test_a_name_is_as_rare_as_its_distinct_topic_words_together() -> None:
    one, both = STORE.rarity(name("Smith")), STORE.rarity(name("John Smith"))
    assert both > one > STORE.rarity(name("John"))
    assert STORE.rarity(name("John of the John Smith")) == pytest.approx(both)
    assert STORE.rarity(name("elephant")) == pytest.approx(STORE.rarity(name("Zavrazhye")))
    assert specificity(np.array([0.0, 0.5, 1.0]), 0.5).tolist() == pytest.approx([0, 0.5, 2 / 3])
