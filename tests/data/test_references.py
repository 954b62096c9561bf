"""References to earlier answers, found and replaced."""

from __future__ import annotations

import pytest

from polyhop.data.references import is_chain, references, replace_references


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


@pytest.mark.parametrize(
    ("questions", "chain"),
    [
        (["Who wrote A?"], True),
        (["Who wrote A?", "Where was #1 born?", "Who founded #2?"], True),
        (["Who wrote A?", "Who sang B?", "Where did #1 meet #2?"], True),  # the last needs both
        (["Who wrote A?", "Who wrote B?"], False),
        (["Who wrote A?", "Where was #1 born?", "When was #1 born?"], False),
        (["Who wrote #3?", "What is B?", "Where was #2 born, #7 or #3?"], False),  # references to nothing before
    ],
)
def test_whether_the_last_question_needs_all_others(questions: list[str], chain: bool) -> None:
    assert is_chain(questions) == chain


def test_answers_take_the_place_of_references() -> None:
    answers = {1: "Ann", 2: "", 12: "#1"}
    assert replace_references("Is #1 older than #12?", answers.get) == "Is Ann older than #1?"  # each is replaced once
    assert replace_references("#2, #3 and #1s", answers.get) == ", #3 and #1s"
    assert replace_references("#1?", {1: r"\1"}.get) == r"\1?"  # an answer is no pattern
