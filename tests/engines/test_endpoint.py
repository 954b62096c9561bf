"""What an endpoint retries, how long it waits, and which limits it never exceeds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from socket import gaierror
from time import monotonic, sleep
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as dspy_errors
from dspy.utils.exceptions import LMError, LMProviderError, LMRateLimitError, LMServerError, LMTimeoutError

from polyhop.engines import endpoint as endpoint_module
from polyhop.engines.costs import Ledger
from polyhop.engines.endpoint import Endpoint, Limits

from .guarded import Scripted, Time, request, response

PASSING = [
    LMRateLimitError("slow down"),
    LMServerError("boom", status=503),
    LMTimeoutError("late"),
    dspy_errors.LMTransportError("connection reset"),
]
LASTING = [
    dspy_errors.LMAuthError("who are you?", status=401),
    dspy_errors.LMBillingError("pay first", status=402),
    dspy_errors.LMInvalidRequestError("no such field", status=400),
    dspy_errors.LMUnsupportedModelError("no such model", status=404),
    dspy_errors.ContextWindowExceededError(message="too long"),
    dspy_errors.LMNotConfiguredError("no key"),
    dspy_errors.LMUnexpectedError("a bug"),
    LMProviderError("a teapot", status=418),
]


def caused(error: LMError, cause: Exception) -> LMError:
    error.__cause__ = cause
    return error


def refused() -> LMError:
    return caused(dspy_errors.LMTransportError("refused"), ConnectionRefusedError())


def lost() -> LMError:
    return dspy_errors.LMTransportError("connection reset")


def attempts(endpoint: Endpoint, fail: Callable[[], LMError]) -> int:
    """How often one request is made that fails each time."""
    engine = Scripted([fail() for _ in range(20)])
    with pytest.raises(LMError):
        endpoint.ask(engine.complete, request())
    return engine.calls


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
def test_what_may_pass_is_asked_again(error: LMError, time: Time) -> None:
    engine, ledger = Scripted([error, error]), Ledger()
    with dspy.context(usage_tracker=ledger):
        assert Endpoint().ask(engine.complete, request()).text == response().text
    assert engine.calls == 3
    assert ledger.incidents == {f"repeated after {error.code}": 2}
    assert time.rests == [0.5, 1.0]


@pytest.mark.parametrize("error", LASTING, ids=lambda error: error.code)
def test_what_will_not_pass_is_raised_at_once(error: LMError, time: Time) -> None:
    engine = Scripted([error])
    with pytest.raises(type(error)) as caught:
        Endpoint().ask(engine.complete, request())
    assert caught.value is error
    assert (engine.calls, time.rests) == (1, [])


def test_a_server_that_never_was_there_is_given_up_soon(time: Time) -> None:
    endpoint = Endpoint()
    for calls in (3, 9):
        assert attempts(endpoint, refused) == calls
        endpoint.ask(Scripted().complete, request())  # now it is known to be there


@pytest.mark.parametrize(
    ("fail", "calls"),
    [
        (lambda: caused(dspy_errors.LMTransportError("?"), gaierror("no such name")), 3),
        (lambda: caused(LMServerError("Connection error.", status=500), ConnectionRefusedError()), 3),  # by LiteLLM
        (lambda: caused(LMServerError("Connection error.", status=500), ConnectionResetError()), 9),
        (lambda: caused(dspy_errors.LMTransportError("?"), ConnectionResetError()), 9),
    ],
)
def test_only_where_nobody_is_there_is_a_server_given_up_soon(
    fail: Callable[[], LMError], calls: int, time: Time
) -> None:
    endpoint = Endpoint()
    assert attempts(endpoint, fail) == attempts(endpoint, fail) == calls


def test_a_server_that_is_down_for_good_is_asked_once_a_request(time: Time) -> None:
    endpoint = Endpoint()
    endpoint.ask(Scripted().complete, request())
    assert [attempts(endpoint, lost) for _ in range(7)] == [9, 9, 9, 7, 1, 1, 1]
    assert sum(time.rests) < 300 + 30  # and the last wait
    endpoint.ask(Scripted().complete, request())
    assert [attempts(endpoint, lost), attempts(endpoint, refused)] == [9, 9]


@pytest.mark.parametrize("heard", [LMServerError("boom", status=503), *LASTING[:1], response("")])
def test_a_server_that_is_heard_of_is_not_down(heard: Any, time: Time) -> None:
    endpoint = Endpoint()
    attempts(endpoint, lost)
    time.now += 301
    assert attempts(endpoint, lost) == 1
    with suppress(LMError):
        endpoint.ask(Scripted([heard]).complete, request())
    assert attempts(endpoint, lost) == 9


def test_a_server_that_never_replies_in_time_is_down(time: Time) -> None:
    def hang() -> lm15.Response:
        time.now += 60
        raise LMTimeoutError("late")

    endpoint, calls = Endpoint(), []
    for _ in range(4):
        engine = Scripted([hang] * 20)
        with pytest.raises(LMTimeoutError):
            endpoint.ask(engine.complete, request())
        calls.append(engine.calls)
    assert calls == [6, 1, 1, 1]


def storm(count: int, **more: Any) -> list[Any]:
    return [LMRateLimitError("slow down", **more) for _ in range(count)]


def test_waits_grow_and_end(time: Time) -> None:
    errors = [LMServerError(f"boom {n}") for n in range(20)]
    engine = Scripted([*errors])
    with pytest.raises(LMServerError) as caught:
        Endpoint().ask(engine.complete, request())
    assert engine.calls == 9
    assert caught.value is errors[8]
    assert time.rests == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_patience_ends(time: Time) -> None:
    engine = Scripted([LMServerError("boom")] * 20)
    with pytest.raises(LMServerError):
        Endpoint(Limits(patience=10, retries=100)).ask(engine.complete, request())
    assert time.rests == [0.5, 1, 2, 4]
    assert engine.calls == 5


def test_the_server_says_how_long_to_wait(time: Time) -> None:
    endpoint = Endpoint()
    assert endpoint.ask(Scripted(storm(1, retry_after=20.0)).complete, request())
    assert time.rests == [21.0]


def test_who_is_told_to_come_soon_comes_less_and_less_often(time: Time) -> None:
    """In a storm of "Retry-After: 0" all attempts would be over in a second."""
    assert Endpoint().ask(Scripted(storm(5, retry_after=0.0)).complete, request())
    assert time.rests == [0.5, 1, 2, 4, 8]


def test_who_is_told_to_come_tomorrow_is_not_waited_for(time: Time) -> None:
    engine = Scripted(storm(1, retry_after=86_400.0))
    endpoint = Endpoint()
    with pytest.raises(LMRateLimitError):
        endpoint.ask(engine.complete, request())
    assert time.rests == []
    assert endpoint.ask(engine.complete, request())  # nor do others wait
    assert time.rests == []


def test_one_thread_that_is_told_to_wait_holds_back_all() -> None:
    endpoint, sent = Endpoint(Limits(patience=30)), []

    class Timed(Scripted):
        def complete(self, request: lm15.Request) -> lm15.Response:
            sent.append(monotonic())
            return super().complete(request)

    engine = Timed(storm(1, retry_after=0.4))
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(endpoint.ask, engine.complete, request())]
        end = monotonic() + 30
        while not endpoint.gate.closed() and monotonic() < end:
            sleep(0.01)
        replies += [pool.submit(endpoint.ask, engine.complete, request()) for _ in range(7)]
        assert all(reply.result(60) for reply in replies)
    assert all(time >= sent[0] + 0.4 for time in sent[1:])
    assert len(set(sent[1:])) == 8


def test_a_server_that_never_opens_is_asked_in_the_end(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(Limits(patience=30))

    def rest(seconds: float) -> None:
        time.rest(seconds)
        endpoint.gate.close(5)  # as others are told all the time

    endpoint.gate.close(5)
    monkeypatch.setattr(endpoint_module, "pause", rest)
    engine = Scripted()
    assert endpoint.ask(engine.complete, request())
    assert 30 <= sum(time.rests) <= 40


class Busy:
    """Takes a while, and knows how many it serves at once."""

    def __init__(self, seconds: float = 0.005) -> None:
        self.seconds, self.now, self.most, self.calls, self._lock = seconds, 0, 0, 0, threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            self.now, self.calls = self.now + 1, self.calls + 1
            self.most = max(self.most, self.now)
            fails = self.calls % 5 == 0
        sleep(self.seconds)
        with self._lock:
            self.now -= 1
        if fails:
            raise LMServerError("boom")
        return response()


def test_no_more_requests_than_allowed_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_FIRST_WAIT", 0.001)
    monkeypatch.setattr(endpoint_module, "_LONGEST_WAIT", 0.01)
    endpoint, engine = Endpoint(Limits(concurrency=3)), Busy()
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda n: endpoint.ask(engine.complete, request()), range(100)))
    assert (len(replies), engine.most, engine.now) == (100, 3, 0)


def test_models_behind_one_endpoint_share_its_limits() -> None:
    endpoint, engine = Endpoint(Limits(concurrency=2)), Busy()
    engine.calls = -1_000  # does not fail: DSPy would wait
    models = [endpoint.guard(dspy.LM(f"made/up{n}", engine=engine, cache=False)) for n in range(4)]
    with ThreadPoolExecutor(16) as pool:
        assert len(list(pool.map(lambda n: models[n % 4]("What?"), range(40)))) == 40
    assert engine.most == 2


@pytest.mark.parametrize(
    ("usage", "booked"),
    [
        (lm15.Usage(input_tokens=700, output_tokens=60), 760),
        (lm15.Usage(total_tokens=123), 123),
        (lm15.Usage(input_tokens=0, output_tokens=0), 0),
        (lm15.Usage(), 500),  # nobody knows: what was estimated, 400 characters and a reply
        (lm15.Usage(input_tokens=700), 500),
    ],
)
def test_tokens_are_booked_as_they_were_used(usage: lm15.Usage, booked: int) -> None:
    endpoint = Endpoint(Limits(tokens_per_minute=100_000))
    endpoint.ask(Scripted([response(usage=usage)]).complete, request("x" * 400))
    assert endpoint.gate._tokens
    assert endpoint.gate._tokens._sum == pytest.approx(booked, abs=30)


@pytest.mark.parametrize(
    "limits",
    [
        {"concurrency": 0},
        {"concurrency": 1.5},
        {"requests_per_minute": -1},
        {"tokens_per_minute": float("inf")},
        {"tokens_per_minute": float("nan")},
        {"timeout": None},
        {"timeout": "60"},
        {"retries": -1},
        {"patience": True},
    ],
)
def test_invalid_limits(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"(?s)1 validation error .*{next(iter(limits))}"):
        Limits(**limits)


def test_an_address_in_the_environment_is_part_of_what_the_cache_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    known = []
    for address in ("http://one:8000/v1", "http://two:8000/v1"):
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", address)
        known.append(Endpoint().guard(dspy.LM("hosted_vllm/qwen3")).kwargs)
    assert known[0] != known[1]
