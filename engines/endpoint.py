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
from concurrent.futures import Future
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from random import uniform
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import Any

import dspy
from dspy import lm15
from dspy.utils.exceptions import LMError, LMRateLimitError, LMTimeoutError, is_retryable_lm_error

from .connection import Connection, InFront, connected, plain
from .costs import happened, paid, rest
from .diagnosis import RETRIES, checked, understood, written
from .pacing import Pacing
from .secrets import learn

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds between attempts, where the server does not say
_GRACE = 0.5  # seconds in which a client's own time limit may say more than ours
_USUAL_REPLY = 400  # tokens


@dataclass(frozen=True)
class Limits:
    """What an endpoint may be asked.

    Attributes:
        concurrency: Requests under way at the same time; None for as many as there are threads.
        requests_per_minute, tokens_per_minute: As the provider counts them; None for no limit.
        timeout: Seconds that one request may take, whatever the server sends meanwhile.
        retries: How often a request is repeated.
        patience: Seconds after which a request is not repeated any more; no wait is longer.
    """

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 120.0
    retries: int = 8
    patience: float = 300.0


class Endpoint:
    """A server with its limits. All models that one endpoint guards share them; one object serves all threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._slots = BoundedSemaphore(self.limits.concurrency) if self.limits.concurrency else nullcontext()
        self._requests = Pacing(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        self._tokens = Pacing(self.limits.tokens_per_minute) if self.limits.tokens_per_minute else None
        self._open_again = 0.0  # when the server takes requests again, as far as it said
        self._lock = Lock()

    def guard(self, lm: dspy.LM) -> dspy.LM:
        """The same model behind this endpoint. Its cache and its sampling stay what they are."""
        learn(lm)
        timeout = {} if "timeout" in lm.kwargs else {"timeout": self.limits.timeout}
        return GuardedLM.of(lm, Guarded(self, Connection(lm.copy(**timeout))))

    def ask(self, engine: Any, request: lm15.Request) -> lm15.Response:
        """One request, repeated as often as it is worth it.

        Raises:
            LMError: no attempt succeeded, or none ever will.
            Abandoned: nobody waits for the question any more.
        """
        started, failures = monotonic(), Counter[str]()
        while True:
            tokens, used = self._wait_for_turn(request), 0
            try:
                with self._slots:
                    response = _within(self.limits.timeout, engine, request)
                used = response.usage.total_tokens or 0
                return _checked(response, request)
            except LMError as raised:
                error = understood(raised)
            finally:
                self._book(tokens, used)
            wait = self._wait(error, failures, monotonic() - started)
            if wait is None:
                raise error
            failures[error.code or ""] += 1
            happened(f"repeated after {error.code}")
            rest(wait)

    def _wait_for_turn(self, request: lm15.Request) -> float:
        """Returns the tokens that were booked ahead."""
        tokens = _estimate(request) if self._tokens else 0.0
        waits = [pace.take(units) for pace, units in ((self._requests, 1.0), (self._tokens, tokens)) if pace]
        rest(max(waits, default=0.0))
        while (closed := self._open_again - monotonic()) > 0:
            rest(closed + uniform(0.0, min(1.0, closed)))  # not all at once
        return tokens

    def _book(self, ahead: float, used: float) -> None:
        if self._tokens:
            self._tokens.give_back(ahead - used)

    def _wait(self, error: LMError, failures: Counter[str], elapsed: float) -> float | None:
        """Seconds until the next attempt after those that failed before; None if there is to be none."""
        attempt, code = failures.total(), error.code or ""
        if not is_retryable_lm_error(error) or attempt >= self.limits.retries:
            return None
        if code in RETRIES and failures[code] >= RETRIES[code]:
            return None
        backoff = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT)
        asked = error.retry_after
        wait = uniform(backoff / 2, backoff) if asked is None else asked + uniform(0.0, min(backoff, 1.0))
        if elapsed + wait > self.limits.patience:
            return None
        if isinstance(error, LMRateLimitError) and asked:
            with self._lock:
                self._open_again = max(self._open_again, monotonic() + asked)
        return wait

    def __deepcopy__(self, memo: dict[int, Any]) -> Endpoint:
        return self


class Guarded(InFront):
    """An engine behind an endpoint."""

    def __init__(self, endpoint: Endpoint, engine: Any) -> None:
        super().__init__(engine)
        self.endpoint = endpoint

    def complete(self, request: lm15.Request) -> lm15.Response:
        return self.endpoint.ask(self.engine, request)


class _InThread(InFront):
    """The same engine, for ``acall``."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.to_thread(self.engine.complete, request)


class GuardedLM(dspy.LM):
    """A `dspy.LM` with an endpoint before its connection. In a saved program it is the model that it guards."""

    @classmethod
    def of(cls, lm: dspy.LM, engine: Guarded) -> GuardedLM:
        guarded = connected(lm, engine, async_engine=_InThread(engine), num_retries=0)
        guarded.__class__ = cls
        return guarded  # type: ignore[no-any-return]

    def with_engine(self, engine: Any) -> GuardedLM:
        """The same endpoint before another engine."""
        return GuardedLM.of(self, Guarded(self.engine.endpoint, engine))

    def dump_state(self) -> dict[str, Any]:
        return plain(self).dump_state()  # type: ignore[no-any-return]


# --- one attempt -----------------------------------------------------------------------------------------------------


def _within(seconds: float, engine: Any, request: lm15.Request) -> lm15.Response:
    """What an engine replies in time. One that does not is left alone in its thread: a server that sends a byte now and
    then keeps no client's own time limit."""
    reply: Future[lm15.Response] = Future()

    def run() -> None:
        try:
            reply.set_result(engine.complete(request))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            reply.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        return reply.result(seconds + _GRACE)
    except TimeoutError:
        if reply.done():
            raise
        raise LMTimeoutError(f"no reply within {seconds:g} s", model=request.model) from None


def _checked(response: lm15.Response, request: lm15.Request) -> lm15.Response:
    """See `checked`. A reply that no agent gets to see was paid for as well."""
    try:
        return checked(response)
    except LMError:
        paid(request.model, response.usage)
        raise


def _estimate(request: lm15.Request) -> float:
    """Tokens of a prompt, four characters each, and of a reply of usual length."""
    return written(request) / 4 + min(request.config.max_tokens or _USUAL_REPLY, _USUAL_REPLY)
