"""A server for tests that look at what it was sent: whose key, which settings, how often."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self, TypeAlias

from .completions import completion_of
from .exchange import Exchange
from .faults import Fault, error
from .schedule import Always
from .server import Server

Act: TypeAlias = Callable[[Exchange], None]


class Listening(Server):
    """Does ``act`` to every request; ``seen`` has the body of each, and under "key" what it was authorized by."""

    def __init__(self, act: Act) -> None:
        super().__init__([(Always(), Fault("act", self._hear))])
        self.act = act
        self.seen: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def _hear(self, exchange: Exchange) -> None:
        self.seen.append({"key": exchange.authorization, **exchange.body})
        self.act(exchange)


def says(content: str, tokens_in: int = 7, tokens_out: int = 3) -> Act:
    """Replies this."""
    return lambda exchange: exchange.reply(completion_of(exchange.body["model"], content, tokens_in, tokens_out))


def fails(status: int, message: str = "no") -> Act:
    """Refuses with an error."""
    return error("act", status, message, type="error").act


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def chunk(text: str, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "1", "model": "m", "choices": [choice], **more}).encode() + b"\n\n"


def tells(words: list[str], before: Callable[[str], None] = lambda word: None) -> Act:
    """Streams these words, if it is asked for a stream."""

    def act(exchange: Exchange) -> None:
        assert exchange.body["stream"]
        exchange.send(STREAM)
        for word in words:
            before(word)
            exchange.send(chunk(word))
        exchange.send(chunk("", "stop", usage={"prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75}))
        exchange.send(b"data: [DONE]\n\n")
        exchange.close()

    return act
