"""What the program that runs allows: tokens of a call, and the least confidence of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .trace import Shortened
from .tunable import Tunable, integer, real

PROMPT_TOKENS = 6_000
"""The default budget of a call: with a reply and the error of the estimate less than 8,000."""

ABSTAIN_BELOW = 0.1
"""The default of the least confidence: only what an agent does not believe itself is no answer."""


def prompt_tokens() -> Tunable[int]:
    """The tunable of a program. Optimizers leave the default as it is unless they are given a range."""
    return integer(PROMPT_TOKENS, 1_000, 1_000_000, log=True, usual=(PROMPT_TOKENS, PROMPT_TOKENS))


def abstain_below() -> Tunable[float]:
    """The tunable of a program: with a lower confidence its answer is "unknown"."""
    return real(ABSTAIN_BELOW, 0.0, 1.0)


@dataclass
class Scope:
    """The tunables of the program that runs, and what its calls have cut."""

    prompt_tokens: int = PROMPT_TOKENS
    abstain_below: float = 0.0
    cuts: list[Shortened] = field(default_factory=list)


_SCOPE: ContextVar[Scope | None] = ContextVar("scope", default=None)


def scope() -> Scope:
    """That of the program that runs; outside of programs the default."""
    return _SCOPE.get() or Scope()


@contextmanager
def running(program: object) -> Iterator[None]:
    """Inside, `scope` is that of a program; a part of it, which has no such tunables, shares it."""
    own = {name: getattr(program, name).value for name in ("prompt_tokens", "abstain_below") if hasattr(program, name)}
    if not own and _SCOPE.get() is not None:
        yield
        return
    token = _SCOPE.set(Scope(**own))
    try:
        yield
    finally:
        _SCOPE.reset(token)
