"""Requests to an engine and its responses as plain strings."""

from __future__ import annotations

from hashlib import blake2b
from string import digits, punctuation
from typing import Any, NamedTuple

from dspy import lm15

_MARKS = (digits + punctuation).encode()


class Message(NamedTuple):
    """One message of a request."""

    role: str
    text: str


def read_request(request: lm15.Request) -> tuple[str, tuple[Message, ...]]:
    """The system prompt, and the messages in order: demos, then the task."""
    return joined(request.system), tuple(Message(str(each.role), joined(each.parts)) for each in request.messages)


def respond(request: lm15.Request, reply: str) -> lm15.Response:
    """A response whose usage counts four characters per token."""
    system, messages = read_request(request)
    length = len(system) + sum(len(message.text) for message in messages)
    return lm15.Response(
        id=blake2b(reply.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        model=request.model,
        message=lm15.Message.assistant(reply),
        usage=lm15.Usage(input_tokens=length // 4, output_tokens=len(reply) // 4),
        finish_reason="stop",
    )


def estimated_tokens(text: str) -> float:
    """About how many tokens a text has: four letters or spaces each, two digits or marks, three bytes of what is beyond
    ASCII. Tokenizers make fewer of most texts.
    """
    ascii = text.encode("ascii", "ignore")
    beyond = len(text.encode("utf-8", "replace")) - len(ascii)
    plain = len(ascii.translate(None, _MARKS))
    return plain / 4 + (len(ascii) - plain) / 2 + beyond / 3


def joined(content: Any) -> str:
    """The text of a system prompt, or of the parts of a message."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else getattr(part, "text", None) or "" for part in content or ())
