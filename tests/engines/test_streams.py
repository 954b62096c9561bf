"""Replies that come token by token through an endpoint, and calls that are cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from dspy.streaming import StreamListener, StreamResponse
from dspy.utils.exceptions import LMError, LMProviderError

from polyhop.engines.budget import Budget
from polyhop.engines.costs import Abandoned, Ledger
from polyhop.engines.endpoint import Endpoint, Limits
from polyhop.engines.streams import hearing
from polyhop.scripts.studies.faults.exchange import Exchange, HungUp

from ..scripts.studies.faults.listening import STREAM, Listening, chunk, fails, says, tells
from .guarded import ANSWER, ask

WORDS = ["[[ ## answer ## ]]\n", "for", "ty ", "two ", "\n\n[[ ## completed ## ]]"]
WAIT = 60.0  # seconds


@pytest.fixture
def server() -> Iterator[Listening]:
    with Listening(tells(WORDS)) as server:
        yield server


def model(server: Listening, guard: str = "endpoint", **limits: Any) -> dspy.LM:
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key="any", cache=False)
    return Budget().meter(lm) if guard == "budget" else Endpoint(Limits(**{"retries": 1} | limits)).guard(lm)


def streamed(lm: dspy.LM) -> Iterator[Any]:
    program = dspy.Predict("question -> answer")
    listeners = [StreamListener("answer", allow_reuse=True)]
    run = dspy.streamify(program, stream_listeners=listeners, async_streaming=False)
    with dspy.context(lm=lm):
        yield from run(question="What?")


def tokens(values: list[Any]) -> str:
    return "".join(value.chunk for value in values if isinstance(value, StreamResponse)).strip()


@pytest.mark.parametrize("guard", ["endpoint", "budget"])
def test_tokens_come_before_the_reply_is_complete(guard: str, server: Listening) -> None:
    seen = threading.Event()

    def before(word: str) -> None:
        if word == WORDS[-1]:
            assert seen.wait(WAIT)  # the client has seen the first ones

    server.act = tells([*WORDS[:-1], *["so "] * 12, WORDS[-1]], before)
    values = []
    for value in streamed(model(server, guard)):
        seen.set()
        values.append(value)
    assert tokens(values).startswith("forty two so so")
    assert values[-1].answer == tokens(values)


def test_what_a_stream_costs_is_counted(server: Listening) -> None:
    ledger = Ledger()
    with dspy.context(usage_tracker=ledger):
        assert list(streamed(model(server)))[-1].answer == "forty two"
    assert (ledger.costs()["lm_calls"], ledger.costs()["tokens_in"], ledger.costs()["tokens_out"]) == (1, 70, 5)


def test_a_failure_before_the_first_token_is_repeated(server: Listening) -> None:
    plan = [fails(500), tells(WORDS)]
    server.act = lambda exchange: plan.pop(0)(exchange)
    values = list(streamed(model(server)))
    assert tokens(values) == values[-1].answer == "forty two"
    assert len(server.seen) == 2


def test_a_failure_after_the_first_token_is_not(server: Listening) -> None:
    def breaks(exchange: Exchange) -> None:
        exchange.send(STREAM + b"".join(map(chunk, WORDS[:-1])))
        exchange.close(reset=True)

    server.act = breaks
    with pytest.raises(LMError):
        list(streamed(model(server, retries=3)))
    assert len(server.seen) == 1


def test_a_server_without_streams_replies_as_a_whole_and_is_asked_for_none_again(server: Listening) -> None:
    server.act = says(ANSWER)
    lm = model(server)
    for _ in range(2):
        values = list(streamed(lm))
        assert tokens(values) == values[-1].answer == "42"
    assert [bool(seen.get("stream")) for seen in server.seen] == [True, False, False]


def test_a_stream_without_end_is_read_up_to_a_limit(server: Listening) -> None:
    def endless(exchange: Exchange) -> None:
        exchange.send(STREAM)
        while True:
            exchange.send(chunk("x" * 30_000))

    server.act = endless
    with pytest.raises((LMProviderError, ExceptionGroup), match="more than 100,000 characters|sub-exception"):
        list(streamed(model(server)))
    assert len(server.seen) == 1


def test_tokens_in_an_event_loop(server: Listening) -> None:
    async def chunks() -> list[Any]:
        found = []

        class Sink:
            async def send(self, value: Any) -> None:
                found.append(value.choices[0]["delta"]["content"])

        with dspy.context(lm=model(server), send_stream=Sink()):
            await dspy.Predict("question -> answer").acall(question="What?")
        return found

    assert "".join(filter(None, asyncio.run(chunks()))) == "".join(WORDS)


# --- cancelled calls -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["none", "begun"])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_the_call_of_a_question_that_is_given_up_is_cancelled(engine: str, reply: str, server: Listening) -> None:
    asked, left = threading.Event(), threading.Event()

    def waits(exchange: Exchange) -> None:
        if reply == "begun":
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
        asked.set()
        try:
            exchange.wait(WAIT)
        except HungUp:
            left.set()

    server.act = waits
    ledger = Ledger()
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key="any", cache=False, engine=engine)

    def leave() -> None:
        assert asked.wait(WAIT)
        ledger.abandoned.set()

    threading.Thread(target=leave).start()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        ask(Endpoint(Limits(timeout=WAIT * 10)).guard(lm))
    assert left.wait(WAIT)  # the connection was closed
    assert len(server.seen) == 1
    assert ledger.incidents == {"call cancelled": 1}


def test_connections_of_calls_that_ended_stay_open_for_others(server: Listening) -> None:
    server.act = says(ANSWER)
    lm, ledger = model(server), Ledger()
    with dspy.context(usage_tracker=ledger):
        ask(lm)
    ledger.abandoned.set()
    assert ask(lm) == "42"
    assert ledger.incidents == {}


def test_what_is_registered_too_late_is_stopped_at_once() -> None:
    ledger, stopped = Ledger(), list[int]()
    with ledger.abandoned.stopping(lambda: stopped.append(1)):
        assert not stopped
    ledger.abandoned.set()
    assert not stopped
    with ledger.abandoned.stopping(lambda: stopped.append(2)):
        assert stopped == [2]


# --- who listens -----------------------------------------------------------------------------------------------------


def test_the_text_of_a_reply_is_heard_as_it_comes_and_from_the_start_after_a_failure(server: Listening) -> None:
    def breaks(exchange: Exchange) -> None:
        exchange.send(STREAM + b"".join(map(chunk, WORDS[:3])))
        exchange.close(reset=True)

    plan, heard = [breaks, tells(WORDS)], list[str]()
    server.act = lambda exchange: plan.pop(0)(exchange)
    lm = model(server)
    with hearing(heard.append):
        assert ask(lm) == "forty two"
    assert len(server.seen) == 2  # nobody was promised the text: it is repeated
    whole = [sum(map(len, WORDS[: n + 1])) for n in range(len(WORDS))]
    assert [len(text) for text in heard][-len(WORDS) :] == whole
    server.act = says(ANSWER)
    assert ask(lm) == "42"
    assert not server.seen[-1].get("stream")  # nobody listens
