"""Chat completions in OpenAI's format, by the embedded lexical engine."""

from __future__ import annotations

import json
from typing import Any

from dspy import lm15

from polyhop.engines.lexical import LexicalEngine

_ROLES = {"assistant": lm15.Message.assistant, "user": lm15.Message.user}
_INSTRUCTIONS = {"system", "developer"}


def prompt_of(body: dict[str, Any]) -> str:
    """All messages of a request in one text."""
    return "\n".join(_content(message) for message in body["messages"])


def complete(body: dict[str, Any]) -> dict[str, Any]:
    """The completion of a chat request.

    The engine reads prompts of DSPy's ChatAdapter and JSONAdapter and replies in the same format; ``response_format``
    is ignored.

    Raises:
        ValueError: the engine cannot answer the prompt.
    """
    said = [(message["role"], _content(message)) for message in body["messages"]]
    request = lm15.Request(
        model=body["model"],
        system="\n".join(text for role, text in said if role in _INSTRUCTIONS) or None,
        messages=tuple(_ROLES[role](text) for role, text in said if role not in _INSTRUCTIONS),
    )
    response = LexicalEngine().complete(request)
    return completion_of(body["model"], response.text, response.usage.input_tokens, response.usage.output_tokens)


def completion_of(model: str, content: str, tokens_in: int = 0, tokens_out: int = 0) -> dict[str, Any]:
    """A completion with this reply."""
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


def with_content(completion: dict[str, Any], content: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """The same completion with another reply; ``more`` are other fields of its message."""
    message = {"role": "assistant", "content": content, **more}
    return {**completion, "choices": [{"index": 0, "finish_reason": finish, "message": message}]}


def content_of(completion: dict[str, Any]) -> str:
    return str(completion["choices"][0]["message"]["content"])


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _content(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
