"""What every request passes before it is answered: the token or the origin; then it is counted and logged.

Starlette checks host names and the size of bodies, and uvicorn limits the number of connections. Rates, slow clients
and TLS are the matter of a proxy in front.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
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
_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counts of one server, in the format of Prometheus."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"polyhop_{name}", text, labels, registry=registry)

        self._questions = counter("questions", "Questions by program and outcome.", "program", "outcome")
        self.requests = counter("requests", "HTTP requests by path and status.", "path", "status")
        self._calls = counter("lm_calls", "Calls of language models, without replies from a cache.")
        self._cancelled = counter("cancelled_calls", "Calls whose client has left or waited too long.")
        self._tokens = counter("tokens", "Tokens of these calls.", "direction")
        self._dollars = counter("cost_usd", "Dollars that these calls cost, where prices are known.")
        name = "polyhop_question_seconds"
        self._seconds = Histogram(name, "Seconds per question.", registry=registry, buckets=_SECONDS)

    def done(self, program: str, outcome: str, seconds: float, costs: Mapping[str, float], cancelled: int = 0) -> None:
        """Count a question, and the calls that were cancelled."""
        self._questions.labels(program, outcome).inc()
        self._cancelled.inc(cancelled)
        if costs:
            self._seconds.observe(seconds)
            self._calls.inc(costs["lm_calls"])
            self._tokens.labels("in").inc(costs["tokens_in"])
            self._tokens.labels("out").inc(costs["tokens_out"])
            self._dollars.inc(costs.get("cost_usd", 0.0))

    def text(self, load: Mapping[str, int]) -> bytes:
        """All counts, and the load as gauges."""
        now = "".join(f"# TYPE polyhop_{name} gauge\npolyhop_{name} {number}\n" for name, number in load.items())
        return generate_latest(self._registry) + now.encode()


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
            route = getattr(scope.get("route"), "path", None) or ("/mcp" if path == "/mcp" else "other")
            self._metrics.requests.labels(route, status).inc()
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
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                status, why = 401, "a token is needed: Authorization: Bearer TOKEN"
        sent = {"www-authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"error": {"message": why, "type": "refused"}}, status, sent) if status else None
