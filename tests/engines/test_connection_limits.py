"""Replies without end, compressed ones, slow ones, and their counts of tokens."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any

import dspy
import httpx
import pytest
from dspy.utils.exceptions import LMError, LMServerError, LMTimeoutError

from polyhop.engines.budget import Budget
from polyhop.engines.connection import LARGEST_REPLY, BoundedTransport, attempt
from polyhop.engines.costs import Ledger
from polyhop.engines.diagnosis import OverlongReplyError
from polyhop.engines.endpoint import Endpoint, Limits
from polyhop.scripts.studies.faults.completions import completion_of, encode
from polyhop.scripts.studies.faults.exchange import Exchange, HungUp

from ..scripts.studies.faults.listening import Act, Listening, says
from .guarded import ANSWER, ask

MOST_SENT = 64 << 20  # bytes: buffers of sockets are part of it
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Endless:
    """Sends its pieces until the client hangs up; ``sent`` counts bytes."""

    def __init__(self, head: bytes, piece: bytes, every: float = 0.0) -> None:
        self._head, self._piece, self._every = head, piece, every
        self.sent = 0
        self.closed = threading.Event()

    def __call__(self, exchange: Exchange) -> None:
        try:
            exchange.send(self._head)
            while self.sent < 10 * MOST_SENT:
                exchange.send(self._piece)
                self.sent += len(self._piece)
                if self._every:
                    exchange.wait(self._every)
        except HungUp:
            self.closed.set()
            raise


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


ENDLESS = {
    "without length": (HEAD + b"\r\n", b"x" * 65536),
    "chunked": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk(b" " * 65536)),
    "with length": (HEAD + b"Content-Length: 99999999999\r\n\r\n", b"[" * 65536),
    "compressed": (HEAD + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(bytes(1 << 24))),
}


@pytest.fixture
def server() -> Iterator[Listening]:
    with Listening(says(ANSWER)) as server:
        yield server


def model(server: Listening, engine: str, name: str = "openai/some-model", **limits: Any) -> dspy.LM:
    lm = dspy.LM(name, api_base=server.url, api_key="any", cache=False, engine=engine)
    return Endpoint(Limits(**{"retries": 0, "timeout": 60.0} | limits)).guard(lm)


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_reply_without_end_is_read_up_to_a_limit(engine: str, kind: str, server: Listening) -> None:
    endless = server.act = Endless(*ENDLESS[kind])
    with pytest.raises(OverlongReplyError, match="more than 4 MB"):
        ask(model(server, engine, retries=1))
    assert endless.closed.wait(60)
    assert endless.sent < MOST_SENT
    assert len(server.seen) == 1


def test_a_budget_alone_limits_replies_too(server: Listening) -> None:
    server.act = Endless(*ENDLESS["chunked"])
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key="any", cache=False)
    with pytest.raises(LMError, match="more than 4 MB"):
        ask(Budget().meter(lm))


def test_other_providers_of_litellm_are_limited_too(server: Listening) -> None:
    endless = server.act = Endless(*ENDLESS["compressed"])
    with pytest.raises(LMError):
        ask(model(server, "litellm", "hosted_vllm/some-model"))
    assert endless.closed.wait(60)
    assert endless.sent < MOST_SENT


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("head", [HEAD + b"Content-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_a_connection_ends_with_its_time(engine: str, head: bytes, server: Listening) -> None:
    """Also one that sends a byte of the body, or of a header, now and then."""
    endless = server.act = Endless(head, b" ", every=0.05)
    started = monotonic()
    with pytest.raises(LMTimeoutError):
        ask(model(server, engine, timeout=0.5))
    assert endless.closed.wait(60)
    assert monotonic() - started < 60


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_compressed_reply_is_read(engine: str, encoding: str, server: Listening) -> None:
    def act(exchange: Exchange) -> None:
        body = encode(completion_of("m", ANSWER, 7, 3))
        body = gzip.compress(body) if encoding == "gzip" else body
        length = b"Content-Length: %d\r\nContent-Encoding: %s\r\n\r\n" % (len(body), encoding.encode())
        exchange.send(HEAD + length + body)

    server.act = act
    assert ask(model(server, engine)) == "42"


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize(("encoding", "body"), [("zstd", b"x"), ("gzip", b"x"), ("x" * 9999, b"x")])
def test_a_reply_that_cannot_be_decompressed(engine: str, encoding: str, body: bytes, server: Listening) -> None:
    head = f"Content-Length: {len(body)}\r\nContent-Encoding: {encoding}\r\n\r\n".encode()
    server.act = lambda exchange: exchange.send(HEAD + head + body)
    with pytest.raises(LMError) as caught:
        ask(model(server, engine))
    assert len(str(caught.value)) < 400


ODD = [-5, 1.5, float("nan"), float("inf"), "many", [], [1], {}, True, 10**400, {"a": [[]]}]


def with_usage(usage: Any) -> Act:
    return lambda exchange: exchange.reply({**completion_of("m", ANSWER, 7, 3), "usage": usage})


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(odd)[:20])
def test_odd_counts_of_tokens_cost_no_reply(engine: str, odd: Any, server: Listening) -> None:
    for usage in (
        odd if odd != {} else [{}],
        {"prompt_tokens": odd, "completion_tokens": 3, "total_tokens": 10},
        {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": odd}},
    ):
        server.act = with_usage(usage)
        ledger = Ledger()
        with dspy.context(usage_tracker=ledger):
            assert ask(model(server, engine)) == "42"
        assert ledger.incidents == {"tokens estimated": 1}
        assert 0 < ledger.costs()["tokens"] < 10_000


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_counts_of_tokens_with_more_than_we_know(engine: str, server: Listening) -> None:
    server.act = with_usage(
        {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": None,
            "service_tier": "default",
            "queue_time": 0.25,
        }
    )
    ledger = Ledger()
    with dspy.context(usage_tracker=ledger):
        assert ask(model(server, engine)) == "42"
    assert (ledger.costs()["tokens_in"], ledger.costs()["tokens_out"], ledger.incidents) == (7, 3, {})


def test_calls_of_others_over_the_same_transport_are_as_before(server: Listening) -> None:
    """LiteLLM's settings are for the whole process: what we do not send is neither cut nor changed."""
    server.act = lambda exchange: exchange.reply({"usage": {"tokens": -1}, "text": "x" * (LARGEST_REPLY + 1)})
    with httpx.Client(transport=BoundedTransport()) as client:
        reply = client.post(f"{server.url}/chat/completions", json={"model": "m", "messages": []})
        assert reply.json()["usage"] == {"tokens": -1}
        with attempt(), pytest.raises(OverlongReplyError):
            client.post(f"{server.url}/chat/completions", json={"model": "m", "messages": []})


def test_a_proxy_of_the_environment_is_used(server: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "")
    lm = dspy.LM("openai/some-model", api_base="http://model.invalid/v1", api_key="any", cache=False)
    with pytest.raises(LMError, match="there is no POST http://model.invalid/v1/chat/completions"):
        ask(Endpoint(Limits(retries=0)).guard(lm))


def test_a_reply_of_deep_brackets(server: Listening) -> None:
    body = b'{"id": ' + b"[" * 100_000
    server.act = lambda exchange: exchange.reply(body)
    with pytest.raises(LMServerError, match="not a completion"):
        ask(model(server, "auto"))


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_reply_of_very_many_objects(engine: str, server: Listening) -> None:
    server.act = lambda exchange: exchange.reply(b'{"choices": [' + b"[]," * 1_000_000 + b"[]]}")
    with pytest.raises(OverlongReplyError, match="objects"):
        ask(model(server, engine))
