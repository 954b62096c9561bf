"""Endpoints: limits and retries for language models, and checks of their replies.

    lm = Endpoint(Limits(concurrency=8, requests_per_minute=500)).guard(dspy.LM("openai/gpt-4o-mini"))

A guarded model is a `dspy.LM` whose requests pass through an engine (DSPy's extension point for models) that waits for
its turn, asks the original model once per attempt, checks the reply, and retries what may pass. DSPy keeps doing the
connection, the cache, the history and the callbacks. Its own retries are off: they cannot be interrupted, have no limit
of time, and a ``Retry-After`` holds back only the thread that receives it. Here it holds back all threads.

Retries and other incidents are recorded on the question's `Ledger`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from random import uniform
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import dspy
from dspy import lm15
from dspy.utils.exceptions import LMError, LMRateLimitError, LMTimeoutError, is_retryable_lm_error
from pydantic import BaseModel, ConfigDict, Field

from .connection import Connection, attempt
from .costs import pause, record_incident, usage_of
from .diagnosis import EmptyReplyError, checked, diagnosed, estimate_usage, prompt_text, unreachable
from .requests import in_words
from .secrets import learn, without_secret_settings

if TYPE_CHECKING:
    from .budget import Budget

_RETRIES_OF_DOUBTFUL = 2  # retries of an empty reply, or of a server that has never answered
_UNHEARD = ("transport", "timeout")  # codes of errors that no server sent
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds of backoff
_GRACE = 0.5  # seconds by which the client's own time limit may come first, as its error says more
_POLL = 0.1  # seconds between two checks whether a waiting question was abandoned
_USUAL_REPLY = 400  # tokens
_BURST = 0.1  # share of a minute's units that may be used at once
_OURS = "polyhop"  # key in a request's metadata, removed before it is sent
_CONNECTION = frozenset(
    "api_key api_base base_url headers extra_headers timeout api_version azure_ad_token_provider organization project "
    "extra_query custom_llm_provider".split()
)
"""Settings that DSPy refuses for a model with a custom engine; they stay with the inner model."""

_Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class Limits(BaseModel):
    """What an endpoint may be sent.

    Attributes:
        concurrency: Simultaneous requests; None for no limit. A request that timed out no longer counts.
        requests_per_minute, tokens_per_minute: As the provider counts them; None for no limit.
        timeout: Seconds per request, however slowly the reply arrives.
        retries: Retries per request.
        patience: Seconds since its first failure after which a request is not retried; no single wait is longer. A
            server that has sent nothing for this long is considered down: requests to it are not retried until it
            answers one.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    concurrency: Annotated[int, Field(ge=1)] | None = None
    requests_per_minute: _Positive | None = None
    tokens_per_minute: _Positive | None = None
    timeout: _Positive = 120.0
    retries: Annotated[int, Field(ge=0)] = 8
    patience: _Positive = 300.0


class Pacing:
    """A token bucket: at most ``per_minute`` units a minute, a tenth of them at once and the rest spread evenly."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = monotonic) -> None:
        self._capacity = max(1.0, _BURST * per_minute)
        self._rate = (1 - _BURST) * per_minute / 60.0
        self._clock = clock
        self._level, self._then = self._capacity, clock()
        self._lock = Lock()

    def take(self, units: float) -> float:
        """Reserve units; returns the seconds to wait before they may be used."""
        with self._lock:
            now = self._clock()
            self._level = min(self._capacity, self._level + (now - self._then) * self._rate) - units
            self._then = now
            return max(0.0, -self._level / self._rate)

    def give_back(self, units: float) -> None:
        """Return units that were not used; negative for units used beyond the reservation."""
        with self._lock:
            self._level = min(self._capacity, self._level + units)


class Endpoint:
    """A server with its limits, which all models that it guards share. Thread-safe."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._slots = BoundedSemaphore(self.limits.concurrency) if self.limits.concurrency else None
        self._requests = Pacing(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        self._tokens = Pacing(self.limits.tokens_per_minute) if self.limits.tokens_per_minute else None
        self._answered = False
        self._down_since: float | None = None  # no sign of the server since then
        self._open_again = 0.0  # time until which the server asked us to wait
        self._lock = Lock()

    def guard(self, lm: dspy.LM) -> GuardedLM:
        """The same model behind this endpoint, instead of any other. Its cache and sampling do not change."""
        if isinstance(lm, GuardedLM):
            return lm.through(self, lm.engine.budget)
        learn(lm)
        return GuardedLM(lm, self)

    def ask(self, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
        """Send a request, with retries; raises the last error, diagnosed."""
        failing_since, failures = 0.0, 0
        while True:
            try:
                with self._slot():
                    return _checked(request, self._attempt(send, request))
            except LMError as raised:
                never_there, error = unreachable(raised) and not self._answered, diagnosed(raised)
            self._update_health(error)
            failing_since = failing_since or monotonic()
            doubtful = never_there or isinstance(error, EmptyReplyError)
            retries = min(self.limits.retries, _RETRIES_OF_DOUBTFUL) if doubtful else self.limits.retries
            wait = self._wait(error, failures, monotonic() - failing_since) if failures < retries else None
            if wait is None:
                raise error
            failures += 1
            record_incident(f"repeated after {error.code}")
            pause(wait)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._slots is None:
            yield
            return
        while not self._slots.acquire(timeout=_POLL):
            pause(0.0)
        try:
            yield
        finally:
            self._slots.release()

    def _attempt(self, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
        """One attempt, when its turn has come. Reservations of failed attempts are kept, as at the provider."""
        reserved = self._wait_for_turn(request)
        response = _within(self.limits.timeout, send, request)
        self._answered, self._down_since = True, None
        used = response.usage.total_tokens
        if self._tokens and used is not None:
            self._tokens.give_back(reserved - used)
        return response

    def _wait_for_turn(self, request: lm15.Request) -> float:
        """Returns the reserved tokens."""
        tokens = _estimate(request) if self._tokens else 0.0
        reserved, until = False, monotonic() + self.limits.patience
        while True:
            now = monotonic()
            closed = self._open_again - now
            if closed > 0 and now < until:
                pause(closed + uniform(0.0, min(1.0, closed)))  # not all threads at once
                reserved = False  # that was for a moment that has passed
            elif reserved:
                return tokens
            else:
                waits = [pacing.take(n) for pacing, n in ((self._requests, 1.0), (self._tokens, tokens)) if pacing]
                pause(max(waits, default=0.0))
                reserved = True

    def _update_health(self, error: LMError) -> None:
        if error.code not in _UNHEARD:
            self._answered |= error.status is not None
            self._down_since = None
        elif self._down_since is None:
            self._down_since = monotonic()

    def _wait(self, error: LMError, failures: int, elapsed: float) -> float | None:
        """Seconds before the next attempt: exponential backoff with jitter, at least Retry-After; None to give up."""
        down = self._down_since is not None and monotonic() - self._down_since > self.limits.patience
        if down or not is_retryable_lm_error(error):
            return None
        backoff = min(_FIRST_WAIT * 2.0**failures, _LONGEST_WAIT)
        after = max(error.retry_after or 0.0, 0.0)
        wait = max(uniform(backoff / 2, backoff), after + uniform(0.0, min(after, 1.0)))
        if elapsed + wait > self.limits.patience:
            return None
        if isinstance(error, LMRateLimitError) and after:
            with self._lock:
                self._open_again = max(self._open_again, monotonic() + after)
        return wait

    def __deepcopy__(self, memo: dict[int, Any]) -> Endpoint:
        return self

    def __reduce__(self) -> Any:
        """In another process: the same limits, counted separately."""
        return Endpoint, (self.limits,)


class GuardedLM(dspy.LM):
    """A model whose requests pass through an endpoint, a budget or both, to an inner model that keeps the settings of
    its connection. Saved with a program, it becomes the inner model without its secrets.
    """

    def __init__(self, inner: dspy.LM, endpoint: Endpoint | None = None, budget: Budget | None = None) -> None:
        engine = _Engine(inner, endpoint, budget)
        super().__init__(
            inner.model,
            inner.model_type,
            cache=inner.cache,
            callbacks=inner.callbacks,
            num_retries=0 if endpoint else inner.num_retries,
            provider=inner.provider,
            finetuning_model=inner.finetuning_model,
            launch_kwargs=inner.launch_kwargs,
            train_kwargs=inner.train_kwargs,
            use_developer_role=inner.use_developer_role,
            engine=engine,
            async_engine=_AsyncEngine(engine),
        )
        self.kwargs |= {key: value for key, value in inner.kwargs.items() if key not in {*_CONNECTION, "extra_body"}}
        # A request cannot carry the address, which belongs into the cache key, nor an extra_body: its metadata can.
        # A hash tells addresses apart, and keeps them out of the traces that callbacks record.
        address = inner.kwargs.get("api_base") or _server(inner.model)
        ours = {
            "server": blake2b(str(address).encode(), digest_size=16).hexdigest() if address else None,
            "extra_body": inner.kwargs.get("extra_body"),
        }
        if any(ours.values()):
            self.kwargs["metadata"] = {**(inner.kwargs.get("metadata") or {}), _OURS: ours}

    @property
    def inner(self) -> dspy.LM:
        return self.engine.inner

    def through(self, endpoint: Endpoint | None, budget: Budget | None) -> GuardedLM:
        """The same model with another endpoint and budget."""
        engine = _Engine(self.inner, endpoint, budget)
        retries = 0 if endpoint else self.inner.num_retries
        return self.copy(engine=engine, async_engine=_AsyncEngine(engine), num_retries=retries)  # type: ignore[no-any-return]

    supports_function_calling = property(lambda self: self.inner.supports_function_calling)
    supports_reasoning = property(lambda self: self.inner.supports_reasoning)
    supports_response_schema = property(lambda self: self.inner.supports_response_schema)
    supported_params = property(lambda self: self.inner.supported_params)

    def dump_state(self) -> dict[str, Any]:
        plain = self.inner.copy(cache=self.cache)
        connection = {key: value for key, value in plain.kwargs.items() if key in {*_CONNECTION, "extra_body"}}
        plain.kwargs = without_secret_settings({**connection, **self.kwargs})
        metadata = {key: value for key, value in (self.kwargs.get("metadata") or {}).items() if key != _OURS}
        plain.kwargs.pop("metadata", None)
        plain.kwargs |= {"metadata": metadata} if metadata else {}
        return dict(plain.dump_state())


def unguarded(lm: Any) -> Any:
    """The model inside a `GuardedLM`; any other model as it is."""
    return lm.inner if isinstance(lm, GuardedLM) else lm


# --- engines ---------------------------------------------------------------------------------------------------------


class _Engine:
    """Sends a request through the endpoint, if any; each attempt through the budget, if any; to the inner model."""

    def __init__(self, inner: dspy.LM, endpoint: Endpoint | None, budget: Budget | None) -> None:
        self.inner, self.endpoint, self.budget = inner, endpoint, budget
        connects = isinstance(inner.engine, str)
        timeout = {"timeout": endpoint.limits.timeout} if endpoint and connects else {}
        self._seconds = endpoint.limits.timeout if endpoint else inf
        once = inner.copy(cache=False, num_retries=0, callbacks=[], **timeout | inner.kwargs)
        self._connection = Connection(once)
        self._direct = not connects and endpoint is None  # no errors to translate

    def complete(self, request: lm15.Request) -> lm15.Response:
        send = partial(self.budget.paid, self._send) if self.budget else self._send
        return self.endpoint.ask(send, request) if self.endpoint else send(request)

    def _send(self, request: lm15.Request) -> lm15.Response:
        if self._direct:
            return self.inner.engine.complete(request)
        sent = _without_ours(request)
        with attempt(self._seconds):
            response = self._connection.complete(sent)
        return estimate_usage(response, sent)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The whole reply as events: a reply that was shown in part could not be retried."""
        return in_words(self.complete(request))

    def __deepcopy__(self, memo: dict[int, Any]) -> _Engine:
        return self


class _AsyncEngine:
    """The same engine in threads."""

    def __init__(self, engine: _Engine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.wrap_future(_in_thread(partial(self.engine.complete, request)))

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        for event in in_words(await self.complete(request)):
            yield event

    def __deepcopy__(self, memo: dict[int, Any]) -> _AsyncEngine:
        return self


def _server(model: str) -> str | None:
    """The address of a model's provider in the environment: OPENAI_API_BASE, HOSTED_VLLM_API_BASE, ..."""
    provider = model.partition("/")[0].upper()
    return os.environ.get(f"{provider}_API_BASE") or os.environ.get(f"{provider}_BASE_URL")


def _without_ours(request: lm15.Request) -> lm15.Request:
    """The request as the server gets it: without our metadata, with the fields of ``extra_body``."""
    extensions = dict(request.config.extensions or {})
    metadata = dict(extensions.pop("metadata", None) or {})
    if _OURS not in metadata:
        return request
    extensions |= metadata.pop(_OURS).get("extra_body") or {}
    extensions |= {"metadata": metadata} if metadata else {}
    return replace(request, config=replace(request.config, extensions=extensions))


def _in_thread(call: Callable[[], lm15.Response]) -> Future[lm15.Response]:
    """Call in a daemon thread of its own, with the current context: it can be abandoned."""
    reply: Future[lm15.Response] = Future()
    reply.set_running_or_notify_cancel()

    def run() -> None:
        try:
            reply.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised in the waiting thread
            reply.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return reply


def _within(seconds: float, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
    """The reply, if it comes in time. Clients limit the time between two bytes only, and a server may send a byte now
    and then for ever; so the attempt runs in a thread, which is abandoned if it is late."""
    reply = _in_thread(partial(send, request))
    try:
        return reply.result(seconds + _GRACE)
    except TimeoutError:
        if reply.done():  # the engine raised it, or the reply came just now
            return reply.result()
        raise LMTimeoutError(f"no reply within {seconds:g} s", model=request.model) from None


def _estimate(request: lm15.Request) -> float:
    """Tokens of a request and its reply: four characters of the prompt each, and a reply of usual length."""
    return len(prompt_text(request)) / 4 + min(request.config.max_tokens or _USUAL_REPLY, _USUAL_REPLY)


def _checked(request: lm15.Request, response: lm15.Response) -> lm15.Response:
    """See `checked`. DSPy does not count a reply that its engine refuses, but it was paid for."""
    try:
        return checked(response, request)
    except LMError:
        if dspy.settings.usage_tracker:
            dspy.settings.usage_tracker.add_usage(request.model, usage_of(response))
        raise
