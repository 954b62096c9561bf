"""The engine behind ``dspy.LM("lexical", engine=LexicalEngine())``."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from dspy import lm15

from .prompt import read_prompt, write_reply
from .skills import skill_for


class LexicalEngine:
    """Answers any prompt of polyhop's agents. Stateless: one object serves all threads."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Play the agent that the prompt describes.

        Raises:
            ValueError: the prompt is in no dialect that the engine reads, or asks for fields that no skill of it fills.
        """
        system, messages = _text(request.system), [_text(message.parts) for message in request.messages]
        roles = [str(message.role) for message in request.messages]
        turns = [
            (messages[at - 1], messages[at])
            for at in range(1, len(messages) - 1)
            if (roles[at - 1], roles[at]) == ("user", "assistant")
        ]
        prompt = read_prompt(system, messages[-1], turns)
        values = skill_for(prompt)(prompt)
        missing = [name for name in prompt.outputs if name not in values and name != "reasoning"]
        if missing:
            raise ValueError(f"the lexical engine cannot fill the output field(s) {', '.join(missing)}")
        reply = write_reply(
            {name: values.get(name, "Read from the prompt.") for name in prompt.outputs}, prompt.as_json
        )
        given = len(system) + sum(map(len, messages))
        return lm15.Response(
            id=blake2b(reply.encode("utf-8", "replace"), digest_size=8).hexdigest(),
            model=request.model,
            message=lm15.Message.assistant(reply),
            usage=lm15.Usage(input_tokens=given // 4, output_tokens=len(reply) // 4),  # the usual estimate
            finish_reason="stop",
        )

    def dump_state(self) -> dict[str, Any]:
        """Nothing to save: lets a program that carries this engine be saved with DSPy."""
        return {}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> LexicalEngine:
        return cls()


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else getattr(part, "text", "") for part in content)
