"""Which requests a fault hits.

`First`, `Share` and `Longer` depend on the prompt and its repetitions, not on the order of threads. `Every`, `Nth` and
`During` depend on the order and time of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple, TypeAlias


class Asked(NamedTuple):
    """A request at its arrival.

    Attributes:
        number: Of requests so far, this one included.
        seen: Earlier requests with the same prompt.
        seconds: Since the first request.
    """

    number: int
    prompt: str
    seen: int
    seconds: float


Schedule: TypeAlias = Callable[[Asked], bool]
"""Whether the fault hits a request."""


def Always() -> Schedule:
    return lambda asked: True


def Every(n: int) -> Schedule:
    return lambda asked: asked.number % n == 0


def Nth(n: int) -> Schedule:
    """A single request, counted from 1."""
    return lambda asked: asked.number == n


def First(n: int = 1) -> Schedule:
    """The first n requests of each prompt, so that retries succeed."""
    return lambda asked: asked.seen < n


def Share(share: float, seed: int = 0) -> Schedule:
    """A share of all requests, by a hash of the prompt and its repetitions."""

    def hits(asked: Asked) -> bool:
        text = f"{seed}\n{asked.seen}\n{asked.prompt}".encode("utf-8", "replace")
        return int.from_bytes(blake2b(text, digest_size=8).digest()) < share * 2**64

    return hits


def During(start: float, end: float) -> Schedule:
    """All requests in a time window, in seconds since the first request."""
    return lambda asked: start <= asked.seconds < end


def Longer(characters: int) -> Schedule:
    """Every prompt longer than that."""
    return lambda asked: len(asked.prompt) > characters
