"""What an endpoint repeats, what it does not, and when it takes a server for gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from socket import gaierror
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as dspy_errors
from dspy.utils.exceptions import LMError, LMProviderError, LMRateLimitError, LMServerError, LMTimeoutError

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


@pytest.mark.parametrize("error", [*LASTING[:4], PASSING[1], LMRateLimitError("slow down", status=429)])
def test_a_server_that_has_sent_an_error_is_there(error: LMError, time: Time) -> None:
    endpoint = Endpoint()
    with suppress(LMError):
        endpoint.ask(Scripted([error]).complete, request())
    assert attempts(endpoint, refused) == 9


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


def test_a_quiet_hour_is_no_failure(time: Time) -> None:
    endpoint = Endpoint()
    endpoint.ask(Scripted().complete, request())
    time.now += 3_600
    assert attempts(endpoint, lost) == 9


def test_no_retries() -> None:
    engine = Scripted([LMServerError("boom")])
    with pytest.raises(LMServerError):
        Endpoint(Limits(retries=0)).ask(engine.complete, request())
    assert engine.calls == 1
