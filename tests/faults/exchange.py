"""A request and its connection, on which a fault acts."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any

from .completions import complete, encode, prompt_of

JSON = "application/json"
Headers = Mapping[str, str]


class HungUp(Exception):
    """The connection was closed, by either side."""


class Exchange:
    """A request that waits for its reply.

    Args:
        raw: The body of the request.
        authorization: The header of that name.
        die: Takes the server down for some seconds.
    """

    def __init__(self, connection: socket.socket, raw: bytes, authorization: str, die: Callable[[float], None]) -> None:
        self._connection, self._raw = connection, raw
        self.authorization, self.die = authorization, die

    @cached_property
    def body(self) -> dict[str, Any]:
        """Raises: ValueError: the body is not JSON."""
        parsed: dict[str, Any] = json.loads(self._raw)
        return parsed

    @cached_property
    def prompt(self) -> str:
        return prompt_of(self.body)

    def completion(self) -> dict[str, Any]:
        """The reply without a fault."""
        return complete(self.body)

    def reply(self, body: Any, status: int = 200, headers: Headers | None = None, type: str = JSON) -> None:
        """Send a complete response; a body other than bytes is sent as JSON."""
        self.send(response(body if isinstance(body, bytes) else encode(body), status, headers, type))

    def send(self, data: bytes) -> None:
        """Raises: HungUp."""
        try:
            self._connection.sendall(data)
        except OSError:
            raise HungUp from None

    def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            HungUp: the connection was closed.
        """
        self._connection.settimeout(seconds)
        try:
            self._connection.recv(1)  # the client sends nothing while it waits
        except TimeoutError:
            return
        finally:
            self._connection.settimeout(None)
        raise HungUp

    def close(self, *, reset: bool = False) -> None:
        """Close the connection, or reset it, as after a crash of a process or router."""
        if reset:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise HungUp


def response(body: bytes, status: int = 200, headers: Headers | None = None, type: str = JSON) -> bytes:
    """A complete response."""
    return head(len(body), status, headers, type) + body


def head(length: int, status: int = 200, headers: Headers | None = None, type: str = JSON) -> bytes:
    """Status line and headers of a response."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {type}", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
