"""Who waits at an endpoint in vain, and replies that do not come in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import LMRateLimitError, LMTimeoutError

from polyhop.engines import endpoint as endpoint_module
from polyhop.engines.budget import BudgetSpent
from polyhop.engines.costs import Abandoned, Ledger
from polyhop.engines.endpoint import Endpoint, Limits

from .guarded import Scripted, request, response


def waiting_for_a_slot(endpoint: Endpoint) -> None:
    assert endpoint._slots
    endpoint._slots.acquire()


def waiting_for_a_minute(endpoint: Endpoint) -> None:
    assert endpoint._requests
    endpoint._requests.take(100)


def waiting_for_an_open_server(endpoint: Endpoint) -> None:
    endpoint._open_again = monotonic() + 100


@pytest.mark.parametrize("wait", [waiting_for_a_slot, waiting_for_a_minute, waiting_for_an_open_server])
def test_who_waits_in_vain_stops_and_asks_nothing(wait: Callable[[Endpoint], None]) -> None:
    endpoint, engine, ledger = Endpoint(Limits(concurrency=1, requests_per_minute=60)), Scripted(), Ledger()
    wait(endpoint)
    threading.Timer(0.1, ledger.abandoned.set).start()
    started = monotonic()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        endpoint.ask(engine.complete, request())
    assert monotonic() - started < 30
    assert engine.calls == 0
    if wait is not waiting_for_a_slot:
        assert endpoint._slots
        assert endpoint._slots.acquire(blocking=False)


def test_who_waits_between_attempts_in_vain_stops() -> None:
    endpoint, engine, ledger = Endpoint(), Scripted([LMRateLimitError("slow down", retry_after=100.0)]), Ledger()
    threading.Timer(0.1, ledger.abandoned.set).start()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        endpoint.ask(engine.complete, request())
    assert engine.calls == 1


def test_who_is_given_up_asks_nothing_more() -> None:
    engine, ledger = Scripted(), Ledger()
    ledger.abandoned.set()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        Endpoint().ask(engine.complete, request())
    assert engine.calls == 0


@pytest.mark.parametrize("kind", [BudgetSpent, KeyboardInterrupt, Abandoned, SystemExit])
def test_what_is_no_error_of_a_model_passes_through(kind: type[BaseException]) -> None:
    endpoint, engine = Endpoint(Limits(concurrency=1)), Scripted([kind("enough")])
    with pytest.raises(kind, match="enough"):
        endpoint.ask(engine.complete, request())
    assert engine.calls == 1
    assert endpoint.ask(engine.complete, request())  # its slot is free again


def test_a_reply_that_does_not_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_GRACE", 0.0)
    release = threading.Event()

    def hang() -> lm15.Response:
        release.wait(30)
        return response("too late")

    endpoint, ledger = Endpoint(Limits(timeout=0.1, concurrency=1)), Ledger()
    with dspy.context(usage_tracker=ledger):
        assert endpoint.ask(Scripted([hang]).complete, request()).text == response().text
    assert ledger.incidents == {"repeated after timeout": 1}
    with pytest.raises(LMTimeoutError, match=r"\[made/up\] no reply within 0.1 s"):
        Endpoint(Limits(timeout=0.1, retries=0)).ask(Scripted([hang]).complete, request())
    release.set()


def test_a_reply_in_the_last_moment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(Future[lm15.Response]):
        """It is done between the end of the wait and the look whether it is."""

        def result(self, timeout: float | None = None) -> lm15.Response:
            if timeout is None:
                return super().result()
            super().result(10)
            raise TimeoutError

    monkeypatch.setattr(endpoint_module, "Future", Late)
    assert Endpoint(Limits(retries=0)).ask(Scripted().complete, request()).text == response().text


def test_a_time_limit_of_the_engine_itself_is_not_ours() -> None:
    with pytest.raises(TimeoutError, match="a bug"):
        Endpoint().ask(Scripted([TimeoutError("a bug")]).complete, request())
