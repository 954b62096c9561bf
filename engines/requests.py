"""What an engine is sent and what it sends back, as plain strings."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

from dspy import lm15


class Message(NamedTuple):
    """One message of a request."""

    role: str
    text: str


def read_request(request: lm15.Request) -> tuple[str, tuple[Message, ...]]:
    """The system prompt, and the messages in their order: the last one is the task, those before it are demos."""
    return _text(request.system), tuple(Message(str(each.role), _text(each.parts)) for each in request.messages)


def respond(request: lm15.Request, reply: str) -> lm15.Response:
    """A response; tokens are estimated in the usual way, as four characters each."""
    system, messages = read_request(request)
    given = len(system) + sum(len(message.text) for message in messages)
    return lm15.Response(
        id=blake2b(reply.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        model=request.model,
        message=lm15.Message.assistant(reply),
        usage=lm15.Usage(input_tokens=given // 4, output_tokens=len(reply) // 4),
        finish_reason="stop",
    )


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else getattr(part, "text", "") for part in content)
