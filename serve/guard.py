"""What every request passes before it is answered: the token or the host, the rate, the size; then it is counted."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..engines.limits import Pacing
from .metrics import Metrics

log = logging.getLogger("polyhop.serve")

LARGEST_REQUEST = 1 << 20
"""Bytes of a request's body."""

_SLOWEST_BODY = 30.0  # seconds per `LARGEST_REQUEST`
_LINGER = 2.0  # seconds that a refused request is read on
_CLIENTS = 10_000  # whose rates are remembered
_OPEN = ("/", "/health")  # what needs no token, beside the files of the page
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """Middleware. Without a token only this machine is served: by the names of its loopback address, and no page of
    another site.

    Args:
        token: What ``Authorization: Bearer TOKEN`` has to have.
        rate: Requests per minute and client, other than for files.
        larger: Paths whose requests may have so many bytes instead of `LARGEST_REQUEST`.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        token: str | None = None,
        rate: float = 600.0,
        larger: Mapping[str, int] | None = None,
    ) -> None:
        self._app, self._metrics, self._token, self._rate = app, metrics, token, rate
        self._larger = larger or {}
        self._clients: OrderedDict[str, Pacing] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), 0

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            refused = self._refused(scope)
            body, refused = (b"", refused) if refused else await self._read(scope, receive)
            if refused:
                await _refuse(*refused, receive, answered)
            elif body is not None:
                await self._app(scope, _replayed(body, receive), answered)
        finally:
            route = getattr(scope.get("route"), "path", None) or ("/mcp" if scope["path"] == "/mcp" else "other")
            self._metrics.request(route, status)
            client = scope["client"][0] if scope.get("client") else ""
            seconds = round(perf_counter() - start, 3)
            details = {"method": scope["method"], "path": scope["path"][:200], "status": status, "seconds": seconds}
            log.info("request", extra={"details": {**details, "client": client}})

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason of a refusal."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._token is None:
            host, origin = headers.get("host", ""), headers.get("origin")
            if _name(f"//{host}") not in _LOOPBACK:
                return 403, "without a token, only requests to localhost are answered"
            if origin and origin.partition("://")[2] != host:
                return 403, "a page of another site may not ask"
        elif path not in _OPEN and not path.startswith("/page/"):
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return 401, "a token is needed: Authorization: Bearer TOKEN"
        if path not in _OPEN and not path.startswith("/page/") and not self._in_time(scope):
            return 429, f"more than {self._rate:g} requests per minute"
        return None

    def _in_time(self, scope: Scope) -> bool:
        client = scope["client"][0] if scope.get("client") else ""
        pacing = self._clients.setdefault(client, Pacing(self._rate))
        self._clients.move_to_end(client)
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        if pacing.take(1.0) > 0:
            pacing.give_back(1.0)
            return False
        return True

    async def _read(self, scope: Scope, receive: Receive) -> tuple[bytes | None, tuple[int, str] | None]:
        """The whole body, or why it is refused; neither if the client has left."""
        most = self._larger.get(scope["path"], LARGEST_REQUEST)
        too_large = 413, f"a request of more than {most:,} bytes"
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdigit() and int(length) > most:
            return b"", too_large
        body = bytearray()
        try:
            async with asyncio.timeout(_SLOWEST_BODY * most / LARGEST_REQUEST):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None, None
                    body += message.get("body", b"")
                    if len(body) > most:
                        return b"", too_large
                    if not message.get("more_body"):
                        return bytes(body), None
        except TimeoutError:
            return b"", (408, "the request took too long")


def _name(host: str) -> str:
    try:
        return urlsplit(host).hostname or ""
    except ValueError:
        return ""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one message; then what comes from the client."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _refuse(status: int, message: str, receive: Receive, send: Send) -> None:
    body = json.dumps({"error": {"message": message, "type": "refused"}}).encode()
    headers: list[tuple[bytes, Any]] = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers += [(b"retry-after", b"5")] if status == 429 else []
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    headers += [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    # The rest of the request is read before the connection is closed: closing with unread data resets it, and a client
    # that is still sending may then never see the reply.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            while (await receive()).get("more_body"):
                pass
    await send({"type": "http.response.body", "body": b""})
