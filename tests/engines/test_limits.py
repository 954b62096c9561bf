"""Models with limits: what they wait for, what DSPy repeats, and what a program, a file and a process see of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import LMError, LMRateLimitError, lm15

from polyhop.engines.budget import BudgetSpent
from polyhop.engines.costs import CANCELLED, Abandoned, Ledger
from polyhop.engines.limits import Limits, RateLimit

from ..faults.listening import Listening, fails, says
from .guarded import ANSWER, Scripted, Time, ask, limited, response

KEY = "planted-0123456789"


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_minute_has_as_many_requests_as_the_limit() -> None:
    clock = Time()
    limit = RateLimit(Limits(requests_per_minute=60), clock, clock.rest)
    start = clock.now
    sent = []
    for _ in range(120):
        limit.wait()
        sent.append(clock.now - start)
        limit.leave()
    assert sent == pytest.approx(range(120))


def test_while_a_server_asks_to_wait_nobody_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.limits.uniform", lambda low, high: 0.0)
    clock = Time()
    limit = RateLimit(Limits(retries=0), clock, clock.rest)
    with pytest.raises(LMRateLimitError):
        ask(limited(Scripted([LMRateLimitError("slow down", retry_after=7.0)]), limit=limit))
    assert clock.rests == []
    assert ask(limited(Scripted(), limit=limit)) == "42"  # another model of the same server
    assert clock.rests == [7.0]
    limit.hold(5.0)
    limit.hold(2.0)  # does not end the longer one
    assert limit.closed() == 5.0


def test_concurrency_is_as_high_as_allowed_and_no_higher() -> None:
    under_way, most, lock, meeting = 0, 0, threading.Lock(), threading.Barrier(3)

    def count() -> lm15.Response:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        meeting.wait(30)  # all three at a time, or never
        with lock:
            under_way -= 1
        return response()

    lm = limited(Scripted([count] * 30), concurrency=3)
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(lambda n: ask(lm, f"{n}?"), range(30))) == ["42"] * 30
    assert most == 3


@pytest.mark.parametrize("wait", ["slot", "minute", "server", "reply"])
def test_a_question_that_is_given_up_waits_for_nothing(wait: str) -> None:
    limit, engine, ledger = RateLimit(Limits(concurrency=1, requests_per_minute=1)), Scripted(), Ledger()
    release = threading.Event()
    if wait == "slot":
        limit.wait()
    elif wait == "minute":
        limit.wait()
        limit.leave()
    elif wait == "server":
        limit.hold(100)
    else:
        engine.script.append(lambda: (release.wait(30) and response()) or response())
    threading.Timer(0.2, ledger.abandoned.set).start()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        ask(limited(engine, limit=limit))
    release.set()
    assert engine.calls == (wait == "reply")
    assert ledger.incidents == ({CANCELLED: 1} if wait == "reply" else {})


def test_who_is_given_up_while_waiting_leaves_the_place_to_the_next() -> None:
    errors = iter([Abandoned()])

    def rest(seconds: float) -> None:
        if error := next(errors, None):
            raise error

    limit = RateLimit(Limits(concurrency=1), sleep=rest)
    with pytest.raises(Abandoned):
        limit.wait()
    (other := threading.Thread(target=limit.wait, daemon=True)).start()
    other.join(10)
    assert not other.is_alive()


def test_a_reply_that_is_late_is_asked_for_again() -> None:
    release, ledger = threading.Event(), Ledger()
    engine = Scripted([lambda: (release.wait(30) and response("late")) or response("late")])
    with dspy.context(usage_tracker=ledger):
        assert ask(limited(engine, timeout=0.2, concurrency=1)) == "42"
    release.set()
    assert ledger.incidents == {"request failed (timeout)": 1}
    assert ledger.costs()["lm_calls"] == 1


@pytest.mark.parametrize("kind", [BudgetSpent, KeyboardInterrupt, Abandoned, SystemExit])
def test_what_is_no_error_of_a_model_passes_through(kind: type[BaseException]) -> None:
    engine = Scripted([kind("enough")])
    lm = limited(engine, concurrency=1)
    with pytest.raises(kind, match="enough"):
        ask(lm)
    assert engine.calls == 1
    assert ask(lm) == "42"  # its place is free again


# --- in a program ----------------------------------------------------------------------------------------------------


def test_a_saved_program_has_the_plain_model(tmp_path: Path) -> None:
    lm = dspy.LM("openai/some-model", api_key=KEY, temperature=0.25, max_tokens=77, headers={"X-Auth": KEY})
    program = dspy.Predict("question -> answer")
    program.set_lm(limited(lm, concurrency=1))
    program.save(tmp_path / "program.json")
    assert KEY not in (tmp_path / "program.json").read_text()
    again = dspy.Predict("question -> answer")
    again.load(tmp_path / "program.json")
    assert type(again.lm) is dspy.LM
    assert (again.lm.model, again.lm.engine, again.lm.num_retries) == ("openai/some-model", "auto", lm.num_retries)
    assert {name: value for name, value in again.lm.kwargs.items() if value is not None} == {
        "temperature": 0.25,
        "max_tokens": 77,
    }


# --- streams and event loops -----------------------------------------------------------------------------------------


def test_many_coroutines_at_once() -> None:
    """As many as the limits allow, not as the event loop has threads."""
    together = threading.Barrier(40)

    def meet() -> lm15.Response:
        together.wait(60)  # nobody gets on before all are there
        return response()

    async def many() -> list[Any]:
        program = dspy.Predict("question -> answer")
        return await asyncio.gather(*(program.acall(question=f"{n}?") for n in range(40)), return_exceptions=True)

    with dspy.context(lm=limited(Scripted([meet] * 40)), disable_history=True):
        found = asyncio.run(many())
    assert [each.answer for each in found] == ["42"] * 40


# --- over a connection -----------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Listening]:
    with Listening(says(ANSWER)) as server:
        yield server


@pytest.mark.parametrize("engine", ["auto", "lm15", "litellm"])
@pytest.mark.parametrize("status", [200, 429, 500])
def test_an_attempt_is_one_request(engine: str, status: int, server: Listening) -> None:
    """The clients inside LiteLLM would repeat it on their own, unlimited and unpaid."""
    server.act = says(ANSWER) if status == 200 else fails(status)
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False, engine=engine, temperature=0.25)
    lm = limited(lm, retries=0)
    if status == 200:
        assert ask(lm) == "42"
    else:
        with pytest.raises(LMError) as caught:
            ask(lm)
        assert KEY not in str(caught.value)
    (seen,) = server.seen
    assert (seen["key"], seen["model"], seen["temperature"]) == (f"Bearer {KEY}", "some-model", 0.25)
    assert "max_retries" not in seen


def test_replies_of_two_servers_are_cached_apart() -> None:
    with Listening(says(ANSWER)) as one, Listening(says(ANSWER.replace("42", "43"))) as other:
        name = f"openai/model-{id(one)}"
        models = [limited(dspy.LM(name, api_base=server.url, api_key=KEY)) for server in (one, other, one)]
        assert [ask(lm) for lm in models] == ["42", "43", "42"]
        assert [len(server.seen) for server in (one, other)] == [1, 1]
