"""Which requests a fault hits.

`First`, `Share` and `Longer` decide by the prompt and how often it came: they hit the same requests however threads
take turns. `Every`, `Nth` and `During` go by the order and the time in which requests come.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol


class Asked(NamedTuple):
    """What is known of a request when it comes in."""

    number: int
    """Requests so far, this one included."""
    prompt: str
    seen: int
    """How often the same prompt came before."""
    seconds: float
    """Since the first request."""


class Schedule(Protocol):
    def hits(self, asked: Asked) -> bool:
        """Whether the fault is for this request."""


class Always:
    def hits(self, asked: Asked) -> bool:
        return True


@dataclass(frozen=True)
class Every:
    """The n-th request and its multiples. How many are hit does not depend on threads; which, does."""

    n: int

    def hits(self, asked: Asked) -> bool:
        return asked.number % self.n == 0


@dataclass(frozen=True)
class First:
    """Each prompt the first n times it comes: who asks often enough is answered."""

    n: int = 1

    def hits(self, asked: Asked) -> bool:
        return asked.seen < self.n


@dataclass(frozen=True)
class Share:
    """A share of all requests, drawn by hash from the prompt and how often it came before."""

    share: float
    seed: int = 0

    def hits(self, asked: Asked) -> bool:
        text = f"{self.seed}\n{asked.seen}\n{asked.prompt}".encode("utf-8", "replace")
        return int.from_bytes(blake2b(text, digest_size=8).digest()) < self.share * 2**64


@dataclass(frozen=True)
class During:
    """All requests in a window of time, in seconds since the first request."""

    start: float
    end: float

    def hits(self, asked: Asked) -> bool:
        return self.start <= asked.seconds < self.end


@dataclass(frozen=True)
class Nth:
    """One request alone, counted from 1."""

    n: int

    def hits(self, asked: Asked) -> bool:
        return asked.number == self.n


@dataclass(frozen=True)
class Longer:
    """Every prompt of more than so many characters."""

    characters: int

    def hits(self, asked: Asked) -> bool:
        return len(asked.prompt) > self.characters
