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
SAMPLES = {
    "question": "Who was it?",
    "task": "Ask for a fact.",
    "sub_questions": ["Who is A?", "Where is #1?"],
    "selected": ["1s1"],
    "objective": "Find out who A is.",
    "roadmap": ["Who is A?", "Where is #1?"],
    "queries": ['"A" - nothing useful'],
    "notes": ["Who is A? - B"],
    "thoughts": ["A is B."],
    "focus": "names",
    "known": ["A is a town."],
    "required": ["Who is A?"],
    "earlier": ["A"],
    "statements": ["1. A is a town."],
    "answer": "Paris",
    "draft": "Paris",
    "trajectory": ["#1 Who is A? -> B"],
    "next_question": "Where is #1?",
} | dict.fromkeys(
    READ,
    NumberedPassages(passages=[NumberedPassage(number=1, title="T", sentences={1: "One.", 2: "Two."})]),
)


def inputs_of(agent: Any) -> dict[str, Any]:
    return {name: SAMPLES[name] for name in agent.input_fields}


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
