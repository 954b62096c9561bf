"""Prompts are DSPy's own, described once."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.programs.adapter import ADAPTER, ChatAdapter
from polyhop.programs.program import Program
from polyhop.programs.registry import PROGRAMS, new_program


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_agent_is_told_what_dspy_would_tell_it(name: str) -> None:
    plain = dspy.ChatAdapter()
    for _, agent in new_program(name).named_predictors():
        inputs = dict.fromkeys(agent.signature.input_fields, "x")
        for signature in (agent.signature, agent.signature.with_instructions("Do something else.")):
            expected = plain.format(signature, [], inputs)
            assert ADAPTER.format(signature, [], inputs) == expected
            assert ADAPTER.format(signature, [], inputs) == expected  # from what is remembered


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
