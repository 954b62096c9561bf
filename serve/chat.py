"""OpenAI's chat completions: a program is a model, the last message of the user is the question.

The answer is followed by its evidence, numbered, and has it as ``annotations`` (``url_citation``), too. While a program
works, a stream tells its steps as ``reasoning_content``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import time
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from ..data.text import plain, quoted
from ..programs.prediction import withheld
from .service import Record, Service
from .streams import last_event, streamed


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

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type in ("text", "input_text"))
        return self.content or ""


class StreamOptions(Body):
    """What a stream ends with."""

    include_usage: bool = False


class Completion(Body):
    """The body of ``POST /v1/chat/completions``; sampling and other settings are ignored."""

    model: str = ""
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None


def add_chat(app: FastAPI, service: Service) -> None:
    """Add ``/v1/chat/completions`` and ``/v1/models``."""

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The programs."""
        each = {"object": "model", "created": 0, "owned_by": "polyhop"}
        return {"object": "list", "data": [{"id": name, **each} for name in service.programs]}

    @app.post("/v1/chat/completions")
    async def complete(asked: Completion, request: Request) -> Response:
        """The answer to the last message of the user."""
        question = next((each.text for each in reversed(asked.messages) if each.role == "user"), "")
        events = service.events(question, asked.model)
        id, created, model = f"chatcmpl-{uuid4().hex}", int(time()), asked.model or next(iter(service.programs), "")
        of_all = {"id": id, "created": created, "model": model}
        base = str(request.base_url)
        if asked.stream:
            with_usage = bool(asked.stream_options and asked.stream_options.include_usage)
            return await streamed(events, _chunks(of_all, base, with_usage))
        if not (event := await last_event(events, request)):
            return Response(status_code=499)  # nobody reads it
        content, annotations = cited(event, base)
        message = {"role": "assistant", "content": content, "refusal": None, "annotations": annotations}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return JSONResponse({**of_all, "object": "chat.completion", "choices": [choice], "usage": _usage(event)})


def _chunks(of_all: Record, base: str, with_usage: bool) -> Callable[[Record], list[str]]:
    """A function from an event to the lines of the stream."""

    def line(delta: Record, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _line({**of_all, "object": "chat.completion.chunk", "choices": [choice]})

    def lines(event: Record) -> list[str]:
        match event["event"]:
            case "start":
                return [line({"role": "assistant", "content": ""})]
            case "step" | "asking" | "waiting":
                return [line({"reasoning_content": f"{event['text']}\n"})]
            case "error":
                return [_line({"error": {"message": event["message"], "type": event["kind"]}}), "data: [DONE]\n\n"]
            case "answer":
                content, annotations = cited(event, base)
                words = content.split(" ")
                spoken = [line({"content": word if n == 0 else f" {word}"}) for n, word in enumerate(words)]
                end = [line({"annotations": annotations}), line({}, "stop")]
                usage = {**of_all, "object": "chat.completion.chunk", "choices": [], "usage": _usage(event)}
                return [*spoken, *end, *([_line(usage)] if with_usage else []), "data: [DONE]\n\n"]
        return []

    return lines


def _line(content: Record) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


def cited(event: Record, base: str) -> tuple[str, list[Record]]:
    """The answer with its numbered evidence, and where the numbers stand."""
    content, annotations = quoted(withheld(event["answer"], event["guess"])), []
    for number, item in enumerate(event["evidence"], 1):
        mark = f" [{number}]"
        url = f"{base}read?id={quote(item['passage_id'], safe='')}"
        place = {"start_index": len(content) + 1, "end_index": len(content) + len(mark)}
        annotations.append(
            {"type": "url_citation", "url_citation": {**place, "title": plain(item["title"]), "url": url}}
        )
        content += mark
    each = ((quoted(item["title"]), quoted(item["text"][:500])) for item in event["evidence"])
    sources = [f"[{n}] {title}: {text}" for n, (title, text) in enumerate(each, 1)]
    return "\n".join([content, *(["", *sources] if sources else [])]), annotations


def _usage(event: Record) -> Record:
    costs = event["costs"]
    return {
        "prompt_tokens": costs["tokens_in"],
        "completion_tokens": costs["tokens_out"],
        "total_tokens": costs["tokens"],
    }
