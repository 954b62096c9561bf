"""What every request passes before it is answered: the token or the origin; then it is counted and logged.

Starlette checks host names and the size of bodies, and uvicorn limits the number of connections. Rates, slow clients
and TLS are the matter of a proxy in front.
"""

from __future__ import annotations

import hmac
import logging
from time import perf_counter

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics

log = logging.getLogger("polyhop.serve")

_OPEN = ("/", "/health")  # what needs no token, beside the files of the page
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
    """Middleware. Without a token, no page of another site may ask.

    Args:
        token: What ``Authorization: Bearer TOKEN`` has to have.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, token: str | None = None) -> None:
        self._app, self._metrics, self._token = app, metrics, token

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
            await (self._refusal(scope) or self._app)(scope, receive, answered)
        finally:
            route = getattr(scope.get("route"), "path", None) or ("/mcp" if scope["path"] == "/mcp" else "other")
            self._metrics.request(route, status)
            client = scope["client"][0] if scope.get("client") else ""
            seconds = round(perf_counter() - start, 3)
            details = {"method": scope["method"], "path": scope["path"][:200], "status": status, "seconds": seconds}
            log.info("request", extra={"details": {**details, "client": client}})

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers, path = Headers(scope=scope), scope["path"]
        if self._token is None:
            origin = headers.get("origin")
            if origin and origin.partition("://")[2] != headers.get("host", ""):
                return _refused(403, "a page of another site may not ask")
        elif path not in _OPEN and not path.startswith("/page/"):
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return _refused(401, "a token is needed: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})
        return None


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "refused"}}, status, headers)
