"""OpenAI's chat completions: a program is a model, the last message of the user is the question.

The answer is followed by its evidence, numbered, and has it as ``annotations`` (``url_citation``), too. While a program
works, a stream tells its steps as ``reasoning_content``. The field ``polyhop`` has what OpenAI's API has no place for:
the status, the confidence, and the answer alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from time import time
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ..data.text import plain, quoted
from ..programs.prediction import withheld
from .service import Record, Service, ServiceError


class Body(BaseModel):
    """What a client sends: true is no number, and "5" neither."""

    model_config = ConfigDict(strict=True)


class Part(Body):
    """A part of a message; only texts are read."""

    type: str
    text: str = ""


class Message(Body):
    """A message of a conversation."""

    role: str
    content: str | list[Part] | None = None


class Completion(Body):
    """The body of ``POST /v1/chat/completions``; sampling and other settings are ignored."""

    model: str = ""
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None


async def streamed(events: AsyncGenerator[Record], form: Callable[[Record], list[str]]) -> StreamingResponse:
    """A stream of server-sent events. Errors before the first event are raised; then the client has a status."""
    first = await anext(events)

    async def texts() -> AsyncIterator[str]:
        try:
            for text in form(first):
                yield text
            async for event in events:
                for text in form(event):
                    yield text
        finally:
            await events.aclose()  # the client may have left

    return StreamingResponse(texts(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def last_event(events: AsyncGenerator[Record], request: Request) -> Record:
    """The ``answer`` event, without passages that a stream has sent before; empty if the client leaves.

    Raises:
        ServiceError: there is none.
    """

    async def last() -> Record:
        event: Record = {}
        async for event in events:
            if event["event"] == "error":
                raise ServiceError(event["kind"], event["message"])
        return {name: value for name, value in event.items() if name != "passages"}

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    ending, leaving = asyncio.create_task(last()), asyncio.create_task(left())
    try:
        await asyncio.wait((ending, leaving), return_when=asyncio.FIRST_COMPLETED)
        return ending.result() if ending.done() else {}
    finally:
        ending.cancel()
        leaving.cancel()


def add_chat(app: FastAPI, service: Service) -> None:
    """Add ``/v1/chat/completions`` and ``/v1/models``."""

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The programs."""
        model = {"object": "model", "created": 0, "owned_by": "polyhop"}
        return {"object": "list", "data": [{"id": name, **model} for name in service.programs]}

    @app.post("/v1/chat/completions")
    async def complete(asked: Completion, request: Request) -> Response:
        """The answer to the last message of the user."""
        content = next((m.content for m in reversed(asked.messages) if m.role == "user"), None) or ""
        if not isinstance(content, str):
            content = "\n".join(part.text for part in content if part.type in ("text", "input_text"))
        events, base = service.events(content, asked.model), str(request.base_url)
        model = asked.model or next(iter(service.programs), "")
        of_all = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time()), "model": model}
        if asked.stream:
            with_usage = bool((asked.stream_options or {}).get("include_usage"))
            return await streamed(events, _chunks(of_all, base, with_usage))
        if not (event := await last_event(events, request)):
            return Response(status_code=499)  # nobody reads it
        answer, annotations = cited(event, base)
        message = {"role": "assistant", "content": answer, "refusal": None, "annotations": annotations}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        more = {"choices": [choice], "usage": _usage(event), "polyhop": _checked(event)}
        return JSONResponse({**of_all, "object": "chat.completion", **more})


def _chunks(of_all: Record, base: str, with_usage: bool) -> Callable[[Record], list[str]]:
    """A function from an event to the lines of the stream."""

    def line(record: Record) -> str:
        return f"data: {json.dumps(record, ensure_ascii=False)}\n\n"

    def chunk(*deltas: Record, finish: str | None = None, **more: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None} for delta in deltas]
        return line({**of_all, "object": "chat.completion.chunk", "choices": choices, **more})

    def lines(event: Record) -> list[str]:
        match event["event"]:
            case "start":
                return [chunk({"role": "assistant", "content": ""})]
            case "step" | "asking" | "waiting":
                return [chunk({"reasoning_content": f"{event['text']}\n"})]
            case "error":
                return [line({"error": {"message": event["message"], "type": event["kind"]}}), "data: [DONE]\n\n"]
            case "answer":
                content, annotations = cited(event, base)
                spoken = [chunk({"content": content}), chunk({"annotations": annotations})]
                spoken.append(chunk({}, finish="stop", polyhop=_checked(event)))
                return [*spoken, *([chunk(usage=_usage(event))] if with_usage else []), "data: [DONE]\n\n"]
        return []

    return lines


def cited(event: Record, base: str) -> tuple[str, list[Record]]:
    """The answer with its numbered evidence, and where the numbers stand."""
    content, annotations = quoted(withheld(event["answer"], event["guess"])), []
    for number, item in enumerate(event["evidence"], 1):
        mark, url = f" [{number}]", f"{base}read?id={quote(item['passage_id'], safe='')}"
        place = {"start_index": len(content) + 1, "end_index": len(content) + len(mark)}
        cited = {**place, "title": plain(item["title"]), "url": url}
        annotations.append({"type": "url_citation", "url_citation": cited})
        content += mark
    texts = ((quoted(item["title"]), quoted(item["text"][:500])) for item in event["evidence"])
    sources = [f"[{n}] {title}: {text}" for n, (title, text) in enumerate(texts, 1)]
    return "\n".join([content, *(["", *sources] if sources else [])]), annotations


def _checked(event: Record) -> Record:
    return {name: event[name] for name in ("status", "confidence", "answer", "guess")}


def _usage(event: Record) -> Record:
    names = {"prompt_tokens": "tokens_in", "completion_tokens": "tokens_out", "total_tokens": "tokens"}
    return {name: event["costs"][cost] for name, cost in names.items()}
