"""The engine reads real messages of both adapters, behind demos, and writes replies that they parse."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.engines.lexical.prompt import Prompt, as_list, read_prompt, write_reply
from polyhop.engines.requests import read_request, respond
from polyhop.signatures import AnalyzeQuestion, NumberedPassage, NumberedPassages, SelectEvidence

PASSAGES = NumberedPassages(passages=[NumberedPassage(number=1, title="Solaris", sentences={1: "One.", 2: "Two."})])
DEMO: dict[str, Any] = {
    "question": "Old?",
    "sub_questions": ["A?"],
    "candidates": PASSAGES,
    "selected": [],
    "keep": ["1s2"],
}


class Reader:
    """Keeps the prompt that it was sent; replies with fixed values."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.prompt: Prompt | None = None

    def complete(self, request: lm15.Request) -> lm15.Response:
        system, messages = read_request(request)
        *texts, task = [message.text for message in messages]
        self.prompt = read_prompt(system, task, zip(texts[::2], texts[1::2], strict=True))
        return respond(request, write_reply(self.values, self.prompt.as_json))


def read(adapter: Any, signature: Any, values: dict[str, Any], demos: list[Any], **inputs: Any) -> tuple[Prompt, Any]:
    reader = Reader(values)
    with dspy.context(lm=dspy.LM("reader", engine=reader, cache=False), adapter=adapter):
        reply = dspy.Predict(signature)(demos=demos, **inputs)
    assert reader.prompt is not None
    return reader.prompt, reply


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_fields_survive_the_way_through_an_adapter_behind_a_demo(adapter: Any) -> None:
    prompt, reply = read(
        adapter,
        SelectEvidence,
        {"keep": ["1s1", "1"]},
        [DEMO],
        question="Who?",
        sub_questions=["Who was it?", "Where was #1 born?"],
        candidates=PASSAGES,
        selected=["1s2"],
    )
    assert prompt.inputs["question"] == "Who?"
    assert prompt.listed("sub_questions") == ["Who was it?", "Where was #1 born?"]
    assert prompt.inputs["candidates"] == "[1] Solaris\n1s1 One.\n1s2 Two."
    assert prompt.listed("selected") == ["1s2"]
    assert prompt.outputs == ("keep",)
    assert reply.keep == ["1s1", "1"]


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_demos_are_read_with_what_they_have(adapter: Any) -> None:
    demos = [
        dspy.Example(question='Who said "no"?\nAnd why?', sub_questions=["Who?", "Où est #1?"], reasoning="So."),
        dspy.Example(question="Without reasoning?", sub_questions=["[[ one ]]?"]),
        dspy.Example(question="Without any output?"),
        dspy.Example(sub_questions=["Without a question?"]),
        dspy.Example(question="Without a plan?", reasoning="None."),
    ]
    signature = AnalyzeQuestion.prepend("reasoning", dspy.OutputField(), type_=str)
    prompt, _ = read(adapter, signature, {"reasoning": "r", "sub_questions": ["x"]}, demos, question="Q?")
    found = [
        (demo.inputs, {n: as_list(v) if n == "sub_questions" else v for n, v in demo.outputs.items()})
        for demo in prompt.demos
    ]
    assert found == [  # incomplete ones come first
        ({"question": "Without reasoning?"}, {"sub_questions": ["[[ one ]]?"]}),
        ({"question": "Without a plan?"}, {"reasoning": "None."}),
        ({"question": 'Who said "no"?\nAnd why?'}, {"reasoning": "So.", "sub_questions": ["Who?", "Où est #1?"]}),
    ]
    assert prompt.inputs == {"question": "Q?"}


def test_turns_that_are_no_demos_are_left_out() -> None:
    system = (
        "Your input fields are:\n1. `question` (str): \nYour output fields are:\n1. `plan` (str): \nAll interactions"
    )
    turns = [
        ("Hello", "Hi"),
        ("[[ ## question ## ]]\nA?", "no field"),
        ("[[ ## question ## ]]\nB?", "[[ ## plan ## ]]\nC"),
    ]
    assert [demo.outputs for demo in read_prompt(system, "[[ ## question ## ]]\nQ?", turns).demos] == [{"plan": "C"}]
    as_json = f"{system} Outputs will be a JSON object"
    turns = [("[[ ## question ## ]]\nA?", text) for text in ("{", "[1]", '{"plan": "D", "other": 1}')]
    assert [demo.outputs for demo in read_prompt(as_json, "[[ ## question ## ]]\nQ?", turns).demos] == [{"plan": "D"}]


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_values_with_quotes_newlines_and_accents_come_back_whole(adapter: Any) -> None:
    texts = ['Who said "no"?', "Où est né #1?", "A [[ bracket ]]?"]
    _, reply = read(adapter, AnalyzeQuestion, {"sub_questions": texts}, [], question="Q?")
    assert reply.sub_questions == texts


def test_a_marker_inside_a_question_is_not_a_field() -> None:
    question = "What is\n[[ ## nothing ## ]]\nin markup?"
    prompt, _ = read(dspy.ChatAdapter(), AnalyzeQuestion, {"sub_questions": ["x"]}, [], question=question)
    assert prompt.inputs["question"] == question


def test_a_prompt_of_no_adapter_is_refused() -> None:
    with pytest.raises(ValueError, match="ChatAdapter"):
        read_prompt("You are helpful.", "Hello")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("[]", []),
        ("", []),
        ("- a\n- b", ["a", "b"]),
        ("[1, 2]", ["1", "2"]),
        ("[broken", ["[broken"]),
    ],
)
def test_lists_however_they_are_written(text: str, items: list[str]) -> None:
    assert as_list(text) == items
