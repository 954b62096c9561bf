"""What a question cost, agent by agent, and what happened on the way: calls, tokens, dollars, requests that had to be
repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import fsum
from threading import Event, Lock
from time import sleep
from typing import Any

import dspy
from dspy.utils.usage_tracker import UsageTracker

from .prices import FREE, price

_AGENT: ContextVar[str] = ContextVar("agent", default="")

OTHER = "other"
"""Who asks where no agent says who it is: a plain ``dspy.Predict`` in a program of somebody's own."""


class Abandoned(BaseException):
    """Stops a program, at its next call to a model, that nobody waits for any more. Not an `Exception`: it must not
    end as an answer."""


class Ledger(UsageTracker):
    """The calls of one question: give it to ``dspy.context(usage_tracker=...)``. Replies from a cache do not count.

    DSPy's own tracker loses what happens in a program's threads; this one is shared with them.

    Args:
        attempt: How often the question is asked, this time included.
        on_incident: Called, from any thread, with what happens.
    """

    def __init__(self, attempt: int = 1, on_incident: Callable[[str], None] = lambda incident: None) -> None:
        super().__init__()
        self.attempt, self._on_incident = attempt, on_incident
        self.abandoned = Event()
        self._lock = Lock()
        self._calls: list[tuple[str, str, dict[str, Any]]] = []  # agent, model, usage
        self._incidents: Counter[str] = Counter()

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        if self.abandoned.is_set():
            raise Abandoned
        usage = self._flatten_usage_entry(usage_entry)
        with self._lock:
            self.usage_data[lm].append(usage)
            self._calls.append((_AGENT.get() or OTHER, lm, usage))

    def happened(self, incident: str) -> None:
        with self._lock:
            self._incidents[incident] += 1
        self._on_incident(incident)

    @property
    def incidents(self) -> dict[str, int]:
        """What happened how often: "repeated after rate_limit", "prompt shortened", ..."""
        with self._lock:
            return dict(sorted(self._incidents.items()))

    def costs(self) -> dict[str, float]:
        """``lm_calls``, ``tokens_in``, ``tokens_out``, ``tokens`` and, where every price is known, ``cost_usd``."""
        with self._lock:
            return _sum([(lm, usage) for _, lm, usage in self._calls])

    def by_agent(self) -> dict[str, dict[str, float]]:
        """The same for every agent that asked, in the order in which they asked first."""
        with self._lock:
            agents = list(dict.fromkeys(agent for agent, _, _ in self._calls))
            return {name: _sum([(lm, usage) for agent, lm, usage in self._calls if agent == name]) for name in agents}


@contextmanager
def asking(agent: str) -> Iterator[None]:
    """Inside, calls are booked under an agent's name."""
    token = _AGENT.set(agent)
    try:
        yield
    finally:
        _AGENT.reset(token)


def happened(incident: str) -> None:
    """Note something on the ledger of the present question, if it has one."""
    ledger = dspy.settings.usage_tracker
    if isinstance(ledger, Ledger):
        ledger.happened(incident)


def attempt() -> int:
    """How often the present question is asked, this time included."""
    ledger = dspy.settings.usage_tracker
    return ledger.attempt if isinstance(ledger, Ledger) else 1


def rest(seconds: float) -> None:
    """Sleep, unless the present question is given up.

    Raises:
        Abandoned: it is, at once.
    """
    ledger = dspy.settings.usage_tracker
    if not isinstance(ledger, Ledger):
        sleep(max(0.0, seconds))
    elif ledger.abandoned.wait(max(0.0, seconds)):
        raise Abandoned


def added(costs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums of what several cost; without dollars if they are not known of all."""
    each = list(costs)
    names = dict.fromkeys(name for one in each for name in one)
    known = {name: [one[name] for one in each] for name in names if all(name in one for one in each)}
    return {name: fsum(values) if name == "cost_usd" else sum(values) for name, values in known.items()}


def _sum(calls: list[tuple[str, dict[str, Any]]]) -> dict[str, float]:
    given = sum(_count(usage, "prompt_tokens") for _, usage in calls)
    taken = sum(_count(usage, "completion_tokens") for _, usage in calls)
    prices = [_price(lm, usage) for lm, usage in calls]
    costs = {"lm_calls": len(calls), "tokens_in": given, "tokens_out": taken, "tokens": given + taken}
    known = [price for price in prices if price is not None]
    return {**costs, **({"cost_usd": fsum(known)} if len(known) == len(prices) else {})}


def _price(lm: str, usage: Mapping[str, Any]) -> float | None:
    """Dollars, by the provider's own word or by DSPy's price list; None if neither has it."""
    told = usage.get("cost")
    if isinstance(told, int | float) and lm not in FREE:
        return float(told)
    cached = _count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
    return price(lm, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), cached)


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0
