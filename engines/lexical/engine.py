"""The engine behind ``dspy.LM("lexical", engine=LexicalEngine())``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
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

        system, (*earlier, task) = read_request(request)
        turns = [(a.text, b.text) for a, b in pairwise(earlier) if (a.role, b.role) == ("user", "assistant")]
        prompt = read_prompt(system, task.text, turns)
        function = find_skill(prompt)
        values = {"reasoning": "Read from the prompt."} | function(prompt)
        if missing := [name for name in prompt.outputs if name not in values]:
            raise ValueError(f"the skill {function.__qualname__} returned no value for {', '.join(missing)}")
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
