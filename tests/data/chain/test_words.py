"""What a passage says: its words as numbers, and the names that it mentions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain.words import (
    FORM_BITS,
    LONGEST_NAME,
    find_names,
    names_in,
    read,
    record_of,
    without_flags,
)
from polyhop.data.passages import Passage


def numbers(text: str) -> list[int]:
    return [number >> FORM_BITS for word in read(text) for number in word.numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He studied at the University of Amsterdam.", ["university of amsterdam"]),
        ("It was made by Moore, Smith.", ["moore", "smith"]),
        ("It was made by Moore (Smith) and others.", ["moore", "smith"]),
        ("She sang. The Beatles listened.", ["beatles"]),
        ("The Beatles' song is McCartney's.", ["beatles", "mccartney"]),
        ("the house is Zola’s and stands in Médan", ["zola", "medan"]),
        ("the house of Ludwig van Beethoven in Bonn", ["ludwig van beethoven in bonn"]),
        ("it is the Rimsky-Korsakov conservatory", ["rimsky korsakov"]),
        ("When? Where? What!", []),
        ("Films are made in Rome. Painters live in Paris.", ["rome", "paris"]),
        ("где он жил: в городе Москва", ["москва"]),
        ("a film by I. V. Sasi", ["iv sasi"]),
    ],
)
def test_capitalized_names(text: str, expected: list[str]) -> None:
    words = record_of(Passage.of("One Title", text)).words
    assert [without_flags(words[slice(*span)]).tolist() for span in names_in(words)] == list(map(numbers, expected))


@pytest.mark.parametrize("glue", [". ", ", "])  # many sentences, or one
def test_of_a_very_long_passage_the_beginning_is_read(glue: str) -> None:
    text = "He met Anna Berg" + glue + glue.join(f"Word{n} Here" for n in range(9000)) + glue + "He met Zeno Quist"
    words = without_flags(record_of(Passage.of("Page", text)).words).tolist()
    assert numbers("berg")[0] in words
    assert numbers("zeno")[0] not in words
    assert words == without_flags(record_of(Passage.of("Page", text + text)).words).tolist()


WORDS = st.lists(st.integers(0, 6), max_size=40).map(lambda words: np.array(words, np.uint32))
NAMES = st.lists(st.lists(st.integers(1, 6), max_size=4), min_size=1, max_size=8)


@given(NAMES, WORDS)
def test_names_are_found_wherever_their_words_stand(names: list[list[int]], words: np.ndarray) -> None:
    text = words.tolist()
    expected = {
        (which, at) for which, name in enumerate(names) if name for at in range(len(text))
        if text[at : at + len(name)] == name
    }  # fmt: skip
    padded = np.array([name + [0] * (LONGEST_NAME - len(name)) for name in names], np.uint32)
    which, place = find_names(padded, words)
    assert set(zip(which.tolist(), place.tolist(), strict=True)) == expected
