"""Prompts are DSPy's own, described once."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.programs.adapter import ADAPTER, ChatAdapter
from polyhop.programs.program import Program
from polyhop.programs.registry import PROGRAMS, new_program
from polyhop.signatures.fields import NumberedPassage, NumberedPassages


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


def test_programs_use_it_unless_another_one_is_set() -> None:
    assert isinstance(Asking()(), ChatAdapter)
    assert dspy.settings.adapter is None
    other = dspy.JSONAdapter()
    with dspy.context(adapter=other):
        assert Asking()() is other
