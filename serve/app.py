"""The HTTP server: the page, questions with events, search, and the state of the server."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, time
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from ..data.errors import PolyhopError
from ..engines.replies import explain
from ..programs.prediction import MAX_QUESTION
from .chat import Body, add_chat, last_event, streamed
from .service import STATUS, Record, Service, ServiceError
from .tools import tool_routes, tool_server
from .uploads import LARGEST_UPLOAD, Uploads

log = logging.getLogger("polyhop.serve")

LARGEST_REQUEST = 1 << 20
"""Bytes of a request's body."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Host names of this machine."""

_PAGE = Path(__file__).parent / "page"
_REPORT = Path(__file__).parents[1] / "eval" / "report" / "assets"  # the page and the report have the same colors


class Question(Body):
    """The body of ``POST /ask``."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]
    program: str = ""
    stream: bool = False


class Search(Body):
    """The body of ``POST /search``."""

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]
    k: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0, le=10_000)] = 0
    retriever: str = "chain"


def create_app(
    service: Service, *, token: str | None = None, hosts: Sequence[str] = LOOPBACK, uploads: Uploads | None = None
) -> FastAPI:
    """The ASGI application of a service, which closes with it.

    Args:
        token: What requests must show; None serves this machine only.
        hosts: The host names that requests may be for; "*" for all.
        uploads: Where documents of clients go; None to refuse them.

    Raises:
        PolyhopError: the token is empty, as that of an unset variable is.
    """
    if token is not None and not token.strip():
        raise PolyhopError("the token is empty: set POLYHOP_TOKEN to a secret, or leave it and --token out")
    tools, started = tool_server(service), time()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with tools.session_manager.run():
            yield
        service.close()

    app = FastAPI(
        title="polyhop",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        max_body_size=LARGEST_REQUEST,
    )
    add_page(app, "index.html", hosts, token)
    for kind in (PolyhopError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _failed)

    @app.post("/ask")
    async def ask(asked: Question, request: Request) -> Response:
        """The ``answer`` event of a question; with ``"stream": true`` or ``Accept: text/event-stream`` all events."""
        events = service.events(asked.question, asked.program)
        if asked.stream or "text/event-stream" in request.headers.get("accept", ""):
            return await streamed(events, _as_sse)
        return JSONResponse(await last_event(events, request))

    @app.post("/search")
    async def search(asked: Search) -> dict[str, Any]:
        """The best passages of a query, with the reasons of the chain retriever."""
        hits = await service.search(asked.query, asked.k, asked.offset, asked.retriever)
        of_hit = ((hit, vars(hit.reason) if hit.reason else None) for hit in hits)
        shown = [{"passage": h.passage.to_record(), "score": h.score, "rank": h.rank, "reason": r} for h, r in of_hit]
        return {"hits": shown}  # `Passage.from_record` reads the passages

    @app.get("/read")
    async def read(id: str) -> dict[str, Any]:
        """A passage by its id."""
        passages = await service.in_thread(lambda: service.passages([id]))
        if id not in passages:
            raise ServiceError("unknown", f"no passage {id!r}")
        return dict(passages[id].to_record())

    @app.get("/linked")
    async def linked(target: str) -> dict[str, Any]:
        """The passage that a hyperlink leads to, as the events of a question show passages."""
        passage = await service.in_thread(lambda: service.linked(target))
        if passage is None:
            raise ServiceError("unknown", f"the index has no document {target!r}")
        return {"id": passage.id, **service.shown({passage.id: passage})[passage.id]}

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """That the server answers, and how its questions ended."""
        about = {"status": "ok", "version": __version__, "seconds": round(time() - started, 1)}
        return {**about, "running": service.running, "waiting": service.waiting, "questions": service.outcomes}

    @app.get("/index")
    async def index() -> dict[str, Any]:
        """What is searched, and by which programs."""
        about = {"index": service.index, "passages": 0 if service.source is None else len(service.source)}
        return {**about, "programs": service.programs, "examples": service.examples, "uploads": uploads is not None}

    @app.post("/index", max_body_size=LARGEST_UPLOAD)
    async def add(name: str, request: Request) -> Record:
        """Add the body as a document to the index."""
        if uploads is None:
            raise ServiceError("refused", "this server takes no documents: start it with --uploads DIR")
        return await uploads.add(name, request.stream())

    add_chat(app, service)
    app.router.routes.extend(tool_routes(tools))
    return app


def add_page(app: FastAPI, name: str, hosts: Sequence[str] = LOOPBACK, token: str | None = None) -> None:
    """Add a page and the files that it loads, and what every request of the application passes first."""
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(Guard, token=token)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(_PAGE / name, headers={"cache-control": "no-cache"})

    app.mount("/page/report", StaticFiles(directory=_REPORT), name="report")
    app.mount("/page", StaticFiles(directory=_PAGE), name="page")


def _as_sse(event: Record) -> list[str]:
    return [f"event: {event['event']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"]


async def _failed(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException):
        kind, status, message = "refused", error.status_code, str(error.detail)
    elif isinstance(error, RequestValidationError):
        kind, status = "malformed", 422
        message = "; ".join(
            f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}"
            if fault["loc"][1:]
            else "the body is no JSON object, or the header content-type: application/json is missing"
            for fault in error.errors()
        )[:500]
    else:
        kind = error.kind if isinstance(error, ServiceError) else "failed"
        status, message = STATUS[kind], explain(error)
    headers = {"retry-after": "5"} if kind == "busy" else None
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)


_OPEN = ("/", "/health")  # what needs no token, beside the files of the page
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Middleware that every request passes first: the token or the origin; then it is logged. Without a token, no page
    of another site may ask. Starlette checks host names and the size of bodies, and uvicorn limits the number of
    connections. Rates, slow clients and TLS are the matter of a proxy in front.

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
