"""How long an endpoint waits between attempts, and whom it holds back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

import pytest
from dspy import lm15
from dspy.utils.exceptions import LMRateLimitError, LMServerError, LMTimeoutError

from polyhop.engines import endpoint as endpoint_module
from polyhop.engines.endpoint import Endpoint, Limits

from .guarded import Scripted, Time, request


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


def test_patience_begins_with_the_first_failure(time: Time) -> None:
    def late() -> lm15.Response:
        time.now += 60
        raise LMTimeoutError("late")

    engine = Scripted([late])
    assert Endpoint(Limits(patience=10)).ask(engine.complete, request())
    assert engine.calls == 2


def test_threads_that_fail_do_not_come_back_together() -> None:
    """The jitter, as it is: sixteen waits after the same failure, and no two alike."""
    endpoint = Endpoint()
    waits = sorted(endpoint._wait(LMServerError("boom"), 3, 0.0) or 0.0 for _ in range(16))
    assert 2.0 <= waits[0] <= waits[-1] <= 4.0
    assert all(a < b for a, b in pairwise(waits))


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
        while not endpoint._open_again and monotonic() < end:
            sleep(0.01)
        replies += [pool.submit(endpoint.ask, engine.complete, request()) for _ in range(7)]
        assert all(reply.result(60) for reply in replies)
    assert all(time >= sent[0] + 0.4 for time in sent[1:])
    assert len(set(sent[1:])) == 8


def test_a_server_that_never_opens_is_asked_in_the_end(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(Limits(patience=30))

    def rest(seconds: float) -> None:
        time.rest(seconds)
        endpoint._open_again = time.now + 5  # as others are told all the time

    endpoint._open_again = time.now + 5
    monkeypatch.setattr(endpoint_module, "pause", rest)
    engine = Scripted()
    assert endpoint.ask(engine.complete, request())
    assert 30 <= sum(time.rests) <= 40
