"""A server for tests that look at what it was sent: whose key, which settings, how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

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

    def _hear(self, exchange: Exchange) -> None:
        self.seen.append({"key": exchange.authorization, **exchange.body})
        self.act(exchange)


def says(content: str, tokens_in: int = 7, tokens_out: int = 3) -> Act:
    """Replies this."""
    return lambda exchange: exchange.reply(completion_of(exchange.body["model"], content, tokens_in, tokens_out))


def fails(status: int, message: str = "no") -> Act:
    """Refuses with an error."""
    return error("act", status, message, type="error").act
