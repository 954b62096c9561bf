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
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from random import uniform
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import dspy
from dspy import lm15
from dspy.utils.exceptions import LMError, LMRateLimitError, LMTimeoutError, is_retryable_lm_error
from pydantic import BaseModel, ConfigDict, Field

from .connection import Connection, attempt
from .costs import CANCELLED, Abandoned, pause, record_incident, stopping, usage_of
from .diagnosis import EmptyReplyError, checked, diagnosed, estimate_usage, prompt_text, unreachable
from .gate import Gate
from .secrets import learn, without_secret_settings
from .streams import Told, heard, in_words, words

if TYPE_CHECKING:
    from .budget import Budget

_RETRIES_OF_DOUBTFUL = 2  # retries of an empty reply, or of a server that has never answered
_UNHEARD = ("transport", "timeout")  # codes of errors that no server sent
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds of backoff
_GRACE = 0.5  # seconds by which the client's own time limit may come first, as its error says more
_USUAL_REPLY = 400  # tokens
_OURS = "polyhop"  # key in a request's metadata, removed before it is sent
_CONNECTION = frozenset(
    "api_key api_base base_url headers extra_headers timeout api_version azure_ad_token_provider organization project "
    "extra_query custom_llm_provider".split()
)
"""Settings that DSPy refuses for a model with a custom engine; they stay with the inner model."""

T = TypeVar("T")
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


class Endpoint:
    """A server with its limits, which all models that it guards share. Thread-safe."""

    def __init__(self, limits: Limits | None = None, gate: Gate | None = None) -> None:
        self.limits = limits or Limits()
        names = ("concurrency", "requests_per_minute", "tokens_per_minute")
        self.gate = gate or Gate(*(getattr(self.limits, name) for name in names))
        self._answered = False
        self._down_since: float | None = None  # no sign of the server since then

    def guard(self, lm: dspy.LM) -> GuardedLM:
        """The same model behind this endpoint, instead of any other. Its cache and sampling do not change."""
        if isinstance(lm, GuardedLM):
            return lm.through(self, lm.engine.budget)
        learn(lm)
        return GuardedLM(lm, self)

    def ask(
        self,
        send: Callable[[lm15.Request], lm15.Response],
        request: lm15.Request,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> lm15.Response:
        """Send a request, with retries while it may be repeated; raises the last error, diagnosed."""
        failing_since, failures = 0.0, 0
        while True:
            try:
                return _checked(request, self._attempt(send, request))
            except LMError as raised:
                never_there, error = unreachable(raised) and not self._answered, diagnosed(raised)
            self._update_health(error)
            failing_since = failing_since or monotonic()
            doubtful = never_there or isinstance(error, EmptyReplyError)
            retries = min(self.limits.retries, _RETRIES_OF_DOUBTFUL) if doubtful else self.limits.retries
            wait = self._wait(error, failures, monotonic() - failing_since) if failures < retries else None
            if wait is None or not may_repeat():
                raise error
            failures += 1
            record_incident(f"repeated after {error.code}")
            pause(wait)

    def _attempt(self, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
        """One attempt, when its turn has come. Reservations of failed attempts are kept, as at the provider."""
        reserved = _estimate(request)
        self._enter(reserved)
        unused, refused, sent = 0.0, None, monotonic()
        try:
            response = _within(self.limits.timeout, send, request)
            self._answered, self._down_since, refused = True, None, False
            if (used := response.usage.total_tokens) is not None:
                unused = reserved - used
            return response
        except LMRateLimitError:
            refused = True
            raise
        finally:
            self.gate.leave(unused, refused, monotonic() - sent)

    def _enter(self, tokens: float) -> None:
        """Wait until a request may be sent. It has a slot then."""
        until = inf  # it waits so long for a server that asked to wait
        while True:
            entered, wait = self.gate.enter(tokens, monotonic() >= until)
            if not entered:
                until = min(until, monotonic() + self.limits.patience) if wait else until
                pause(wait + uniform(0.0, min(1.0, wait)))  # not all threads at once
                continue
            try:
                pause(wait)
                if not wait or not self.gate.closed() or monotonic() >= until:
                    return
            except BaseException:
                self.gate.leave()
                raise
            self.gate.leave()  # that was for a moment that has passed

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
            self.gate.close(after)
        return wait

    def __deepcopy__(self, memo: dict[int, Any]) -> Endpoint:
        return self

    def __reduce__(self) -> Any:
        return Endpoint, (self.limits, self.gate)


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
        once = inner.copy(cache=False, num_retries=0, callbacks=[], **timeout | inner.kwargs)
        self._connection = Connection(once)
        self._direct = not connects and endpoint is None  # no errors to translate

    def complete(self, request: lm15.Request, told: Told | None = None) -> lm15.Response:
        send = partial(self._send, tell=told or heard())
        send = partial(self.budget.paid, send) if self.budget else send
        if self.endpoint:
            return self.endpoint.ask(send, request, lambda: told is None or not told.begun)
        with attempt():
            return send(request)

    def _send(self, request: lm15.Request, tell: Callable[[Any], None] | None = None) -> lm15.Response:
        if self._direct:
            return self.inner.engine.complete(request)
        sent = _without_ours(request)
        return estimate_usage(self._connection.complete(sent, tell), sent)

    def stream(self, request: lm15.Request) -> Generator[Any]:
        """The events of the reply as they come. A reply whose text has begun is not retried: it was shown."""
        told = Told()
        reply = _in_thread(partial(self.complete, request, told))
        reply.add_done_callback(lambda _: told.events.put(None))
        try:
            while (event := told.events.get()) is not None:
                yield from words(event)
            response = reply.result()
            yield from [*lm15.response_to_events(response)][-1:] if told.begun else in_words(response)
        finally:
            told.left = True

    def __deepcopy__(self, memo: dict[int, Any]) -> _Engine:
        return self


class _AsyncEngine:
    """The same engine in threads."""

    def __init__(self, engine: _Engine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.wrap_future(_in_thread(partial(self.engine.complete, request)))

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        events = self.engine.stream(request)
        try:
            while (event := await asyncio.wrap_future(_in_thread(partial(next, events, None)))) is not None:
                yield event
        finally:
            events.close()

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


def _in_thread(call: Callable[[], T]) -> Future[T]:
    """Call in a daemon thread of its own, with the current context: it can be abandoned."""
    reply: Future[T] = Future()
    reply.set_running_or_notify_cancel()

    def run() -> None:
        try:
            _settle(reply.set_result, call())
        except BaseException as error:  # noqa: BLE001  # raised in the waiting thread
            _settle(reply.set_exception, error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return reply


def _settle(settle: Callable[[Any], None], outcome: Any) -> None:
    with suppress(InvalidStateError):  # it was given up
        settle(outcome)


def _within(seconds: float, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
    """The reply, if it comes in time and the question is not given up. Clients limit the time between two bytes only,
    and a server may send a byte now and then for ever; so the attempt runs in a thread, which is abandoned if it is
    late. If the question is given up, the connection is closed."""
    with attempt(seconds) as current:
        reply = _in_thread(partial(send, request))

    def stop() -> None:
        _settle(reply.set_exception, Abandoned())
        current.cancel()

    try:
        with stopping(stop):
            return reply.result(seconds + _GRACE)
    except Abandoned:
        record_incident(CANCELLED)
        raise
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
