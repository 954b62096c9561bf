"""Replies and errors that come back through an endpoint, in time or not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as dspy_errors
from dspy.utils.exceptions import LMError, LMRateLimitError, LMTimeoutError

from polyhop.engines import endpoint as endpoint_module
from polyhop.engines.budget import BudgetSpent
from polyhop.engines.costs import Abandoned, Ledger
from polyhop.engines.diagnosis import LONGEST_REPLY, OverlongReplyError, RefusedError
from polyhop.engines.endpoint import Endpoint, Limits

from .guarded import Scripted, request, response


def filtered(code: str | None, message: str) -> LMError:
    return dspy_errors.LMInvalidRequestError(message, provider_code=code, status=400, model="made/up")


@pytest.mark.parametrize(
    "outcome",
    [
        filtered("content_filter", "no"),
        filtered(None, "triggering Azure OpenAI's content management policy"),
        filtered(None, "litellm.ContentPolicyViolationError: no"),
        filtered("content_policy_violation", "no"),
        response(finish_reason="content_filter"),
        response(message=lm15.Message.assistant([lm15.RefusalPart("I will\nnot.")])),
    ],
)
def test_refusals_are_not_asked_again(outcome: Any) -> None:
    engine = Scripted([outcome])
    with pytest.raises(RefusedError, match="refused|filter") as caught:
        Endpoint().ask(engine.complete, request())
    assert engine.calls == 1
    assert caught.value.code == "refused"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (response(finish_reason="content_filter"), RefusedError),
        (response("a" * (LONGEST_REPLY + 1)), OverlongReplyError),
    ],
)
def test_what_cannot_be_used_is_paid_for(outcome: lm15.Response, kind: type[LMError]) -> None:
    ledger = Ledger()
    lm = Endpoint().guard(dspy.LM("made/up", engine=Scripted([outcome]), cache=False))
    with dspy.context(usage_tracker=ledger), pytest.raises(kind):
        lm("What?")
    assert (ledger.costs()["lm_calls"], ledger.costs()["tokens"]) == (1, 110)


def test_a_model_may_think_longer_than_it_may_speak() -> None:
    parts = [lm15.ThinkingPart("hm " * LONGEST_REPLY), lm15.TextPart("42")]
    reply = Endpoint().ask(Scripted([response(message=lm15.Message.assistant(parts))]).complete, request())
    assert reply.text == "42"


def waiting_for_a_slot(endpoint: Endpoint) -> None:
    endpoint.gate.enter()


def waiting_for_a_minute(endpoint: Endpoint) -> None:
    assert endpoint.gate._requests
    endpoint.gate._requests.count(endpoint.gate._requests.wait(100), 100)


def waiting_for_an_open_server(endpoint: Endpoint) -> None:
    endpoint.gate.close(100)


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
        assert endpoint.gate.enter(anyway=True)[0]


def test_who_waits_between_attempts_in_vain_stops() -> None:
    endpoint, engine, ledger = Endpoint(), Scripted([LMRateLimitError("slow down", retry_after=100.0)]), Ledger()
    threading.Timer(0.1, ledger.abandoned.set).start()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        endpoint.ask(engine.complete, request())
    assert engine.calls == 1


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
