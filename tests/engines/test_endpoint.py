"""An endpoint: what it repeats and how long it waits, what it never exceeds, and what it lets through."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from socket import gaierror
from time import monotonic, sleep
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as dspy_errors
from dspy.utils.exceptions import LMError, LMProviderError, LMRateLimitError, LMServerError, LMTimeoutError

from polyhop.engines import endpoint as endpoint_module
from polyhop.engines.budget import BudgetSpent
from polyhop.engines.costs import Abandoned, Ledger
from polyhop.engines.diagnosis import LONGEST_REPLY, OverlongReplyError, RefusedError
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


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Nobody sleeps; jitter is as long as it can be."""
    time = Time()
    monkeypatch.setattr(endpoint_module, "monotonic", time)
    monkeypatch.setattr(endpoint_module, "rest", time.rest)
    monkeypatch.setattr(endpoint_module, "uniform", lambda low, high: high)
    return time


def storm(count: int, **more: Any) -> list[Any]:
    return [LMRateLimitError("slow down", **more) for _ in range(count)]


def caused(error: LMError, cause: Exception) -> LMError:
    error.__cause__ = cause
    return error


def refused() -> LMError:
    return caused(dspy_errors.LMTransportError("refused"), ConnectionRefusedError())


def attempts(endpoint: Endpoint, fail: Callable[[], LMError]) -> int:
    """How often one request is made that fails each time."""
    engine = Scripted([fail() for _ in range(20)])
    with pytest.raises(LMError):
        endpoint.ask(engine, request())
    return engine.calls


# --- what is repeated ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
def test_what_may_pass_is_asked_again(error: LMError, time: Time) -> None:
    engine, ledger = Scripted([error, error]), Ledger()
    with dspy.context(usage_tracker=ledger):
        assert Endpoint().ask(engine, request()).text == response().text
    assert engine.calls == 3
    assert ledger.incidents == {f"repeated after {error.code}": 2}
    assert time.rests == [0.5, 1.0]


@pytest.mark.parametrize("error", LASTING, ids=lambda error: error.code)
def test_what_will_not_pass_is_raised_at_once(error: LMError, time: Time) -> None:
    engine = Scripted([error])
    with pytest.raises(type(error)) as caught:
        Endpoint().ask(engine, request())
    assert caught.value is error
    assert (engine.calls, time.rests) == (1, [])


def test_waits_grow_and_end(time: Time) -> None:
    errors = [LMServerError(f"boom {n}") for n in range(20)]
    engine = Scripted([*errors])
    with pytest.raises(LMServerError) as caught:
        Endpoint().ask(engine, request())
    assert engine.calls == 9
    assert caught.value is errors[8]
    assert time.rests == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_patience_ends(time: Time) -> None:
    engine = Scripted([LMServerError("boom")] * 20)
    with pytest.raises(LMServerError):
        Endpoint(Limits(patience=10, retries=100)).ask(engine, request())
    assert time.rests == [0.5, 1, 2, 4]
    assert engine.calls == 5


def test_patience_begins_with_the_first_failure(time: Time) -> None:
    def late() -> lm15.Response:
        time.now += 60
        raise LMTimeoutError("late")

    engine = Scripted([late])
    assert Endpoint(Limits(patience=10)).ask(engine, request())
    assert engine.calls == 2


def test_a_server_that_never_was_there_is_given_up_soon(time: Time) -> None:
    endpoint = Endpoint()
    for calls in (3, 9):
        assert attempts(endpoint, refused) == calls
        endpoint.ask(Scripted(), request())  # now it is known to be there


@pytest.mark.parametrize("error", [*LASTING[:4], PASSING[1], LMRateLimitError("slow down", status=429)])
def test_a_server_that_has_sent_an_error_is_there(error: LMError, time: Time) -> None:
    endpoint = Endpoint()
    with suppress(LMError):
        endpoint.ask(Scripted([error]), request())
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


def lost() -> LMError:
    return dspy_errors.LMTransportError("connection reset")


def test_a_server_that_is_down_for_good_is_asked_once_a_request(time: Time) -> None:
    endpoint = Endpoint()
    endpoint.ask(Scripted(), request())
    assert [attempts(endpoint, lost) for _ in range(7)] == [9, 9, 9, 7, 1, 1, 1]
    assert sum(time.rests) < 300 + 30  # and the last wait
    endpoint.ask(Scripted(), request())
    assert [attempts(endpoint, lost), attempts(endpoint, refused)] == [9, 9]


@pytest.mark.parametrize("heard", [LMServerError("boom", status=503), *LASTING[:1], response("")])
def test_a_server_that_is_heard_of_is_not_down(heard: Any, time: Time) -> None:
    endpoint = Endpoint()
    attempts(endpoint, lost)
    time.now += 301
    assert attempts(endpoint, lost) == 1
    with suppress(LMError):
        endpoint.ask(Scripted([heard]), request())
    assert attempts(endpoint, lost) == 9


def test_a_server_that_never_replies_in_time_is_down(time: Time) -> None:
    def hang() -> lm15.Response:
        time.now += 60
        raise LMTimeoutError("late")

    endpoint, calls = Endpoint(), []
    for _ in range(4):
        engine = Scripted([hang] * 20)
        with pytest.raises(LMTimeoutError):
            endpoint.ask(engine, request())
        calls.append(engine.calls)
    assert calls == [6, 1, 1, 1]


def test_a_quiet_hour_is_no_failure(time: Time) -> None:
    endpoint = Endpoint()
    endpoint.ask(Scripted(), request())
    time.now += 3_600
    assert attempts(endpoint, lost) == 9


def test_no_retries() -> None:
    engine = Scripted([LMServerError("boom")])
    with pytest.raises(LMServerError):
        Endpoint(Limits(retries=0)).ask(engine, request())
    assert engine.calls == 1


def test_the_server_says_how_long_to_wait(time: Time) -> None:
    endpoint = Endpoint()
    assert endpoint.ask(Scripted(storm(1, retry_after=20.0)), request())
    assert time.rests == [21.0]


def test_who_is_told_to_come_soon_comes_less_and_less_often(time: Time) -> None:
    """In a storm of "Retry-After: 0" all attempts would be over in a second."""
    assert Endpoint().ask(Scripted(storm(5, retry_after=0.0)), request())
    assert time.rests == [0.5, 1, 2, 4, 8]


def test_who_is_told_to_come_tomorrow_is_not_waited_for(time: Time) -> None:
    engine = Scripted(storm(1, retry_after=86_400.0))
    endpoint = Endpoint()
    with pytest.raises(LMRateLimitError):
        endpoint.ask(engine, request())
    assert time.rests == []
    assert endpoint.ask(engine, request())  # nor do others wait
    assert time.rests == []


def test_one_thread_that_is_told_to_wait_holds_back_all() -> None:
    endpoint, sent = Endpoint(Limits(patience=30)), []

    class Timed(Scripted):
        def complete(self, request: lm15.Request) -> lm15.Response:
            sent.append(monotonic())
            return super().complete(request)

    engine = Timed(storm(1, retry_after=0.4))
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(endpoint.ask, engine, request())]
        end = monotonic() + 30
        while not endpoint._open_again and monotonic() < end:
            sleep(0.01)
        replies += [pool.submit(endpoint.ask, engine, request()) for _ in range(7)]
        assert all(reply.result(60) for reply in replies)
    assert all(time >= sent[0] + 0.4 for time in sent[1:])
    assert len(set(sent[1:])) == 8


def test_a_server_that_never_opens_is_asked_in_the_end(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(Limits(patience=30))

    def rest(seconds: float) -> None:
        time.rest(seconds)
        endpoint._open_again = time.now + 5  # as others are told all the time

    endpoint._open_again = time.now + 5
    monkeypatch.setattr(endpoint_module, "rest", rest)
    engine = Scripted()
    assert endpoint.ask(engine, request())
    assert 30 <= sum(time.rests) <= 40


# --- limits ----------------------------------------------------------------------------------------------------------


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
        replies = list(pool.map(lambda n: endpoint.ask(engine, request()), range(100)))
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
        endpoint.ask(engine, request())
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
    endpoint.ask(Scripted([response(usage=usage)]), request("x" * 400))
    assert 10_000 - tokens_left(endpoint) == pytest.approx(booked, abs=30)


def test_what_failed_stays_booked(time: Time) -> None:
    endpoint = Endpoint(Limits(tokens_per_minute=100_000))
    endpoint._tokens._rate = 1e-9  # type: ignore[union-attr]
    endpoint.ask(Scripted([LMServerError("boom"), response(usage=lm15.Usage(total_tokens=0))]), request("x" * 400))
    assert 10_000 - tokens_left(endpoint) == pytest.approx(500, abs=30)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"concurrency": 0}, "concurrency must be positive"),
        ({"concurrency": 1.5}, "concurrency must be a whole number"),
        ({"requests_per_minute": -1}, "requests_per_minute must be positive"),
        ({"tokens_per_minute": float("inf")}, "tokens_per_minute must be a smaller number"),
        ({"tokens_per_minute": float("nan")}, "tokens_per_minute must be a smaller number"),
        ({"timeout": None}, "timeout must be a number"),
        ({"timeout": "60"}, "timeout must be a number"),
        ({"retries": -1}, "retries must be positive"),
        ({"patience": True}, "patience must be a number"),
    ],
)
def test_limits_that_are_none(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Limits(**limits)


# --- who is given up -------------------------------------------------------------------------------------------------


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
        endpoint.ask(engine, request())
    assert monotonic() - started < 30
    assert engine.calls == 0
    if wait is not waiting_for_a_slot:
        assert endpoint._slots
        assert endpoint._slots.acquire(blocking=False)


def test_who_waits_between_attempts_in_vain_stops() -> None:
    endpoint, engine, ledger = Endpoint(), Scripted(storm(1, retry_after=100.0)), Ledger()
    threading.Timer(0.1, ledger.abandoned.set).start()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        endpoint.ask(engine, request())
    assert engine.calls == 1


def test_who_is_given_up_asks_nothing_more() -> None:
    engine, ledger = Scripted(), Ledger()
    ledger.abandoned.set()
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        Endpoint().ask(engine, request())
    assert engine.calls == 0


@pytest.mark.parametrize("kind", [BudgetSpent, KeyboardInterrupt, Abandoned, SystemExit])
def test_what_is_no_error_of_a_model_passes_through(kind: type[BaseException]) -> None:
    endpoint, engine = Endpoint(Limits(concurrency=1)), Scripted([kind("enough")])
    with pytest.raises(kind, match="enough"):
        endpoint.ask(engine, request())
    assert engine.calls == 1
    assert endpoint.ask(engine, request())  # its slot is free again


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_reply_that_does_not_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_GRACE", 0.0)
    release = threading.Event()

    def hang() -> lm15.Response:
        release.wait(30)
        return response("too late")

    endpoint, ledger = Endpoint(Limits(timeout=0.1, concurrency=1)), Ledger()
    with dspy.context(usage_tracker=ledger):
        assert endpoint.ask(Scripted([hang]), request()).text == response().text
    assert ledger.incidents == {"repeated after timeout": 1}
    with pytest.raises(LMTimeoutError, match=r"\[made/up\] no reply within 0.1 s"):
        Endpoint(Limits(timeout=0.1, retries=0)).ask(Scripted([hang]), request())
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
    assert Endpoint(Limits(retries=0)).ask(Scripted(), request()).text == response().text


def test_a_time_limit_of_the_engine_itself_is_not_ours() -> None:
    with pytest.raises(TimeoutError, match="a bug"):
        Endpoint().ask(Scripted([TimeoutError("a bug")]), request())


# --- what comes back -------------------------------------------------------------------------------------------------


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
        Endpoint().ask(engine, request())
    assert engine.calls == 1
    assert caught.value.code == "refused"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens",
        "the request exceeds the available context size (4096 tokens), try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Request too large for model `x` on tokens per minute (TPM)",
        "Input is too long for requested model.",
    ],
)
def test_prompts_that_are_too_long_by_other_words(message: str) -> None:
    engine = Scripted([dspy_errors.LMInvalidRequestError(message, status=400, model="made/up")])
    with pytest.raises(dspy_errors.ContextWindowExceededError) as caught:
        Endpoint().ask(engine, request())
    assert message in str(caught.value)
    assert engine.calls == 1


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
    reply = Endpoint().ask(Scripted([response(message=lm15.Message.assistant(parts))]), request())
    assert reply.text == "42"


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    reply = Endpoint().ask(Scripted([response("a\ud83d b \U0001f600 é")]), request())
    assert reply.text == "a\ufffd b \U0001f600 é"


def test_other_replies_are_given_as_they_are() -> None:
    given = response("é")
    assert Endpoint().ask(Scripted([given]), request()) is given


def test_errors_say_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_UP_API_KEY", "planted-0123456789")
    error = dspy_errors.LMAuthError("planted-0123456789 is no key", status=401)
    error.__cause__ = ValueError("header: planted-0123456789")
    with pytest.raises(dspy_errors.LMAuthError) as caught:
        Endpoint().ask(Scripted([error]), request())
    assert str(caught.value) == caught.value.message == "*** is no key"
    assert caught.value.__cause__ is caught.value.__context__ is None  # which would be in every traceback


def test_threads_that_fail_do_not_come_back_together() -> None:
    """The jitter, as it is: sixteen waits after the same failure, and no two alike."""
    endpoint = Endpoint()
    waits = sorted(endpoint._wait(LMServerError("boom"), Counter(server=3), 0.0) or 0.0 for _ in range(16))
    assert 2.0 <= waits[0] <= waits[-1] <= 4.0
    assert all(a < b for a, b in pairwise(waits))
