"""The tools of the Model Context Protocol: find_chain, search, read, answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Annotated, Any
from urllib.parse import quote, unquote

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field
from starlette.routing import BaseRoute, Route

from .. import __version__
from ..data.passages import Hit
from ..data.text import quoted
from ..engines.replies import explain
from ..programs.prediction import withheld
from .service import Service, ServiceError

_PASSAGE = 2_000  # characters of a passage in a list

Query = Annotated[str, Field(min_length=1, max_length=5_000, description="Words to look for, or a question.")]
Question = Annotated[str, Field(min_length=1, max_length=5_000, description="A whole question.")]
Depth = Annotated[int, Field(strict=True, ge=1, le=50, description="How many passages to list.")]
Offset = Annotated[
    int,
    Field(strict=True, ge=0, le=1_000, description="How many passages to skip: 5 continues a list of the first 5."),
]


def tool_server(service: Service) -> MCPServer[Any]:
    """A server with the tools of a service."""
    server = MCPServer[Any](
        "polyhop",
        version=__version__,
        instructions="Searches documents for questions whose evidence is spread over several of them. Prefer answer "
        "for a question, and find_chain to read the passages yourself.",
        log_level="ERROR",
    )

    async def listed(retriever: str, query: str, k: int, offset: int) -> str:
        with _told():
            hits = await service.search(query, k, offset, retriever)
        return "\n\n".join(shown(hit, hits) for hit in hits) or f"nothing {'more ' * bool(offset)}found"

    @server.tool()
    async def find_chain(question: Question, k: Depth = 5, offset: Offset = 0) -> str:
        """Find the passages that together answer a question: the first has words of it, and each other is tied to an
        earlier one by a name or a hyperlink. Each passage comes with its id and the reason why it was chosen."""
        return await listed("chain", question, k, offset)

    @server.tool()
    async def search(query: Query, k: Depth = 5, offset: Offset = 0) -> str:
        """Find the passages that match the words of a query best (BM25). Each passage comes with its id. Browse further
        with an offset before you write another query."""
        return await listed("bm25", query, k, offset)

    @server.tool()
    async def read(id: Annotated[str, Field(max_length=1_000, description="The id of a passage.")]) -> str:
        """Read the whole passage with an id that a search returned."""
        passages = await service.in_thread(lambda: service.passages([unquote(id)]) or service.passages([id]))
        if not passages:
            raise ToolError(f"no passage {id!r}")
        [passage] = passages.values()
        return "\n".join([quoted(passage.title), "", *map(quoted, passage.text.splitlines())])

    @server.tool()
    async def answer(question: Question, context: Context[Any]) -> str:
        """Answer a question whose evidence is spread over several documents. Returns the answer, its confidence from 0
        to 1, and the sentences that support it."""
        done = 0
        with _told():
            async with aclosing(service.events(question)) as events:
                async for event in events:
                    done += 1
                    if event["event"] == "error":
                        raise ToolError(event["message"])
                    if event["event"] == "answer":
                        evidence = [f"- {quoted(item['title'])}: {quoted(item['text'])}" for item in event["evidence"]]
                        text = quoted(withheld(event["answer"], event["guess"]))
                        sure = "" if event["confidence"] is None else f" (confidence {event['confidence']:.2f})"
                        return "\n".join([f"{text}{sure}", *evidence])
                    if "text" in event:
                        await context.report_progress(done, message=event["text"])
        raise ToolError("the server stopped")

    return server


def tool_routes(server: MCPServer[Any]) -> list[BaseRoute]:
    """The tools over HTTP, while ``server.session_manager.run()`` runs; the application around them checks hosts.

    A GET would open a stream for messages that this server never sends: it is refused, as the protocol allows.
    """
    trusted = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(stateless_http=True, transport_security=trusted)
    return [Route("/mcp", app, methods=["POST"])]


@contextmanager
def _told() -> Iterator[None]:
    """An error inside is what the agent is told."""
    try:
        yield
    except ServiceError as error:
        raise ToolError(explain(error)) from error


def _shown_id(id: str) -> str:
    """An id as `read` takes it: with escapes, as in an address, if it has marks of ours."""
    return id if id == quoted(id) and "%" not in id else quote(id, safe="/#")


def shown(hit: Hit, hits: list[Hit]) -> str:
    titles = {other.passage.id: other.passage.title for other in hits}
    text = hit.passage.text
    cut = " ... (read the rest with its id)" if len(text) > _PASSAGE else ""
    why = f"\nreason: {quoted(hit.reason.told(titles))}" if hit.reason else ""
    head = f"id: {_shown_id(hit.passage.id)}\ntitle: {quoted(hit.passage.title)}"
    return f"{head}{why}\ntext: {quoted(text[:_PASSAGE])}{cut}"
