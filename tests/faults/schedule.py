"""Which requests a fault hits.

`First`, `Share` and `Longer` depend on the prompt and its repetitions, not on the order of threads. `Every`, `Nth` and
`During` depend on the order and time of requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol


class Asked(NamedTuple):
    """A request at its arrival."""

    number: int
    """Requests so far, this one included."""
    prompt: str
    seen: int
    """Earlier requests with the same prompt."""
    seconds: float
    """Since the first request."""


class Schedule(Protocol):
    def hits(self, asked: Asked) -> bool:
        """Whether the fault hits this request."""


class Always(Schedule):
    def hits(self, asked: Asked) -> bool:
        return True


@dataclass(frozen=True)
class Every(Schedule):
    """Every n-th request."""

    n: int

    def hits(self, asked: Asked) -> bool:
        return asked.number % self.n == 0


@dataclass(frozen=True)
class First(Schedule):
    """The first n requests of each prompt, so that retries succeed."""

    n: int = 1

    def hits(self, asked: Asked) -> bool:
        return asked.seen < self.n


@dataclass(frozen=True)
class Share(Schedule):
    """A share of all requests, by a hash of the prompt and its repetitions."""

    share: float
    seed: int = 0

    def hits(self, asked: Asked) -> bool:
        text = f"{self.seed}\n{asked.seen}\n{asked.prompt}".encode("utf-8", "replace")
        return int.from_bytes(blake2b(text, digest_size=8).digest()) < self.share * 2**64


@dataclass(frozen=True)
class During(Schedule):
    """All requests in a time window, in seconds since the first request."""

    start: float
    end: float

    def hits(self, asked: Asked) -> bool:
        return self.start <= asked.seconds < self.end


@dataclass(frozen=True)
class Nth(Schedule):
    """A single request, counted from 1."""

    n: int

    def hits(self, asked: Asked) -> bool:
        return asked.number == self.n


@dataclass(frozen=True)
class Longer(Schedule):
    """Every prompt longer than ``characters``."""

    characters: int

    def hits(self, asked: Asked) -> bool:
        return len(asked.prompt) > self.characters
