"""What a reply says beyond its types."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.signatures.replies import read_probability, read_texts


@pytest.mark.parametrize(
    ("reply", "texts"),
    [
        (["Who is X?", " Where\nis #1? "], ["Who is X?", "Where is #1?"]),
        (["A is B.", "", " ", "None", "n/a", "[]"], ["A is B."]),
        (["1. Who is X?", "2) Where is #1?"], ["Who is X?", "Where is #1?"]),
        (["1. FC Köln plays where?"], ["1. FC Köln plays where?"]),  # a name
        (["2. Bundesliga is what?", "3. Liga is what?"], ["2. Bundesliga is what?", "3. Liga is what?"]),
        (["#1 was born where?"], ["#1 was born where?"]),
        ([], []),
    ],
)
def test_read_texts(reply: list[str], texts: list[str]) -> None:
    assert read_texts(reply) == texts


@pytest.mark.parametrize(
    ("reply", "probability"),
    [(0.9, 0.9), (1, 1.0), (1.2, 1.0), (2, 0.02), (85, 0.85), (100, 1.0), (101, 1.0), (-3, 0.0), (math.nan, 0.0)],
)
def test_read_probability(reply: float, probability: float) -> None:
    assert read_probability(reply) == pytest.approx(probability)


@given(st.floats())
def test_any_number_is_a_probability(number: float) -> None:
    assert 0.0 <= read_probability(number) <= 1.0
