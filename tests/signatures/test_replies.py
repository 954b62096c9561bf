"""Replies are read as models write them; what is no reply stays an error."""

from __future__ import annotations

import json
import math
from typing import Any

import dspy
import pytest
from dspy.adapters.utils import parse_value
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from polyhop.signatures import PlanSteps
from polyhop.signatures.replies import (
    Action,
    Attribution,
    Ids,
    Probability,
    Questions,
    Revision,
    Route,
    Steps,
    Texts,
    read_ids,
    read_probability,
    read_questions,
    read_texts,
)

ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]


@pytest.mark.parametrize(
    ("reply", "ids"),
    [
        (["2s1", "5s3"], ["2s1", "5s3"]),
        ([], []),
        ([2.1, 5.3, 4], ["2.1", "5.3", "4"]),
        ((2.1, 5), ["2.1", "5"]),
        (2.1, ["2.1"]),
        (3, ["3"]),
        (None, []),
        ([{"id": "2s1"}, {"id": 3}], ["2s1", "3"]),
        ({"keep": ["2s1"]}, ["2s1"]),
        ("2s1, 5s3", ["2s1", "5s3"]),
        ("2s1 and 5s3.", ["2s1", "5s3."]),
        ("[2s1], [5s3]", ["[2s1]", "[5s3]"]),
        ("- 2s1\n- 5s3", ["2s1", "5s3"]),
        ("1. 2s1\n2. 5s3", ["2s1", "5s3"]),
        ("2\n3", ["2", "3"]),
        ("", []),
        ("none", []),
        ("(none)", []),
        ("N/A", []),
        ("[]", []),
        (["1s1, 2s1"], ["1s1", "2s1"]),
        ([{"sentence_id": "1s1"}], ["1s1"]),
        ({"keep": "1s1"}, ["1s1"]),
        (["1s1 since it names him"], ["1s1 since it names him"]),
        ("Passages 1, 2 and 4", ["1", "2", "4"]),
        ("1s2 (his son), 3s1", ["1s2", "3s1"]),
        ("1s2: He was born.", ["1s2"]),
    ],
)
def test_read_ids(reply: Any, ids: list[str]) -> None:
    assert read_ids(reply) == ids


@pytest.mark.parametrize(
    "reply", ["The first passage is relevant.", "I keep 2s1 because it is about him", "Nothing is left"]
)
def test_prose_is_not_a_list_of_ids(reply: str) -> None:
    with pytest.raises(ValueError, match="not a list of ids"):
        read_ids(reply)


@pytest.mark.parametrize(
    ("reply", "questions"),
    [
        (["Who is X?", "Where is #1?"], ["Who is X?", "Where is #1?"]),
        ("1. Who is X?\n2. Where is #1?", ["Who is X?", "Where is #1?"]),
        ("Here they are:\n\n1) Who is X?\n2) Where is #1?", ["Who is X?", "Where is #1?"]),
        ("- Who is X?\n* Where is #1?", ["Who is X?", "Where is #1?"]),
        ("Who is X?\nWhere is #1?", ["Who is X?", "Where is #1?"]),
        ("Who is X?", ["Who is X?"]),
        (["1. Who is X?", "2. Where is #1?"], ["Who is X?", "Where is #1?"]),
        (["1. FC Köln plays where?"], ["1. FC Köln plays where?"]),
        (["2. Bundesliga is what?", "3. Liga is what?"], ["2. Bundesliga is what?", "3. Liga is what?"]),
        ([{"id": 1, "question": "Who is X?"}], ["Who is X?"]),
        ([{"step": "Who is X?"}], ["Who is X?"]),
        ({"sub_questions": ["Who?"]}, ["Who?"]),
        ({"1": "Who?", "2": "Where?"}, ["Who?", "Where?"]),
        ([], []),
        (None, []),
        ([{}], [""]),
        (["#1 Who was it?", "#2 Where is #1?"], ["Who was it?", "Where is #1?"]),
        (["Step 1: Who was it?", "Step 2: Where is #1?"], ["Who was it?", "Where is #1?"]),
        (["#1 was born where?"], ["#1 was born where?"]),  # a reference, no label
    ],
)
def test_read_questions(reply: Any, questions: list[str]) -> None:
    assert read_questions(reply) == questions


def test_prose_is_not_a_list_of_questions() -> None:
    with pytest.raises(ValueError, match="not a list of questions"):
        read_questions("I cannot do this.\nSorry about that.")


@pytest.mark.parametrize(
    ("reply", "probability"),
    [
        (0.9, 0.9),
        (1, 1.0),
        (85, 0.85),
        (0, 0.0),
        (-3, 0.0),
        (1e9, 1.0),
        (math.nan, 0.0),
        (10**400, 1.0),
        (-(10**400), 0.0),
        ("9" * 400 + "/" + "9" * 400, 0.0),
        ("0.9", 0.9),
        (".9", 0.9),
        ("0,9", 0.9),
        ("85%", 0.85),
        ("1%", 0.01),
        ("0.5 %", 0.005),
        ("0.9 (high)", 0.9),
        ("-1", 0.0),
        ("about 70 %", 0.7),
        ("**0.9**", 0.9),
        ("~0.95.", 0.95),
        ("Confidence: 0.7", 0.7),
        ("9/10", 0.9),
        ("9 out of 10", 0.9),
        ("90/100", 0.9),
        ("high", 0.85),
        ("Very high.", 0.95),
        ("low confidence", 0.2),
    ],
)
def test_read_probability(reply: Any, probability: float) -> None:
    assert read_probability(reply) == pytest.approx(probability)


@pytest.mark.parametrize("reply", ["", "unsure", "n/a", "the 2 passages disagree", None, True, [0.9], {"p": 0.9}])
def test_what_states_no_probability_is_an_error(reply: Any) -> None:
    with pytest.raises(ValueError, match="not a probability"):
        read_probability(reply)


@given(st.text(max_size=40))
def test_a_text_is_read_as_a_probability_or_refused(text: str) -> None:
    try:
        number = read_probability(text)
    except ValueError:
        return
    assert 0.0 <= number <= 1.0


@pytest.mark.parametrize(
    ("type_", "reply", "plain"),
    [
        (Ids, "2s1, 5s3", ["2s1", "5s3"]),
        (Ids, "[2s1, 5s3]", ["2s1", "5s3"]),
        (Ids, "null", []),
        (Questions, "1. Who?\n2. Where?", ["Who?", "Where?"]),
        (Questions, "none", []),
        (Questions, '["None"]', []),
        (Texts, "- A is B.\n- C.", ["A is B.", "C."]),
        (Texts, "none", []),
        (Probability, "85%", 0.85),
        (Probability, "high", 0.85),
    ],
)
def test_dspy_reads_with_them_and_gets_plain_values(type_: Any, reply: str, plain: Any) -> None:
    value = parse_value(reply, type_)
    assert value == plain
    assert type(value) is type(plain)  # so that demos are saved as plain JSON
    json.dumps(value)


@pytest.mark.parametrize(
    ("reply", "texts"),
    [
        (["A is B. [1s2]", "C"], ["A is B. [1s2]", "C"]),
        (["A is B.", "", " ", "None"], ["A is B."]),
        (["1. A is B.", "2. C."], ["A is B.", "C."]),
        ("1. A is B.\n2. C.", ["A is B.", "C."]),
        ("Here they are:\n- A is B.\n- C.", ["A is B.", "C."]),
        ("A is B.", ["A is B."]),
        ([{"fact": "A is B.", "source": "1s2"}], ["A is B."]),
        ({"spans": ["A is B."]}, ["A is B."]),
        ("Nothing.", []),
        ("", []),
        ([], []),
        (None, []),
    ],
)
def test_read_texts(reply: Any, texts: list[str]) -> None:
    assert read_texts(reply) == texts


@pytest.mark.parametrize(
    ("reply", "steps"),
    [
        ([{"thought": "First.", "question": "Who is A?"}], [("First.", "Who is A?")]),
        ([{"question": "Who?", "thought": None, "id": 1}, {"question": "Where?"}], [("", "Who?"), ("", "Where?")]),
        (["Who is A?", "Where is #1?"], [("", "Who is A?"), ("", "Where is #1?")]),
        ([{"thought": "t", "question": "1. Who?"}, "2. Where?"], [("t", "Who?"), ("", "Where?")]),
        ("1. Who is A?\n2. Where is #1?", [("", "Who is A?"), ("", "Where is #1?")]),
        ("Who is A?", [("", "Who is A?")]),
        ({"steps": [{"thought": "t", "question": "Who?"}]}, [("t", "Who?")]),
        ({"thought": "t", "question": "Who?"}, [("t", "Who?")]),
        (
            {"1": {"thought": "t", "question": "Who?"}, "2": {"thought": "u", "question": "Where?"}},
            [("t", "Who?"), ("u", "Where?")],
        ),
        ([{"thought": "I need no step."}], [("I need no step.", "")]),
        ([], []),
        (None, []),
    ],
)
def test_read_steps(reply: Any, steps: list[tuple[str, str]]) -> None:
    read = TypeAdapter(Steps).validate_python(reply)
    assert read == [{"thought": thought, "question": question} for thought, question in steps]
    assert json.loads(json.dumps(read)) == read  # so that demos are saved as plain JSON


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_plan_shows_its_shape_in_the_prompt(adapter: Any) -> None:
    system, user = (message["content"] for message in adapter.format(PlanSteps, [], {"question": "Q"}))
    assert "`steps` (list[dict[str, str]])" in system
    assert '"required": ["thought", "question"]' in system.replace('\\"', '"')
    assert "list[dict[str, str]]" in user


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
