"""Small talk and arithmetic: what is answered without reading, and what is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.engines.lexical.prompt import ParsedPrompt
from polyhop.engines.lexical.skills.direct import answer_directly, arithmetic, small_talk


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Thank you", "You are welcome."),
        ("thanks a lot!", "You are welcome."),
        ("Okay, thank you so much for your help!", "You are welcome."),
        ("Hello", "Hello!"),
        ("good morning everyone", "Hello!"),
        ("Goodbye.", "Goodbye!"),
        ("see you later", "Goodbye!"),
        ("How are you?", "I am well, thank you."),
        ("Who sang Hello?", None),
        ("Who wrote the song Thank You?", None),
        ("Hello, who directed Vertigo?", None),
        ("Goodbye Lenin", None),
        ("Good Night, and Good Luck", None),
    ],
)
def test_small_talk(text: str, reply: str | None) -> None:
    assert small_talk(text) == reply


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("What is 2 + 2?", "4"),
        ("2+2", "4"),
        ("what's 12 times 3.5", "42"),
        ("0.1 + 0.2 =", "0.3"),
        ("Calculate (1 + 2) * 3 - 10", "-1"),
        ("What is 1 / 3?", "1/3"),
        ("1,000 minus 1", "999"),
        ("2 to the power of 10", "1024"),
        ("7 squared plus 1", "50"),
        ("2^-2", "0.25"),
        ("How much is 10 divided by 4?", "2.5"),
        ("007 + 1", "8"),
        ("12345678901234567890.5 * 2", "24691357802469135781"),
        ("-5 / 2", "-2.5"),
    ],
)
def test_sums_are_exact(text: str, result: str) -> None:
    assert arithmetic(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0", "9**9**9**9", "2 ** 100000", "1984", "What is 9/11?", "1914-1918", "2020-10-12", "5 +", "+ 5",
        "(1 + 2", "2 + x", "1 // 2", "().__class__", "What is 3 + 4 in Roman numerals?", "((((" * 60, "1+" * 150 + "1",
        "", "1 2", "What is two plus two?", "Who won 6-3?", "3.4.5 + 1",
    ],
)  # fmt: skip
def test_what_is_no_sum_has_no_result(text: str) -> None:
    assert arithmetic(text) is None


@given(st.text(alphabet="0123456789+-*/(). ", max_size=60))
def test_any_result_is_short(text: str) -> None:
    result = arithmetic(text)
    assert result is None or len(result) < 700


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_sums_of_whole_numbers(a: int, b: int) -> None:
    assert arithmetic(f"({a}) + ({b})") == str(a + b)
    assert arithmetic(f"({a}) * ({b})") == str(a * b)


def test_of_the_world_nothing_is_known() -> None:
    assert answer_directly(ParsedPrompt({"question": "Hi"}, ()))["answer"] == "Hello!"
    reply = answer_directly(ParsedPrompt({"question": "What is the capital of France?"}, ()))
    assert (reply["answer"], reply["confidence"]) == ("unknown", 0.0)
