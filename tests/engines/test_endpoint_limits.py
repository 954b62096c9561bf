"""What an endpoint never exceeds: requests at once, requests and tokens a minute."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import LMServerError

from polyhop.engines import endpoint as endpoint_module
from polyhop.engines.endpoint import Endpoint, Limits

from .guarded import Scripted, Time, request, response


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


def test_requests_a_minute(time: Time) -> None:
    endpoint, engine = Endpoint(Limits(requests_per_minute=60)), Scripted()
    sent = []
    endpoint._requests._clock = time  # type: ignore[union-attr]
    endpoint._requests._then = time.now  # type: ignore[union-attr]
    for _ in range(150):
        endpoint.ask(engine.complete, request())
        sent.append(time.now)
    assert all(sum(a <= b < a + 59.999 for b in sent) <= 60 for a in sent)
    assert sent[-1] - sent[0] <= 150 / 60 * 60 / 0.85


def tokens_left(endpoint: Endpoint) -> float:
    assert endpoint._tokens
    return endpoint._tokens._level


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
    endpoint._tokens._rate = 1e-9  # type: ignore[union-attr]
    endpoint.ask(Scripted([response(usage=usage)]).complete, request("x" * 400))
    assert 10_000 - tokens_left(endpoint) == pytest.approx(booked, abs=30)


def test_what_failed_stays_booked(time: Time) -> None:
    endpoint = Endpoint(Limits(tokens_per_minute=100_000))
    endpoint._tokens._rate = 1e-9  # type: ignore[union-attr]
    endpoint.ask(
        Scripted([LMServerError("boom"), response(usage=lm15.Usage(total_tokens=0))]).complete, request("x" * 400)
    )
    assert 10_000 - tokens_left(endpoint) == pytest.approx(500, abs=30)


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
