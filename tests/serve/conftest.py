"""A real server on loopback over the sample corpus, with the embedded engine or a slow one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from socket import AF_INET, SOCK_STREAM, socket
from time import monotonic, sleep
from typing import Any

import dspy
import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("mcp")
import uvicorn

from polyhop.app.named import NamedProgram
from polyhop.app.options import ProgramOptions
from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.serve.app import LOOPBACK, create_app
from polyhop.serve.service import Service

QUESTION = "Who wrote the novella that Stalker is based on?"


@cache
def sample() -> PassagePool:
    """The sample corpus, whose names are looked for once."""
    return PassagePool(sample_passages())


def service(lm: str = "lexical", source: Any = None, settings: tuple[str, ...] = (), **limits: Any) -> Service:
    source = source or sample()
    options = ProgramOptions(lm=(lm,), set=settings)

    def build(name: str) -> dspy.Module:
        return NamedProgram(name).build(source, options)

    return Service(build, ("polyhop", "naive"), source, index="sample", **limits)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket(AF_INET, SOCK_STREAM) as bound:
        bound.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        until = monotonic() + 60
        while not server.started and monotonic() < until:
            sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.fixture
def start() -> Iterator[Callable[..., str]]:
    """Starts servers that stop at the end of the test; returns their address."""
    with ExitStack() as stack:

        def started(*, token: str | None = None, hosts: Sequence[str] = LOOPBACK, **options: Any) -> str:
            return stack.enter_context(listening(create_app(service(**options), token=token, hosts=hosts)))

        yield started


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server with the embedded engine, for all tests of a file that only ask."""
    with listening(create_app(service())) as address:
        yield address


def ask(address: str, question: str = QUESTION, **headers: str) -> httpx.Response:
    """What ``POST /ask`` answers."""
    return httpx.post(f"{address}/ask", json={"question": question}, headers=headers, timeout=60)


def streamed(address: str, question: str = QUESTION) -> list[dict[str, Any]]:
    """The events of a question."""
    asked = {"question": question, "stream": True}
    with httpx.stream("POST", f"{address}/ask", json=asked, timeout=60) as reply:
        return events_of(reply)


def events_of(reply: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream."""
    return [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: ")]


def faults(page: Any) -> list[str]:
    """What axe-core finds, as rules and elements; it runs outside of the page's security policy."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [f"{each['id']} ({each['impact']}): {node['html'][:120]}" for each in found for node in each["nodes"]]
