"""Rate limits for language models: ``LimitedLM(dspy.LM("openai/gpt-4o-mini"), RateLimit(Limits(concurrency=8)))``.

A limited model is a `dspy.LM` with an engine, DSPy's extension point for models. The outer model has the cache, the
retries, the history and the callbacks. For each attempt, the engine waits for its turn, pays, asks the inner model
once, and checks the reply.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from logging import getLogger
from math import inf
from random import uniform
from socket import gaierror
from threading import Condition, Thread
from time import monotonic
from typing import Annotated, Any, TypeAlias, TypeVar

import dspy
from dspy import LMError, LMProviderError, LMTimeoutError, LMUnexpectedError, lm15
from dspy.utils.exceptions import is_retryable_lm_error
from pydantic import BaseModel, ConfigDict, Field

from .costs import CANCELLED, LOCAL, POLL, Abandoned, go_on, is_abandoned, pause, record_incident, usage_of
from .replies import as_events, causes, checked, diagnosed, estimate_usage
from .secrets import learn, without_secret_settings

LONGEST_WAIT = 300.0
"""Seconds. A server that asks to wait longer is not asked again."""

# The engine tells what is cut itself, by an error that has the reply.
getLogger("dspy.clients.lm").addFilter(lambda record: "truncated" not in record.getMessage())

_OURS = "polyhop"  # key in a request's metadata, removed before it is sent
_CONNECTION = frozenset(
    "api_key api_base base_url headers extra_headers timeout api_version azure_ad_token_provider organization project "
    "extra_query custom_llm_provider extra_body".split()
)
"""Settings that DSPy refuses for a model with an engine of its own; they stay with the inner model."""

T = TypeVar("T")
Paid: TypeAlias = Callable[[Callable[[lm15.Request], lm15.Response], lm15.Request], lm15.Response]
"""Sends a request and pays for it (see `polyhop.engines.budget.Budget.paid`)."""

Kept: TypeAlias = Callable[[lm15.Request, lm15.Response], None]

_Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class Limits(BaseModel):
    """What a server may be sent.

    Attributes:
        concurrency: Simultaneous requests; None for no limit. A request that timed out no longer counts. A profile that
            does not say it means 1 for a server of this machine.
        requests_per_minute: They are spread evenly. None for no limit.
        timeout: Seconds per request, however slowly the reply arrives; 900 for a server of this machine. Waiting for a
            turn does not count.
        retries: How often DSPy repeats a request, after 1, 2, 4, ... seconds, or when the server asks for it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    concurrency: Annotated[int, Field(ge=1)] | None = None
    requests_per_minute: _Positive | None = None
    timeout: _Positive = 120.0
    retries: Annotated[int, Field(ge=0)] = 6


class RateLimit:
    """The limits of a server for all models that share this object. Thread-safe.

    Args:
        clock, sleep: Replaced in tests.
    """

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = monotonic, sleep: Callable[..., None] = pause
    ) -> None:
        self.limits = limits or Limits()
        self.answered = False  # whether the server has ever replied
        self._clock, self._sleep = clock, sleep
        self._turn = -inf  # when the next request may be sent
        self._free = self.limits.concurrency or inf
        self._open_again = 0.0  # when the server may be asked again
        self._changed = Condition()

    def wait(self) -> None:
        """Wait until a request may be sent. It is under way until `leave`."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._free >= 1, POLL):
                go_on()
            self._free -= 1
        try:
            self._wait_until_open()
            with self._changed:
                now = self._clock()
                at = max(now, self._turn)
                self._turn = at + 60 / (self.limits.requests_per_minute or inf)
            self._sleep(at - now)
            self._wait_until_open()
        except BaseException:
            self.leave()
            raise

    def _wait_until_open(self) -> None:
        while closed := self.closed():
            self._sleep(closed + uniform(0.0, min(1.0, closed)))  # not all threads at once

    def leave(self) -> None:
        """A request has ended."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def hold(self, seconds: float) -> None:
        """The server asks to send nothing for so long."""
        self._open_again = max(self._open_again, self._clock() + seconds)

    def closed(self) -> float:
        """Seconds until the server may be asked again."""
        return max(0.0, self._open_again - self._clock())

    def __deepcopy__(self, memo: dict[int, Any]) -> RateLimit:
        return self

    def __reduce__(self) -> Any:
        """In another process: the same limits, counted separately (but see `polyhop.eval.cluster`)."""
        return RateLimit, (self.limits,)


@dataclass
class ServerTraits:
    """What the replies of a model have told about its server."""

    structured: bool | None = False  # whether it enforces JSON schemas; None if the next reply tells
    thinks: bool = False  # whether it thinks before it writes, so that a reply has no bound
    local: bool = False  # whether it is a server of this machine, which costs nothing


class LimitedLM(dspy.LM):
    """A model whose requests are limited, paid from a budget, or both. Saved with a program, it becomes the inner model
    without its secrets.

    Args:
        inner: The model that is asked; it keeps the settings of its connection.
        limit: None for no limits: then the inner model's number of retries counts.
        traits: What is known of its server.
    """

    def __init__(self, inner: dspy.LM, limit: RateLimit | None = None, traits: ServerTraits | None = None) -> None:
        learn(inner)
        engine = _Engine(inner, limit, traits or ServerTraits())
        super().__init__(
            inner.model,
            inner.model_type,
            cache=inner.cache,
            callbacks=inner.callbacks,
            num_retries=limit.limits.retries if limit else inner.num_retries,
            provider=inner.provider,
            use_developer_role=inner.use_developer_role,
            engine=engine,
            async_engine=_AsyncEngine(engine),
        )
        self.kwargs |= {key: value for key, value in inner.kwargs.items() if key not in _CONNECTION}
        # DSPy's cache must tell servers apart; a hash does not tell callbacks their addresses.
        address = address_of(inner.model, inner.kwargs.get("api_base"))
        if server := [part for part in (address, inner.kwargs.get("extra_body")) if part]:
            digest = blake2b(repr(server).encode(), digest_size=16).hexdigest()
            self.kwargs["metadata"] = {**(inner.kwargs.get("metadata") or {}), _OURS: digest}

    @property
    def inner(self) -> dspy.LM:
        return self.engine.inner

    @property
    def traits(self) -> ServerTraits:
        traits: ServerTraits = self.engine.traits
        return traits

    def paid_by(self, paid: Paid) -> LimitedLM:
        """The same model, paid from a budget."""
        return self._with(paid=paid)

    def recorded_by(self, keep: Kept) -> LimitedLM:
        """The same model, whose replies are kept. It asks anew what is in DSPy's cache."""
        recorded = self._with(keep=keep)
        recorded.cache = False
        return recorded

    def _with(self, **changes: Any) -> LimitedLM:
        engine = replace(self.engine, **changes)
        return self.copy(engine=engine, async_engine=_AsyncEngine(engine))  # type: ignore[no-any-return]

    @property
    def server(self) -> dict[str, Any]:
        """How the server is asked: for the manifest of a run. The address only of one on this machine."""
        limits = self.engine.limit.limits.model_dump() if self.engine.limit else {}
        structured = "auto" if self.traits.structured is None else self.traits.structured
        address = {"address": self.inner.kwargs.get("api_base")} if self.traits.local else {}
        return {**address, "structured": structured, **limits}

    supports_function_calling = property(lambda self: self.inner.supports_function_calling)
    supports_reasoning = property(lambda self: self.inner.supports_reasoning)
    supports_response_schema = property(lambda self: self.inner.supports_response_schema)
    supported_params = property(lambda self: self.inner.supported_params)

    def dump_state(self) -> dict[str, Any]:
        plain = self.inner.copy(cache=self.cache)
        connection = {key: value for key, value in plain.kwargs.items() if key in _CONNECTION}
        metadata = {key: value for key, value in (self.kwargs.get("metadata") or {}).items() if key != _OURS}
        plain.kwargs = without_secret_settings({**connection, **self.kwargs, "metadata": metadata})
        if not metadata:
            del plain.kwargs["metadata"]
        return dict(plain.dump_state())


def address_of(spec: str, api_base: str | None = None) -> str:
    """The address of a model's server, from its settings or the environment; empty for the provider's own."""
    provider = spec.partition("/")[0].upper()
    named = (os.environ.get(f"{provider}_{name}") for name in ("API_BASE", "BASE_URL"))
    return api_base or next(filter(None, named), "")


def unlimited(lm: Any) -> Any:
    """The model inside a `LimitedLM`; any other model as it is."""
    return lm.inner if isinstance(lm, LimitedLM) else lm


@dataclass(eq=False, repr=False)  # the model has a key
class _Engine:
    """One attempt: in turn, paid, within its time, checked."""

    inner: dspy.LM
    limit: RateLimit | None
    traits: ServerTraits
    paid: Paid | None = None
    keep: Kept | None = None

    def __post_init__(self) -> None:
        # The client's own time is a little longer: what is late is told once, and its thread ends soon.
        settings = dict(self.inner.kwargs)
        if self.limit and isinstance(self.inner.engine, str):
            settings.setdefault("timeout", self.limit.limits.timeout + 1)
        self._once = self.inner.copy(cache=False, num_retries=0, callbacks=[], **settings)

    def complete(self, request: lm15.Request) -> lm15.Response:
        if self.traits.local:
            LOCAL.add(self.inner.model)
        request = self._as_sent(request)
        send = partial(self.paid, self._send, request) if self.paid else partial(self._send, request)
        if self.limit is None:
            return send()
        self.limit.wait()
        try:
            response = _within(self.limit.limits.timeout, send)
            self.limit.answered = True
        except LMError as raised:
            raise self._explained(raised, self.limit) from None
        finally:
            self.limit.leave()
        try:
            return checked(response, request)
        except LMError as raised:
            if dspy.settings.usage_tracker:  # DSPy does not count a reply that its engine refuses, but it was paid for
                dspy.settings.usage_tracker.add_usage(request.model, usage_of(response))
            raise self._explained(raised, self.limit) from None

    def _send(self, request: lm15.Request) -> lm15.Response:
        # Usage, history and callbacks are the outer model's.
        with dspy.context(usage_tracker=None, disable_history=True, callbacks=[], send_stream=None):
            try:
                reply = self._once(request)
            except LMUnexpectedError:  # DSPy refuses a reply for a count or a field that nobody reads
                if self._once.engine not in ("auto", "lm15"):
                    raise
                record_incident("reply read by LiteLLM")
                self._once = self._once.copy(engine="litellm")
                reply = self._once(request)
            response = estimate_usage(reply, request)
        if self.keep:
            self.keep(request, response)
        return response

    def _as_sent(self, request: lm15.Request) -> lm15.Request:
        """The request without our metadata, and with the fields of ``extra_body``."""
        extensions = dict(request.config.extensions or {})
        metadata = dict(extensions.pop("metadata", None) or {})
        if metadata.pop(_OURS, None) is None:
            return request
        extensions |= self.inner.kwargs.get("extra_body") or {}
        extensions |= {"metadata": metadata} if metadata else {}
        return replace(request, config=replace(request.config, extensions=extensions))

    def _explained(self, raised: LMError, limit: RateLimit) -> LMError:
        """The error that DSPy gets, which repeats the attempt or not."""
        absent = any(isinstance(cause, ConnectionRefusedError | gaierror) for cause in causes(raised))
        error = diagnosed(raised)
        if absent and not limit.answered:
            return LMProviderError(error.message, model=error.model, code="transport")  # not repeated: nobody is there
        limit.answered |= error.status is not None
        if error.retry_after and error.retry_after > LONGEST_WAIT:
            wait = f"the server asks to wait {error.retry_after:,.0f} s"
            return LMProviderError(wait, model=error.model, status=error.status, code="rate_limit")
        if error.retry_after:
            limit.hold(error.retry_after)
        if is_retryable_lm_error(error):
            record_incident(f"request failed ({error.code})")
        return error

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The finished reply as events, for `dspy.streamify`: it is checked before anybody sees it."""
        yield from as_events(self.complete(request))

    def __deepcopy__(self, memo: dict[int, Any]) -> _Engine:
        return self


class _AsyncEngine:
    """The same engine in threads."""

    def __init__(self, engine: _Engine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        # Not the threads of the event loop: they are few.
        return await asyncio.wrap_future(_in_thread(partial(self.engine.complete, request)))

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        for event in as_events(await self.complete(request)):
            yield event

    def __deepcopy__(self, memo: dict[int, Any]) -> _AsyncEngine:
        return self


def _within(seconds: float, send: Callable[[], T]) -> T:
    """What ``send`` returns, if it comes in time and the question is not given up.

    Clients limit the time between two bytes only, and a server may send a byte now and then for ever. So the attempt
    runs in a daemon thread, which is abandoned if it is late.
    """
    reply = _in_thread(send)
    until = monotonic() + seconds
    while True:
        try:
            return reply.result(min(POLL, max(0.0, until - monotonic())))
        except TimeoutError:
            if reply.done():  # the client's own, or the reply came just now
                return reply.result()
        if is_abandoned():
            record_incident(CANCELLED)
            raise Abandoned
        if monotonic() >= until:
            raise LMTimeoutError(f"no reply within {seconds:g} s")


def _in_thread(call: Callable[[], T]) -> Future[T]:
    """Call in a daemon thread of its own, with the current context: it can be abandoned."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised in the waiting thread
            result.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return result
