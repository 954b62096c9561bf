"""The engine behind ``dspy.LM("lexical", engine=LexicalEngine())``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dspy import lm15

from ..replies import as_events, read_request, respond
from .prompt import read_prompt, write_reply
from .registry import find_skill


class LexicalEngine:
    """Answers the prompts of polyhop's agents. Stateless: one object serves all threads."""

    writes_prompts = False
    """It plays agents; it cannot write instructions."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Reply to a request with the skill for its signature."""
        from . import skills  # noqa: F401  # importing the skills registers them; it takes a moment

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
