"""What a question asks for: words as bits, their worth, and the names that stand in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain.features import NameKey, QuestionFeatures, WordWeights
from polyhop.data.text import stem, title_key


def asked(text: str, idf: Callable[[str], float] = lambda word: 1.0) -> QuestionFeatures:
    return QuestionFeatures(text, idf)


def stems(*words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words)


# --- words -----------------------------------------------------------------------------------------------------------


def test_a_mask_says_which_words_of_the_question_are_there() -> None:
    question = asked("Where was the director of Solaris born?")
    assert question.words(question.mask(stems("directors", "born", "film", "where"))) == ("director", "born")
    assert question.mask(stems("film")) == 0
    assert question.mask(frozenset()) == 0
    assert question.mask(stems("director", "solaris", "born")) == question.all_words


@pytest.mark.parametrize("text", ["", "  ", "What is it, and why?", "the of", "?!", "\x00\x07", "\ud800"])
def test_a_question_without_topic_asks_for_nothing(text: str) -> None:
    question = asked(text)
    if text != "\ud800":  # which becomes a replacement character
        assert question.all_words == 0
        assert question.title_candidates == []
    assert question.weights(0) == 0
    assert question.mask(stems("moon")) == 0


def test_of_a_very_long_question_the_beginning_is_read() -> None:
    words = [f"word{n}" for n in range(5000)]
    question = asked(" ".join(words))
    read = question.words(question.all_words)
    assert 100 <= len(read) <= 1000
    assert list(read) == words[: len(read)]
    assert question.key == asked(" ".join(words[: len(read)])).key
    assert len(question.title_candidates) <= 20 * len(read)
    assert question.weights(question.all_words) == pytest.approx(1)


# --- worth -----------------------------------------------------------------------------------------------------------


def test_the_worth_of_words_is_their_share_of_the_weight() -> None:
    weights = {"director": 1.0, "Solaris": 6.0, "born": 3.0, "zzz": 0.0}
    question = asked("Where was the director of Solaris born, zzz?", weights.__getitem__)
    assert question.weights(question.mask(stems("solaris"))) == pytest.approx(0.6)
    assert question.weights(question.mask(stems("solaris", "born"))) == pytest.approx(0.9)
    assert question.weights(question.mask(stems("zzz"))) == 0
    assert question.weights(question.all_words) == pytest.approx(1)


SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=10)


@given(SHARES, st.integers(0, 1023), st.integers(0, 1023))
def test_a_union_is_worth_what_its_parts_are_without_what_they_share(shares: list[float], one: int, other: int) -> None:
    worth = WordWeights(shares)
    assert worth(one | other) == pytest.approx(worth(one) + worth(other) - worth(one & other))
    assert worth(one | other) <= worth(one) + worth(other) + 1e-9
    assert worth(one | other) >= max(worth(one), worth(other))
    assert worth(0) == 0


@given(SHARES, st.integers(0, 1023), st.floats(0, 1), st.integers(0, 1023))
def test_what_is_explained_is_worth_less_and_the_rest_as_much(
    shares: list[float], explained: int, degree: float, asked: int
) -> None:
    before = WordWeights(shares)
    after = before.after(explained, degree)
    assert after(asked & ~explained) == before(asked & ~explained)
    assert after(asked & explained) == pytest.approx((1 - degree) * before(asked & explained))
    assert after(asked) <= before(asked)
    assert before(asked) == WordWeights(shares)(asked)  # the first one stays as it was


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Who made Solaris?", "Solaris"),
        ("Where was Solaris's director born?", "Solaris"),
        ("Who sang in Help!?", "Help!"),
        ("Who founded Paris, Texas?", "Paris, Texas"),
        ("What did J. R. R. Tolkien write?", "J.R.R. Tolkien"),
        ("What did J.R.R. Tolkien write?", "J. R. R. Tolkien"),
        ("Where is Besancon?", "Besançon"),
        ("Where is BESANÇON?", "Besançon"),
        ("Кто снял фильм Солярис?", "Солярис"),
        ("Who is O’Neill?", "O'Neill"),
    ],
)
def test_a_title_in_the_question_is_a_candidate_and_has_a_place(text: str, title: str) -> None:
    question, key = asked(text), title_key(title)
    place = question.find(NameKey.of(key))
    assert key in question.title_candidates
    assert question.mentions(NameKey.of(key))
    assert place
    assert question.key[slice(*place)].strip() == key


def test_a_name_is_as_rare_as_its_words_together() -> None:
    idf = {"zavrazhye": 7.0, "john": 1.0, "smith": 2.0, "of": 99.0}
    question = asked("Who?", idf.__getitem__)
    assert question.rarity(NameKey.of("john smith")) == 3.0
    assert question.rarity(NameKey.of("zavrazhye")) > question.rarity(NameKey.of("john smith"))
    assert question.rarity(NameKey.of("john john of smith")) == 3.0


def test_a_number_is_no_capital() -> None:
    for text in ("who directed the 1972 film solaris", "who directed the film solaris"):
        asked = QuestionFeatures(text, lambda word: 1.0)
        place = asked.find(NameKey.of("solaris"))
        assert place is not None
        assert asked.capitalizes(place)
    asked = QuestionFeatures("Who directed the film solaris by Soderbergh?", lambda word: 1.0)
    place = asked.find(NameKey.of("solaris"))
    assert place is not None
    assert not asked.capitalizes(place)
