"""The registry of the lexical engine's skills.

A skill is found by the names of the signature's fields, inputs and outputs, in any order; signatures with the same
fields share it. Instructions and descriptions do not count, because optimizers rewrite them. Nor does an output
``reasoning``, which `dspy.ChainOfThought` adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import dspy

from .prompt import Fields, ParsedPrompt, fields_of

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
            _SKILLS[fields_of(signature.input_fields, signature.output_fields)] = function
        return function

    return register


def find_skill(prompt: ParsedPrompt) -> Skill:
    if (found := _SKILLS.get(prompt.fields)) is None:
        inputs, outputs = (", ".join(sorted(names)) for names in prompt.fields)
        raise ValueError(
            f"the lexical engine has no skill for the signature '{inputs} -> {outputs}': "
            "name a language model with --lm, or register one with @polyhop.engines.lexical.skill(SIGNATURE)"
        )
    return found
