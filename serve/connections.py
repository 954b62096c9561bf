"""Connections of clients: a bounded number, and none that is kept open without a request."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 2_000
"""Open connections; further ones are closed at once. Fewer where the system allows fewer than twice as many files."""

_IDLE = 15.0  # seconds after which a connection without a request is closed, or after twice as many


class Connection(H11Protocol):
    """uvicorn's protocol, which itself waits for a request for ever, and fails when the system has no more files."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _most():
            transport.abort()
        else:
            self._check(self)

    def _check(self, before: Any) -> None:
        """Close the connection if it has waited for a request since the last check."""
        waits = self.cycle is None or self.cycle.response_complete
        if waits and before is self.cycle:
            self.transport.close()
        elif not self.transport.is_closing():
            self.loop.call_later(_IDLE, self._check, self.cycle if waits else self)


@cache
def _most() -> int:
    """`MOST`, with as many files for it as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST if most == resource.RLIM_INFINITY else min(4 * MOST, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        allowed = wanted
    return MOST if allowed == resource.RLIM_INFINITY else min(MOST, allowed // 2)
