"""What stands between the agents and a model's server: limits, patience, and a watch over what comes back.

    lm = Endpoint(Limits(concurrency=8, requests_per_minute=500)).guard(dspy.LM("openai/gpt-4o-mini"))

A guarded model waits for its turn, repeats what failed for a passing reason (a rate limit, an error of the server, a
lost connection, a reply that does not come in time), waits between as long as the server asks for, and otherwise twice
as long each time, with jitter; and it gives up. A server that says "too many requests" to one thread holds back all of
them. Everything that it had to do is noted on the question's `Ledger`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, fields
from random import uniform
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import Any

import dspy
from dspy import lm15
from dspy.clients.call_result import usage_dict
from dspy.utils.exceptions import LMError, LMRateLimitError, LMTimeoutError, is_retryable_lm_error

from .connection import Connection, InFront, connected, plain, settings_of
from .costs import happened, rest
from .diagnosis import RETRIES, checked, nobody_there, understood, written
from .pacing import Pacing
from .secrets import learn, without_secret_settings

_LEAST, _MOST = 1e-3, 1e9  # of a limit
_KNOCKS = 2  # how often a server is asked again that never was there: its address may be wrong
_UNHEARD = ("transport", "timeout")  # codes of errors that no server sent, whatever status LiteLLM makes up for them
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds between attempts, where the server does not ask for more
_GRACE = 0.5  # seconds in which a client's own time limit may say more than ours
_GLANCE = 0.1  # seconds between two looks whether a question that waits for its turn is given up
_USUAL_REPLY = 400  # tokens


@dataclass(frozen=True)
class Limits:
    """What an endpoint may be asked.

    Attributes:
        concurrency: Requests under way at the same time; None for as many as there are threads. One that is given up
            at its time limit does not count any more.
        requests_per_minute, tokens_per_minute: As the provider counts them; None for no limit.
        timeout: Seconds that one request may take, whatever the server sends meanwhile.
        retries: How often a request is repeated.
        patience: Seconds, since it failed for the first time, in which a request is repeated; no wait between two
            attempts is longer. The wait for its turn takes as long as the limits demand. A server that nobody has heard
            of for so long is down: until it is heard of, each request is made once.

    Raises:
        ValueError: one of them is no such number.
    """

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 120.0
    retries: int = 8
    patience: float = 300.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value, least = getattr(self, each.name), 0 if each.name == "retries" else _LEAST
            if value is None and each.default is None:
                continue
            whole = each.name in ("concurrency", "retries")
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise ValueError(f"{each.name} must be a {'whole ' if whole else ''}number")
            if not least <= value <= _MOST:
                raise ValueError(f"{each.name} must be {'positive' if value < least else 'a smaller number'}")


class Endpoint:
    """A server with its limits. All models that one endpoint guards share them; one object serves all threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._slots = BoundedSemaphore(self.limits.concurrency) if self.limits.concurrency else None
        self._requests = Pacing(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        self._tokens = Pacing(self.limits.tokens_per_minute) if self.limits.tokens_per_minute else None
        self._answered = False
        self._down_since: float | None = None  # nothing but lost connections and requests without a reply since then
        self._open_again = 0.0  # when the server takes requests again, as far as it said
        self._lock = Lock()

    def guard(self, lm: dspy.LM) -> dspy.LM:
        """The same model behind this endpoint, and no other. Its cache and its sampling stay what they are."""
        if isinstance(lm, GuardedLM):
            return GuardedLM.of(lm, Guarded(self, lm.engine.engine))
        learn(lm)
        return GuardedLM.of(lm, Guarded(self, Connection(lm, self.limits.timeout)))

    def ask(self, engine: Any, request: lm15.Request) -> lm15.Response:
        """One request, repeated as often as it is worth it.

        Raises:
            LMError: no attempt succeeded, or none ever will.
            Abandoned: nobody waits for the question any more.
        """
        failing_since, failures = 0.0, Counter[str]()
        while True:
            try:
                with self._slot():
                    return _checked(request, self._send(engine, request))
            except LMError as raised:
                nobody, error = nobody_there(raised), understood(raised)
            self._note(error)
            failing_since = failing_since or monotonic()
            wait = self._wait(error, failures, monotonic() - failing_since, nobody)
            if wait is None:
                raise error
            failures[error.code or ""] += 1
            happened(f"repeated after {error.code}")
            rest(wait)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._slots is None:
            yield
            return
        while not self._slots.acquire(timeout=_GLANCE):
            rest(0.0)
        try:
            yield
        finally:
            self._slots.release()

    def _send(self, engine: Any, request: lm15.Request) -> lm15.Response:
        """One attempt, when it is its turn. What fails stays booked, as it does at the provider."""
        ahead = self._wait_for_turn(request)
        response = _within(self.limits.timeout, engine, request)
        self._answered, self._down_since = True, None
        used = response.usage.total_tokens
        if self._tokens and used is not None:
            self._tokens.give_back(ahead - used)
        return response

    def _wait_for_turn(self, request: lm15.Request) -> float:
        """Returns the tokens that are booked."""
        tokens = _estimate(request) if self._tokens else 0.0
        booked, until = False, monotonic() + self.limits.patience
        while True:
            now = monotonic()
            closed = self._open_again - now
            if closed > 0 and now < until:
                rest(closed + uniform(0.0, min(1.0, closed)))  # not all at once
                booked = False  # for a moment that has passed
            elif booked:
                return tokens
            else:
                waits = [pace.take(units) for pace, units in ((self._requests, 1.0), (self._tokens, tokens)) if pace]
                rest(max(waits, default=0.0))
                booked = True

    def _note(self, error: LMError) -> None:
        """What an error tells about the server."""
        if error.code not in _UNHEARD:
            self._answered |= error.status is not None
            self._down_since = None
        elif self._down_since is None:
            self._down_since = monotonic()

    def _wait(self, error: LMError, failures: Counter[str], elapsed: float, nobody: bool = False) -> float | None:
        """Seconds until the next attempt after those that failed before; None if there is to be none."""
        attempt, code = failures.total(), error.code or ""
        if not is_retryable_lm_error(error) or attempt >= self.limits.retries:
            return None
        if failures[code] >= RETRIES.get(code, self.limits.retries):
            return None
        if self._down_since is not None and monotonic() - self._down_since > self.limits.patience:
            return None
        if nobody and not self._answered and failures[code] >= _KNOCKS:
            return None
        backoff = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT)
        asked = max(error.retry_after or 0.0, 0.0)
        wait = max(uniform(backoff / 2, backoff), asked + uniform(0.0, min(asked, 1.0)))
        if elapsed + wait > self.limits.patience:
            return None
        if isinstance(error, LMRateLimitError) and asked:
            with self._lock:
                self._open_again = max(self._open_again, monotonic() + asked)
        return wait

    def __deepcopy__(self, memo: dict[int, Any]) -> Endpoint:
        return self

    def __reduce__(self) -> Any:
        """In another process: the same limits, and nobody to share them with."""
        return Endpoint, (self.limits,)


class Guarded(InFront):
    """An engine behind an endpoint."""

    def __init__(self, endpoint: Endpoint, engine: Any) -> None:
        super().__init__(engine)
        self.endpoint = endpoint

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.connect()
        return self.endpoint.ask(self.engine, request)

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The reply as a whole: what has been shown cannot be asked for again."""
        yield from lm15.response_to_events(self.complete(request))


class _InThread(InFront):
    """The same engine, for ``acall``."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.wrap_future(_started(self.engine, request))

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        for event in lm15.response_to_events(await self.complete(request)):
            yield event


class GuardedLM(dspy.LM):
    """A `dspy.LM` with an endpoint before its connection. In a saved program it is the model that it guards, without
    what is secret."""

    @classmethod
    def of(cls, lm: dspy.LM, engine: Guarded) -> GuardedLM:
        guarded = connected(lm, engine, async_engine=_InThread(engine), num_retries=0)
        guarded.__class__ = cls
        return guarded  # type: ignore[no-any-return]

    def with_engine(self, engine: Any) -> GuardedLM:
        """The same endpoint before another engine."""
        return GuardedLM.of(self, Guarded(self.engine.endpoint, engine))

    def dump_state(self) -> dict[str, Any]:
        same = plain(self).copy(cache=self.cache)
        same.kwargs = without_secret_settings(settings_of(self))
        return same.dump_state()  # type: ignore[no-any-return]


# --- one attempt -----------------------------------------------------------------------------------------------------


def _started(engine: Any, request: lm15.Request) -> Future[lm15.Response]:
    """An attempt in a thread of its own."""
    reply: Future[lm15.Response] = Future()
    reply.set_running_or_notify_cancel()

    def run() -> None:
        try:
            reply.set_result(engine.complete(request))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            reply.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return reply


def _within(seconds: float, engine: Any, request: lm15.Request) -> lm15.Response:
    """What an engine replies in time. One that does not is left alone in its thread: a server that sends a byte now and
    then keeps no client's own time limit."""
    reply = _started(engine, request)
    try:
        return reply.result(seconds + _GRACE)
    except TimeoutError:
        if reply.done():  # the engine raised it, or it replied just now
            return reply.result()
        raise LMTimeoutError(f"no reply within {seconds:g} s", model=request.model) from None


def _estimate(request: lm15.Request) -> float:
    """Tokens of a prompt, four characters each, and of a reply of usual length."""
    return written(request) / 4 + min(request.config.max_tokens or _USUAL_REPLY, _USUAL_REPLY)


def _checked(request: lm15.Request, response: lm15.Response) -> lm15.Response:
    """See `checked`. A reply that no agent gets to see is paid for as well, and DSPy does not count it."""
    try:
        return checked(response, request)
    except LMError:
        if dspy.settings.usage_tracker:
            dspy.settings.usage_tracker.add_usage(request.model, usage_dict(response))
        raise
