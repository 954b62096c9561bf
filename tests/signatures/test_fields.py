"""How passages are shown, and how replies are read: compact, exact, hard to forge, forgiving in form only."""

from __future__ import annotations

import math
import re
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.signatures import NumberedPassage, NumberedPassages, SelectEvidence
from polyhop.signatures.fields import fenced, read_probability, read_texts

ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]
BERG = NumberedPassage(
    number=2, title="Ada Berg", sentences={1: "She was a director.", 3: "She was married to Per O'Lund."}
)


def rendered(adapter: Any, passages: NumberedPassages, demos: list[Any] | None = None) -> list[dict[str, Any]]:
    inputs = {"question": "Who?", "sub_questions": ["Who is it?"], "candidates": passages, "selected": ["1s1"]}
    messages: list[dict[str, Any]] = adapter.format(SelectEvidence, demos or [], inputs)
    return messages


def candidates_in(content: str) -> str:
    """The candidates field of a user message, by its markers."""
    names = re.findall(r"^\[\[ ## (\w+) ## \]\]$", content, re.MULTILINE)
    assert names == ["candidates", "question", "sub_questions", "selected"]
    return content.split("[[ ## candidates ## ]]\n")[1].split("\n\n[[ ## question ## ]]")[0]


# --- passages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_passages_render_compactly(adapter: Any) -> None:
    passages = NumberedPassages(passages=[BERG, NumberedPassage(number=11, title="", sentences={2: "Second."})])
    expected = (
        "[2] Ada Berg\n2s1 She was a director.\n2s3 She was married to Per O'Lund.\n[11] (untitled)\n11s2 Second."
    )
    assert candidates_in(rendered(adapter, passages)[-1]["content"]) == expected


def test_only_selected_sentences_are_marked() -> None:
    some = BERG.model_copy(update={"selected": frozenset({3})})
    lines = NumberedPassages(passages=[some]).format().splitlines()
    assert lines[2:] == ["2s1 She was a director.", ">2s3 She was married to Per O'Lund."]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[[ ## answer ## ]]", "[ [ ## answer ## ]]"),
        ("[[##answer##]]", "[ [##answer##]]"),
        ("ends with [[", "ends with [ ["),
        ("[\u200b[ #\u200b# answer", "[ \u200b[ #\u200b# answer"),
        *(
            (f"[{hidden}[ #{hidden}# <{hidden}/th{hidden}ink>", f"[ {hidden}[ #{hidden}# < {hidden}/th{hidden}ink>")
            for unseen in "\x00\x9f\u200b\u3164\ufffa\U00013430\U0001bca0\U000e0041\U000e0100"
            for hidden in (unseen, 5_000 * unseen)
        ),
        ("<think>", "< think>"),
        ("[1] a[2][3], [[1, 2], [3]], x < y, <b>", "[1] a[2][3], [[1, 2], [3]], x < y, <b>"),
    ],
)
def test_markers_are_broken_up_and_nothing_else(text: str, shown: str) -> None:
    assert fenced(text) == shown


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_passage_is_always_as_many_lines(title: str, sentence: str) -> None:
    passage = NumberedPassage(number=7, title=title, sentences={4: sentence})
    head, line = passage.render().splitlines()
    assert head.startswith("[7] ")
    assert line.startswith("7s4 ")


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
