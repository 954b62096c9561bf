"""The names in a question and the parts that it is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.sample import load_sample
from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.question import mask


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who made the film Kiss and Tell?", ("Kiss and Tell",)),
        ("Are the films Solaris and Stalker Soviet?", ("Solaris", "Stalker Soviet")),
        ('Who wrote "Death of Samantha"?', ('"Death of Samantha"',)),
        ("Who directed My First Love (1945 Film)?", ("My First Love (1945 Film)",)),
        ("Is Hajjiabad, Jask in Iran?", ("Hajjiabad, Jask", "Iran")),
    ],
)
def test_names_are_masked_whole(question: str, names: tuple[str, ...]) -> None:
    assert mask(question).names == names


def test_a_digit_behind_a_name_is_not_of_its_number() -> None:
    masked = mask('Who said "A b"9 and "C d"٣?')
    assert masked.names == ('"A b"', '"C d"')
    assert masked.unmask(masked.text) == 'Who said "A b" 9 and "C d" ٣?'


DECOMPOSED = [
    ("Who directed Solaris?", ["Who directed Solaris?"]),
    (
        "Where was the director of film Human Flow born?",
        ["Who is the director of film Human Flow?", "Where was #1 born?"],
    ),
    (
        "When did the country of Izgoy's performer invade Manchuria?",
        ["Who is Izgoy's performer?", "What is the country of #1?", "When did #2 invade Manchuria?"],
    ),
    (
        "What is the date of death of the composer of film Shakespeare Wallah?",
        ["Who is the composer of film Shakespeare Wallah?", "What is the date of death of #1?"],
    ),
    (
        "Where does the Merrimack River start in the state where the Kraus House is located?",
        ["In which state the Kraus House is located?", "Where does the Merrimack River start in #1?"],
    ),
    (
        "Which film came out first, Waltz of Love or Everybody's Old Man?",
        ["When was Waltz of Love released?", "When was Everybody's Old Man released?"],
    ),
    (
        "Which film has the director who was born earlier, Megham or Das Boot?",
        [
            "Who is the director of Megham?",
            "Who is the director of Das Boot?",
            "When was #1 born?",
            "When was #2 born?",
        ],
    ),
    (
        "Who is older, the creator of C++ or the creator of Python?",
        ["Who is the creator of C++?", "Who is the creator of Python?", "When was #1 born?", "When was #2 born?"],
    ),
    (
        "Are Nantong and Jingdezhen located in the same country?",
        ["In which country is Nantong?", "In which country is Jingdezhen?"],
    ),
    (
        "Which river flows through the native city of the founder of the football club that plays at Camp Nou?",
        [
            "Which football club plays at Camp Nou?",
            "Who is the founder of #1?",
            "What is the native city of #2?",
            "Which river flows through #3?",
        ],
    ),
    ("In which department of Colombia does Cali lie?", ["In which department of Colombia does Cali lie?"]),
]


@pytest.mark.parametrize(("question", "sub_questions"), DECOMPOSED)
def test_decomposition(question: str, sub_questions: list[str]) -> None:
    assert decompose(question) == sub_questions


@given(st.text(min_size=1, max_size=120))
def test_any_text_decomposes_into_something(text: str) -> None:
    steps = decompose(text)
    assert 1 <= len(steps) <= 10
    assert all(step.endswith("?") for step in steps)


@pytest.mark.parametrize("example", load_sample(), ids=lambda example: example.id)
def test_references_point_backwards(example: object) -> None:
    import re

    for number, step in enumerate(decompose(example.question), 1):  # type: ignore[attr-defined]
        assert all(int(reference) < number for reference in re.findall(r"#(\d+)", step))
