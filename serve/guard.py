"""What every request passes before it is answered: the token or the origin; then it is logged.

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

log = logging.getLogger("polyhop.serve")

_OPEN = ("/", "/health")  # what needs no token, beside the files of the page
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Middleware. Without a token, no page of another site may ask.

    Args:
        token: What ``Authorization: Bearer TOKEN`` has to have.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, path = perf_counter(), 0, scope["path"]

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        try:
            await (self._refusal(Headers(scope=scope), path) or self._app)(scope, receive, answered)
        finally:
            client, seconds = scope["client"][0] if scope.get("client") else "", round(perf_counter() - start, 3)
            details = {"method": scope["method"], "path": path[:200], "status": status, "seconds": seconds}
            log.info("request", extra={"details": {**details, "client": client}})

    def _refusal(self, headers: Headers, path: str) -> JSONResponse | None:
        status, why = 0, ""
        if self._token is None:
            origin = headers.get("origin")
            if origin and origin.partition("://")[2] != headers.get("host", ""):
                status, why = 403, "a page of another site may not ask"
        elif path not in _OPEN and not path.startswith("/page/"):
            token = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(token.encode(), self._token.encode()):
                status, why = 401, "a token is needed: Authorization: Bearer TOKEN"
        sent = {"www-authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"error": {"message": why, "type": "refused"}}, status, sent) if status else None
