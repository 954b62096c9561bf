"""Small talk: what is answered without reading, and what is left alone."""

from __future__ import annotations

import pytest

from polyhop.engines.lexical.prompt import ParsedPrompt
from polyhop.engines.lexical.skills.direct import answer_directly, small_talk


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


def test_of_the_world_nothing_is_known() -> None:
    assert answer_directly(ParsedPrompt({"question": "Hi"}, ()))["answer"] == "Hello!"
    reply = answer_directly(ParsedPrompt({"question": "What is the capital of France?"}, ()))
    assert (reply["answer"], reply["confidence"]) == ("unknown", 0.0)
