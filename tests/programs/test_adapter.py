"""Prompts are DSPy's own, described once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given
from hypothesis import strategies as st

from polyhop.programs import PROGRAMS, new_program
from polyhop.programs.agent import ADAPTER, ChatAdapter, JSONAdapter, guarded
from polyhop.programs.program import Program
from polyhop.signatures.fields import NumberedPassage, NumberedPassages

from .scripted import playing, scripted


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_agent_is_told_what_dspy_would_tell_it(name: str) -> None:
    plain = dspy.ChatAdapter()
    for _, agent in new_program(name).named_predictors():
        inputs = dict.fromkeys(agent.signature.input_fields, "x")
        for signature in (agent.signature, agent.signature.with_instructions("Do something else.")):
            expected = plain.format(signature, [], inputs)
            assert ADAPTER.format(signature, [], inputs) == expected
            assert ADAPTER.format(signature, [], inputs) == expected  # from what is remembered


PASSAGES = NumberedPassages(passages=[NumberedPassage(number=2, title="A \u2028b", sentences={1: "Œuvre.", 3: ""})])


@given(
    st.sampled_from([str, list[str], NumberedPassages, int, bool, list[int]]),
    st.one_of(
        st.text(st.characters(codec=None, categories=None)),
        st.lists(st.one_of(st.text(), st.integers(), st.none())),
        st.none(),
        st.integers(),
        st.booleans(),
        st.just(PASSAGES),
    ),
    st.booleans(),
)
def test_whatever_an_input_is_it_is_written_as_dspy_writes_it(kind: Any, value: Any, main: bool) -> None:
    class Any_(dspy.Signature):
        """Do it."""

        thing: kind = dspy.InputField()
        answer: str = dspy.OutputField()

    plain = dspy.ChatAdapter().format_user_message_content(Any_, {"thing": value}, "a", "b", main_request=main)
    assert ADAPTER.format_user_message_content(Any_, {"thing": value}, "a", "b", main_request=main) == plain


class Asking(Program):
    def __init__(self) -> None:
        super().__init__()
        self.agent = dspy.Predict("question -> answer")

    def forward(self) -> Any:
        return dspy.settings.adapter


def awaited(program: Program) -> Any:
    return asyncio.run(program.acall())


@pytest.mark.parametrize("call", [Asking.__call__, awaited], ids=["called", "awaited"])
def test_programs_use_it_unless_another_one_is_set(call: Callable[[Program], Any]) -> None:
    assert call(Asking()) is ADAPTER
    assert dspy.settings.adapter is None
    for other in (dspy.XMLAdapter(), dspy.ChatAdapter(), JSONAdapter(), type("Own", (dspy.JSONAdapter,), {})()):
        with dspy.context(adapter=other):
            assert call(Asking()) is other


@pytest.mark.parametrize("call", [Asking.__call__, awaited], ids=["called", "awaited"])
@pytest.mark.parametrize("native", [True, False])
def test_programs_use_dspys_json_adapter_with_an_end_to_its_mending(
    call: Callable[[Program], Any], native: bool
) -> None:
    given = dspy.JSONAdapter([BaseCallback()], native, parallel_tool_calls=not native)
    with dspy.context(adapter=given):
        used = call(Asking())
        assert dspy.settings.adapter is given
    assert (type(used), type(given)) == (JSONAdapter, dspy.JSONAdapter)
    assert vars(used) == vars(given)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_prompts_of_dspys_json_adapter_stay_what_they_are(name: str) -> None:
    given = dspy.JSONAdapter()
    ours = guarded(given)
    for _, agent in new_program(name).named_predictors():
        inputs = dict.fromkeys(agent.signature.input_fields, "x")
        demos = [dspy.Example({**inputs, **dict.fromkeys(agent.signature.output_fields, "y")})]
        assert ours.format(agent.signature, demos, inputs) == given.format(agent.signature, demos, inputs)


# --- replies that nobody can read ------------------------------------------------------------------------------------


class Planned(dspy.Signature):
    """Plan."""

    question: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    steps: list[str] = dspy.OutputField()


REASONING, STEPS = "x " * 50_000 + "x", ["a"] * 500
ENDLESS = [
    "{",
    "[",
    '{"a":',
    "[{",
    "{[",
    "a{b}",
    "[ 'x', ",
    "{ x ",
    "(",
    "```json\n{",
    '{"steps": ["',
    "[[ ## steps ## ]]\n[",
]


@pytest.mark.parametrize("adapter", [ADAPTER, JSONAdapter()], ids=["chat", "json"])
@pytest.mark.parametrize("unit", ENDLESS)
def test_a_reply_that_goes_in_circles_is_refused_at_once(unit: str, adapter: dspy.Adapter) -> None:
    """Without an end to it, most of these take minutes: this test would not come back."""
    for length in (5_000, 65_536, 1 << 20):
        for before in ("", "[[ ## reasoning ## ]]\nx\n\n[[ ## steps ## ]]\n"):
            with pytest.raises(AdapterParseError) as caught:
                adapter.parse(Planned, before + unit * (length // len(unit)))
            assert len(str(caught.value)) < 8_000


@pytest.mark.parametrize("adapter", [ADAPTER, JSONAdapter()], ids=["chat", "json"])
def test_a_long_reply_in_good_order_is_read(adapter: Any) -> None:
    good = {"reasoning": REASONING, "steps": STEPS}
    assert adapter.parse(Planned, adapter.format_assistant_message_content(Planned, good)) == good


REPLIES = [
    '{"reasoning": "x", "steps": ["a", "b"]}',
    '```json\n{"reasoning": "x", "steps": ["a", "b"]}\n```',
    'Sure! {"reasoning": "x", "steps": ["a", "b"]} Anything else?',
    "{'reasoning': 'x', 'steps': ['a', 'b'],}",
    '{"reasoning": "x", "steps": ["a", "b"',
    '{"reasoning": "x"}',
    "[[ ## reasoning ## ]]\nx\n\n[[ ## steps ## ]]\n['a', 'b']\n\n[[ ## completed ## ]]",
    "[[ ## reasoning ## ]]\nx\n\n[[ ## steps ## ]]\na, b",
    "[1, 2]",
    "42",
    "",
    "No.",
    "{" * 40 + "}" * 40,
]


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize(
    ("ours", "theirs"), [(ADAPTER, dspy.ChatAdapter()), (JSONAdapter(), dspy.JSONAdapter())], ids=["chat", "json"]
)
def test_any_other_reply_is_read_as_dspy_reads_it(ours: Any, theirs: Any, reply: str) -> None:
    def read(adapter: Any) -> Any:
        try:
            return adapter.parse(Planned, reply)
        except AdapterParseError as error:
            return str(error)

    assert read(ours) == read(theirs)


@pytest.mark.parametrize("fallback", [True, False])
def test_an_unreadable_reply_is_requested_again_as_json(fallback: bool) -> None:
    def requests(adapter: dspy.Adapter) -> list[Any]:
        with playing(scripted(answerer=["No.", {"answer": "x"}]), adapter) as script:
            try:
                assert dspy.Predict("question -> answer")(question="?").answer == "x"
            except AdapterParseError:
                assert not fallback
        return [(request.system, request.messages) for request in script.requests]

    ours = requests(ChatAdapter(json_fallback=fallback))
    assert ours == requests(dspy.ChatAdapter(use_json_adapter_fallback=fallback))
    assert len(ours) == 1 + fallback
