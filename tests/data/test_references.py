"""References to earlier answers, found and replaced."""

from __future__ import annotations

import pytest

from polyhop.data.references import references, replace_references


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Where was #1 born?", [1]),
        ("Is #2's mother older than #1, or than #2?", [2, 1]),
        ("Is it #12?", [12]),
        ("Who sang #1s and C#?", []),  # names
        ("Who is # 1?", []),
        ("Who is #0?", [0]),  # whether there is such a sub-question is for others to say
        (f"Who is #{'9' * 5000}?", []),
    ],
)
def test_which_answers_a_text_refers_to(text: str, numbers: list[int]) -> None:
    assert references(text) == numbers


def test_answers_take_the_place_of_references() -> None:
    answers = {1: "Ann", 2: "", 12: "#1"}
    assert replace_references("Is #1 older than #12?", answers.get) == "Is Ann older than #1?"  # each is replaced once
    assert replace_references("#2, #3 and #1s", answers.get) == ", #3 and #1s"
    assert replace_references("#1?", {1: r"\1"}.get) == r"\1?"  # an answer is no pattern
