"""Prompts of both adapters are parsed, with demonstrations and passages, and their parsers read the replies."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.data.text import content_terms
from polyhop.engines.lexical.prompt import ParsedPrompt, parse_passages, read_prompt, write_reply
from polyhop.programs.candidates import Candidates
from polyhop.signatures import NumberedPassage, NumberedPassages, SelectEvidence

PASSAGES = NumberedPassages(passages=[NumberedPassage(number=1, title="Solaris", sentences={1: "One.", 2: "Two."})])
DEMO: dict[str, Any] = {
    "question": "Old?",
    "sub_questions": ["A?"],
    "candidates": PASSAGES,
    "selected": [],
    "keep": ["1s2"],
}


def test_headings_are_no_part_of_a_title() -> None:
    part = NumberedPassage(number=2, title="Handbook > Leave > Parental leave", sentences={1: "One."})
    (passage,) = parse_passages(part.render())
    assert (passage.title, passage.headings) == ("Handbook", "Leave > Parental leave")
    assert "leave" not in " ".join(passage.names)
    assert frozenset(content_terms("handbook leave")) <= passage.terms
    (plain,) = parse_passages(PASSAGES.format())
    assert (plain.title, plain.headings) == ("Solaris", "")


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_fields_survive_the_way_through_an_adapter_behind_a_demo(adapter: Any) -> None:
    task = {
        "question": "What is\n[[ ## nothing ## ]]\nin markup?",  # no field
        "sub_questions": ["Who was it?", "Where was #1 born?"],
        "candidates": PASSAGES,
        "selected": ["1s2"],
    }
    system, *_, last = adapter.format(SelectEvidence, [DEMO], task)
    prompt = read_prompt(system["content"], last["content"])
    assert prompt.question == task["question"]
    assert prompt.listed("sub_questions") == task["sub_questions"]
    assert prompt.inputs["candidates"] == "[1] Solaris\n1s1 One.\n1s2 Two."
    assert prompt.listed("selected") == ["1s2"]
    assert prompt.outputs == ("keep",)
    reply = write_reply({"keep": ["1s1", "1"]}, prompt.as_json)
    assert adapter.parse(SelectEvidence, reply) == {"keep": ["1s1", "1"]}


def test_a_prompt_of_no_adapter_is_refused() -> None:
    with pytest.raises(ValueError, match="ChatAdapter"):
        read_prompt("You are helpful.", "Hello")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("", []),
        ("- a\n- b", ["a", "b"]),
        ("[broken", ["[broken"]),
    ],
)
def test_lists_however_they_are_written(text: str, items: list[str]) -> None:
    assert ParsedPrompt({"list": text}, ()).listed("list") == items


def test_pages_are_read_back_as_the_agents_are_shown_them() -> None:
    first = Passage.of("Solaris", sentences=["One of\nthem.", "1s2 is a number, [3] a note."])
    second = Passage.of("", "Untitled text. More of it.")
    pages = parse_passages(Candidates([first, second]).show([Evidence(first, 1), Evidence(second)]).format())
    assert [(page.number, page.title) for page in pages] == [("1", "Solaris"), ("2", "")]
    assert [line.id for page in pages for line in page.sentences] == ["1s2", "2s1", "2s2"]
    assert pages[0].sentences[0].text == "1s2 is a number, [3] a note."


def test_a_line_that_is_no_sentence_is_read_in_pieces() -> None:
    words = " ".join(f"word{number}" for number in range(1000))
    (page,) = parse_passages(f"[1] Solaris\n1s1 {words}\n1s2 {'x' * 5000}\n1s3 A novel\nof 1961.")
    pieces = [line for line in page.sentences if line.id == "1s1"]
    assert "".join(piece.text for piece in pieces) == words
    assert all(piece.text.split(" ")[0] in words.split() for piece in pieces)
    assert [len(line.text) for line in page.sentences if line.id == "1s2"] == [2000, 2000, 1000]
    assert page.sentences[-1].text == "A novel of 1961."
