"""The events of a question as the response of a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from fastapi import Request
from fastapi.responses import StreamingResponse

from .service import Record, ServiceError


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
    ending, leaving = asyncio.create_task(_last(events)), asyncio.create_task(_left(request))
    try:
        await asyncio.wait((ending, leaving), return_when=asyncio.FIRST_COMPLETED)
        return ending.result() if ending.done() else {}
    finally:
        ending.cancel()
        leaving.cancel()


async def _last(events: AsyncGenerator[Record]) -> Record:
    event: Record = {}
    async for event in events:
        if event["event"] == "error":
            raise ServiceError(event["kind"], event["message"])
    event.pop("passages", None)
    return event


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
