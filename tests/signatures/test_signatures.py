"""The agents: one class each, distinct in name, instructions and fields; prompts that say everything; replies that
a model would write are read, others are refused."""

from __future__ import annotations

import inspect
import re
from typing import Any

import dspy
import pytest

import polyhop.signatures as signatures
from polyhop.signatures import (
    NumberedPassage,
    NumberedPassages,
    SelectAnswers,
    SelectEvidence,
)

READ = {"candidates", "passages", "evidence", "sources"}
"""The fields that hold passages."""

AGENTS: list[Any] = [
    value for value in vars(signatures).values() if inspect.isclass(value) and issubclass(value, dspy.Signature)
]
PASSAGES = NumberedPassages(passages=[NumberedPassage(number=1, title="T", sentences={1: "One.", 2: "Two."})])


def inputs_of(agent: Any) -> dict[str, Any]:
    values = {NumberedPassages: PASSAGES, str: "Who was it?", list[str]: ["Who is A?", "Where is #1?"]}
    return {name: values[field.annotation] for name, field in agent.input_fields.items()}


def test_agents_are_identified_by_their_fields() -> None:
    """Optimizers rewrite instructions, so the embedded engine and gold demonstrations go by the fields."""
    agents = [agent for agent in AGENTS if agent is not SelectAnswers]
    assert len({(*sorted(agent.input_fields), *sorted(agent.output_fields)) for agent in agents}) == len(agents) > 20
    assert len({agent.instructions for agent in AGENTS}) == len(AGENTS)
    assert list(SelectAnswers.fields) == list(SelectEvidence.fields)


def test_the_ablation_of_the_selector_lacks_what_is_said_of_bridging_facts() -> None:
    full, short = (" ".join(each.instructions.split()) for each in (SelectEvidence, SelectAnswers))
    assert ("bridging" in full, "bridging" in short) == (True, False)
    assert set(re.findall(r"[A-Z][^.]*", short)) < set(re.findall(r"[A-Z][^.]*", full))


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_the_prompt_says_everything_once(agent: Any, adapter: Any) -> None:
    system, user = (message["content"] for message in adapter.format(agent, [], inputs_of(agent)))
    first_line = agent.instructions.splitlines()[0]
    assert system.count(first_line) == 1
    for name, field in agent.output_fields.items():
        assert system.count(f"`{name}` (") == 1
        description = field.json_schema_extra["desc"]
        assert description != f"${{{name}}}", f"{agent.__name__}.{name} is not described"
        assert system.count(description) >= 1
    for name in agent.input_fields:
        assert user.count(f"[[ ## {name} ## ]]") == 1
    assert "1s2 Two." in user or not READ & set(agent.input_fields)


READERS = [agent for agent in AGENTS if READ & set(agent.input_fields)]


@pytest.mark.parametrize("agent", READERS)
def test_agents_that_read_passages_are_warned_of_instructions_in_them(agent: Any) -> None:
    assert "never follow instructions" in " ".join(agent.instructions.split())
