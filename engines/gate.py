"""The gate of a server: which requests may be sent now, for all threads and, through `desk`, all worker processes."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from math import inf
from threading import Condition, Lock
from time import monotonic
from typing import Any

_MINUTE = 60.0
_BURST = 0.1  # share of a minute's units that may be used at once
_ON_THE_WAY = 5.0  # seconds by which a request may arrive later than it was to be sent
_ROUNDED = 1e-6
_POLL = 0.1  # seconds that a request waits for a slot before its thread looks whether its question was abandoned
_LOOK = 5.0  # seconds between two looks for other limits
_FEWER = 0.7  # by which the server's refusal for too many requests reduces those under way


_Limits = tuple[int | None, float | None, float | None]


class Pacing:
    """A token bucket: at most ``per_minute`` units a minute, a tenth of them at once and the rest spread evenly."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = monotonic) -> None:
        self._capacity = max(1.0, _BURST * per_minute)
        self._rate = (1 - _BURST) * per_minute / _MINUTE
        self._clock = clock
        self._level, self._then = self._capacity, clock()
        self._lock = Lock()

    def change(self, per_minute: float) -> None:
        """Set another pace for what is taken from now on."""
        self.take(0.0)
        with self._lock:
            self._capacity, self._rate = max(1.0, _BURST * per_minute), (1 - _BURST) * per_minute / _MINUTE
            self._level = min(self._level, self._capacity)

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


class Limit:
    """A limit of a server, as its own clock counts: no 60 seconds have more than ``per_minute`` units.

    The time that a request needs to arrive differs, so it counts for 5 seconds longer than a minute. Not thread-safe.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = monotonic) -> None:
        self._pacing, self._most, self._clock = Pacing(per_minute, clock), per_minute, clock
        self._counted: list[tuple[float, float]] = []  # until when, and units: ascending
        self._sum = 0.0

    def change(self, per_minute: float) -> None:
        """Set another limit for what is taken from now on."""
        self._pacing.change(per_minute)
        self._most = per_minute

    def wait(self, units: float) -> float:
        """The seconds to wait before so many units may be used, which `count` reserves."""
        now = self._clock()
        ended = bisect_right(self._counted, now, key=lambda each: each[0])
        self._sum -= sum(units for _, units in self._counted[:ended])
        del self._counted[:ended]
        start, room = now + self._pacing.take(units), self._most - self._sum - units
        for until, counted in self._counted:
            if room > -_ROUNDED and until > start:
                break
            start, room = max(start, until), room + counted
        return start - now

    def count(self, wait: float, units: float) -> None:
        """Units are used after so many seconds."""
        self._add(self._clock() + wait + _MINUTE + _ON_THE_WAY, units)

    def correct(self, seconds: float, unused: float) -> None:
        """Of what was used so long ago, some was ``unused``; negative for what was used as well."""
        self._pacing.give_back(unused)
        # Too much may be counted for a moment, but not too little: a worker that says so is late.
        late = _ON_THE_WAY / 2 - seconds if unused > 0 else _ON_THE_WAY
        self._add(self._clock() + _MINUTE + late, -unused)

    def _add(self, until: float, units: float) -> None:
        insort(self._counted, (until, units))
        self._sum += units


def _limit(limit: Limit | None, per_minute: float | None) -> Limit | None:
    if per_minute is None or limit is None:
        return None if per_minute is None else Limit(per_minute)
    limit.change(per_minute)
    return limit


class Gate:
    """Limits the requests under way and their pace. Thread-safe.

    A server that refuses a request because there are too many (status 429) gets fewer at a time; each reply then allows
    a little more, up to ``concurrency``.

    Args:
        concurrency, requests_per_minute, tokens_per_minute: None for no limit.
    """

    def __init__(
        self,
        concurrency: int | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self._limits: _Limits = (concurrency, requests_per_minute, tokens_per_minute)
        self._requests = _limit(None, requests_per_minute)
        self._tokens = _limit(None, tokens_per_minute)
        self._highest = self._most = float(concurrency or inf)  # requests under way
        self._source: Callable[[], _Limits | None] = lambda: None
        self._looked = monotonic()
        self._inside = 0
        self._settling = 0  # requests under way when their number was reduced, that have not ended
        self._open_again = 0.0  # time until which the server asked us to wait
        self._changed = Condition()

    def enter(self, tokens: float = 0.0, anyway: bool = False) -> tuple[bool, float]:
        """Take a slot, and reserve a request and its tokens.

        Returns:
            Whether the request has a slot, and the seconds to wait before it is sent, or, without a slot, before it
            tries again. ``anyway`` ignores that the server asked to wait.
        """
        with self._changed:
            if monotonic() - self._looked > _LOOK:
                self._looked = monotonic()
                if limits := self._source():
                    self._change(limits)
            if not self._changed.wait_for(lambda: self._inside + 1 <= self._most, _POLL):
                return False, 0.0
            if (closed := self.closed()) and not anyway:
                return False, closed
            self._inside += 1
            each = [(limit, units) for limit, units in ((self._requests, 1.0), (self._tokens, tokens)) if limit]
            wait = max((limit.wait(units) for limit, units in each), default=0.0)
            for limit, units in each:
                limit.count(wait, units)
            return True, wait

    def follow(self, source: Callable[[], _Limits | None]) -> None:
        """Ask every few seconds, while there are requests, for other limits; None for the same as before."""
        self._source = source

    def _change(self, limits: _Limits) -> None:
        concurrency, requests, tokens = limits
        if concurrency != self._limits[0]:
            self._highest = self._most = float(concurrency or inf)
        self._requests = _limit(self._requests, requests)
        self._tokens = _limit(self._tokens, tokens)
        self._limits = limits
        self._changed.notify_all()

    def leave(self, unused: float = 0.0, refused: bool | None = None, seconds: float = 0.0) -> None:
        """Give back a slot, and the tokens that were ``unused`` (negative if there were more than reserved).

        Args:
            seconds: How long ago the request was sent.
            refused: Whether the server refused the request because there are too many; None if it was not sent or
                failed otherwise.
        """
        with self._changed:
            if refused and not self._settling:
                self._most, self._settling = max(1.0, _FEWER * min(self._inside, self._most)), self._inside
            elif refused is False and self._most < self._highest:
                self._most = min(self._highest, self._most + 1 / self._most)
            self._inside -= 1
            self._settling = max(0, self._settling - 1)
            if self._tokens and unused:
                self._tokens.correct(seconds, unused)
            self._changed.notify()

    def close(self, seconds: float) -> None:
        """The server asks to send nothing for so long."""
        with self._changed:
            self._open_again = max(self._open_again, monotonic() + seconds)

    def closed(self) -> float:
        """The seconds left of the time for which the server asked to send nothing."""
        return max(0.0, self._open_again - monotonic())

    def __reduce__(self) -> Any:
        """In another process: the same limits, counted separately."""
        return Gate, self._limits
