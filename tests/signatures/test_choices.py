"""Choices are read as models write them; prose that opens with such a word stays an error."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from polyhop.signatures.replies import Action, Attribution, Revision, Route


@pytest.mark.parametrize(
    ("kind", "reply", "word"),
    [
        (Route, "plan", "plan"),
        (Route, "[Planning]", "plan"),
        (Route, '"single".', "single"),
        (Route, "**Direct**: a greeting", "direct"),
        (Route, "Route: [No Retrieval]", "direct"),
        (Route, "[Retrieval] 'population of Paris'", "single"),
        (Action, "[LLM]", "answer"),
        (Action, "Retrieve: where he was born", "retrieve"),
        (Attribution, "Attributable. It is stated in 1s2.", "attributable"),
        (Attribution, "attribution: CONTRADICTORY", "contradictory"),
        (Revision, "REVISED\nbecause", "revised"),
        (Revision, "Unconfident - nothing new", "unconfident"),
        (Revision, "Confirmed.", "revised"),
        (Revision, "not revised", "unconfident"),
        (Action, "search once more", "retrieve"),
    ],
)
def test_words_that_are_read(kind: Any, reply: str, word: str) -> None:
    read = TypeAdapter(kind).validate_python
    assert read(reply) == read({"field": reply}) == read([reply]) == word


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        *((Route, reply) for reply in ("", "I would search", "Search engines are slow", None, 3, ["plan", "single"])),
        (Action, "perhaps retrieve"),
        (Attribution, "not attributable"),
        (Attribution, "extra"),
        (Revision, "I revised it"),
    ],
)
def test_invalid_choices_are_refused(kind: Any, reply: Any) -> None:
    with pytest.raises(ValidationError, match="not one of"):
        TypeAdapter(kind).validate_python(reply)
