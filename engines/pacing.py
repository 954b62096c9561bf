"""So many units a minute: requests or tokens, as a provider counts them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic

_AT_ONCE = 0.1
"""The share of a minute's units that may be used in one moment."""


class Pacing:
    """A bucket that fills evenly. In no minute are more than ``per_minute`` units let through, however they come: what
    the full bucket holds, and what flows in meanwhile. (Single units, of less than 10 a minute, are spaced evenly.)

    Args:
        per_minute: Units.
        clock: Seconds that only grow.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = monotonic) -> None:
        self._most = max(1.0, _AT_ONCE * per_minute)
        self._rate = (1 - _AT_ONCE) * per_minute / 60.0
        self._clock = clock
        self._level, self._then = self._most, clock()
        self._lock = Lock()

    def take(self, units: float) -> float:
        """Book units; returns the seconds to wait before they may be used. Who comes later waits longer."""
        with self._lock:
            now = self._clock()
            self._level = min(self._most, self._level + (now - self._then) * self._rate) - units
            self._then = now
            return max(0.0, -self._level / self._rate)

    def give_back(self, units: float) -> None:
        """Book units back that were not used; negative for those that were used beyond what was taken. Who waits
        already is not told, so a minute with bad estimates may have more than its units; an hour has not."""
        with self._lock:
            self._level = min(self._most, self._level + units)
