"""The engine behind ``dspy.LM("lexical", engine=LexicalEngine())``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dspy import lm15

from ..requests import read_request, respond
from .prompt import read_prompt, write_reply
from .skills import skill_for


class LexicalEngine:
    """Answers any prompt of polyhop's agents. Stateless: one object serves all threads."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Play the agent that the prompt describes.

        Raises:
            ValueError: the prompt is in no dialect that the engine reads, or asks for fields that no skill of it fills.
        """
        system, (*earlier, task) = read_request(request)
        turns = [(a.text, b.text) for a, b in pairwise(earlier) if (a.role, b.role) == ("user", "assistant")]
        prompt = read_prompt(system, task.text, turns)
        values = skill_for(prompt)(prompt)
        missing = [name for name in prompt.outputs if name not in values and name != "reasoning"]
        if missing:
            raise ValueError(f"the lexical engine cannot fill the output field(s) {', '.join(missing)}")
        filled = {name: values.get(name, "Read from the prompt.") for name in prompt.outputs}
        return respond(request, write_reply(filled, prompt.as_json))

    def dump_state(self) -> dict[str, Any]:
        """Nothing to save: lets a program that carries this engine be saved with DSPy."""
        return {}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> LexicalEngine:
        return cls()
