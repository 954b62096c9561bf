"""The engine behind ``dspy.LM("lexical", engine=LexicalEngine())``, and the registry of its skills.

A skill is found by the names of the signature's fields, inputs and outputs, in any order. Instructions and descriptions
do not count, because optimizers rewrite them; nor does an output ``reasoning``, which `dspy.ChainOfThought` adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import dspy
from dspy import lm15

from ..replies import as_events, read_request, respond
from .prompt import Fields, ParsedPrompt, read_prompt, write_reply

Skill = Callable[[ParsedPrompt], dict[str, Any]]
AnySkill = TypeVar("AnySkill", bound=Skill)

_SKILLS: dict[Fields, Skill] = {}


def skill(*signatures: type[dspy.Signature] | str) -> Callable[[AnySkill], AnySkill]:
    """Register a function as the skill for one or more signatures; it replaces an earlier one.

        @skill(CountWords)
        def count_words(prompt: ParsedPrompt) -> dict[str, Any]:
            return {"count": len(prompt.text("text").split())}

    The function gets the prompt's inputs as text and returns a value for every output field but ``reasoning``.

    Args:
        signatures: Signature classes, or strings such as ``"question -> answer"``.
    """

    def register(function: AnySkill) -> AnySkill:
        for signature in map(dspy.ensure_signature, signatures):
            _SKILLS[ParsedPrompt(signature.input_fields, tuple(signature.output_fields)).fields] = function
        return function

    return register


def find_skill(prompt: ParsedPrompt) -> Skill:
    """The skill for the fields of a prompt."""
    if (found := _SKILLS.get(prompt.fields)) is None:
        inputs, outputs = (", ".join(sorted(names)) for names in prompt.fields)
        raise ValueError(
            f"the lexical engine has no skill for the signature '{inputs} -> {outputs}': "
            "name a language model with --lm, or register one with @polyhop.engines.lexical.skill(SIGNATURE)"
        )
    return found


class LexicalEngine:
    """Answers the prompts of polyhop's agents. Stateless: one object serves all threads."""

    writes_prompts = False
    """It plays agents; it cannot write instructions."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Reply to a request with the skill for its signature."""
        system, (*_, task) = read_request(request)
        prompt = read_prompt(system, task.text)
        values = {"reasoning": "Read from the prompt."} | find_skill(prompt)(prompt)
        return respond(request, write_reply({name: values[name] for name in prompt.outputs}, prompt.as_json))

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The reply as events, for `dspy.streamify`."""
        return as_events(self.complete(request))

    def dump_state(self) -> dict[str, Any]:
        """Return no state: DSPy can save a program that carries this engine."""
        return {}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> LexicalEngine:
        return cls()
