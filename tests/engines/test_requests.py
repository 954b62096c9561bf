"""Requests read as plain strings, and responses written."""

from __future__ import annotations

from dspy import lm15

from polyhop.engines.requests import Message, read_request, respond


def test_content_in_parts_and_no_system_prompt() -> None:
    said = lm15.Message.user([lm15.TextPart(text="Who "), lm15.TextPart(text="was it?")])
    assert read_request(lm15.Request(model="any", messages=[said])) == ("", (Message("user", "Who was it?"),))


def test_a_response_counts_four_characters_as_a_token() -> None:
    request = lm15.Request(model="any", system="12345678", messages=[lm15.Message.user("x" * 40)])
    response = respond(request, "y" * 8)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (12, 2)
    assert response.message.parts[0].text == "y" * 8
    assert respond(request, "y" * 8).id == response.id != respond(request, "\ud800").id
