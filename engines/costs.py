"""What a question costs, by agent, and the incidents on the way: calls, tokens, dollars, retries."""

from __future__ import annotations

import json
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import distribution
from math import fsum
from pathlib import Path
from threading import Event, Lock
from time import monotonic, sleep
from typing import Any

import dspy
from anyio import NoEventLoopError, from_thread
from dspy import lm15

OTHER = "other"
"""The agent of calls from outside of a program's predictors."""

FREE = frozenset({"lexical"})
"""Models that count tokens, for comparison, and cost nothing."""

LOCAL: set[str] = set()
"""Models that servers of this machine have been asked for: they cost nothing."""

CANCELLED = "call cancelled"
"""The incident of a call whose question was given up."""

POLL = 0.1
"""Seconds after which a waiting thread looks whether its question was given up."""

LONGEST_REPLY_TOKENS = 32_768
"""Assumed where neither the model nor the price list has a limit."""


class Abandoned(BaseException):
    """Stops a program whose question was given up. Not an `Exception`, so that it cannot become an answer."""


class Ledger:
    """The calls for one question: ``dspy.context(usage_tracker=Ledger())``. Cached replies do not count.

    DSPy's own tracker does not see the threads of a program; this one is shared with them. ``attempt`` is 1 for a
    question that is evaluated for the first time; ``on_incident`` is called from any thread.
    """

    def __init__(self, attempt: int = 1, on_incident: Callable[[str], None] = lambda incident: None) -> None:
        self.attempt, self._on_incident = attempt, on_incident
        self.abandoned = Event()  # set when the question is given up
        self._lock = Lock()
        self._calls: list[tuple[str, str, dict[str, Any]]] = []  # agent, model, usage
        self._incidents: Counter[str] = Counter()

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        if self.abandoned.is_set():
            raise Abandoned
        with self._lock:
            self._calls.append((_asking(), lm, dict(usage_entry)))

    def record(self, incident: str) -> None:
        with self._lock:
            self._incidents[incident] += 1
        self._on_incident(incident)

    @property
    def incidents(self) -> dict[str, int]:
        """Counts by incident: "request failed (rate_limit)", "prompt shortened", ..."""
        with self._lock:
            return dict(sorted(self._incidents.items()))

    def costs(self) -> dict[str, float]:
        """``lm_calls``, ``tokens_in``, ``tokens_out``, ``tokens``; ``cost_usd`` if all prices are known."""
        with self._lock:
            return _sum(self._calls)

    def by_agent(self) -> dict[str, dict[str, float]]:
        """The same for each agent, in the order of their first calls."""
        with self._lock:
            agents = dict.fromkeys(agent for agent, _, _ in self._calls)
            return {name: _sum([call for call in self._calls if call[0] == name]) for name in agents}


def _asking() -> str:
    """The role of the predictor that asks, the innermost of the modules that DSPy is calling."""
    roles = (getattr(module, "role", "") for module in reversed(dspy.settings.caller_modules or ()))
    return next(filter(None, roles), OTHER)


def record_incident(incident: str) -> None:
    """Record an incident on the current question's ledger, if it has one."""
    ledger = dspy.settings.usage_tracker
    if isinstance(ledger, Ledger):
        ledger.record(incident)


def current_attempt() -> int:
    """The attempt at the current question, from 1."""
    ledger = dspy.settings.usage_tracker
    return ledger.attempt if isinstance(ledger, Ledger) else 1


def pause(seconds: float) -> None:
    """Sleep; raises `Abandoned` as soon as the current question is given up."""
    until = monotonic() + seconds
    go_on()
    while (left := until - monotonic()) > 0:
        sleep(min(POLL, left))
        go_on()


def is_abandoned() -> bool:
    """Whether the current question was given up, or the task was cancelled that awaits it."""
    ledger = dspy.settings.usage_tracker
    if isinstance(ledger, Ledger) and ledger.abandoned.is_set():
        return True
    try:
        from_thread.check_cancelled()
    except NoEventLoopError:  # nobody awaits it
        return False
    except CancelledError:
        return True
    return False


def go_on() -> None:
    """Raises `Abandoned` if the current question was given up."""
    if is_abandoned():
        raise Abandoned


def sum_costs(costs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums by name, of the names that all have."""
    rows = list(costs)
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row[name] for row in rows] for name in names if all(name in row for row in rows)}
    return {name: fsum(values) if name == "cost_usd" else sum(values) for name, values in columns.items()}


def usage_of(response: lm15.Response) -> dict[str, Any]:
    """A response's usage as a usage tracker takes it."""
    usage = response.usage
    counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    tokens: dict[str, Any] = {name: count or 0 for name, count in counts.items()}
    return tokens | {"prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens or 0}}


def _sum(calls: list[tuple[str, str, dict[str, Any]]]) -> dict[str, float]:
    tokens_in = sum(_count(usage, "prompt_tokens") for _, _, usage in calls)
    tokens_out = sum(_count(usage, "completion_tokens") for _, _, usage in calls)
    costs: dict[str, float] = {"lm_calls": len(calls), "tokens_in": tokens_in, "tokens_out": tokens_out}
    costs["tokens"] = tokens_in + tokens_out
    prices = [_price(lm, usage) for _, lm, usage in calls]
    if None in prices:
        return costs
    return {**costs, "cost_usd": fsum(price for price in prices if price is not None)}


def _price(lm: str, usage: Mapping[str, Any]) -> float | None:
    """Dollars as the provider reports them, else by the price list."""
    reported = usage.get("cost")
    if isinstance(reported, int | float) and lm not in FREE:
        return float(reported)
    cached = _count(dict(usage.get("prompt_tokens_details") or {}), "cached_tokens")
    return price(lm, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), cached)


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0


# --- prices, from the list that comes with LiteLLM --------------------------------------------------------------------


def price(model: str, tokens_in: int, tokens_out: int, cached: int = 0) -> float | None:
    """Dollars for a call of a model by its LiteLLM name; None if its prices are unknown. ``cached`` tokens are those of
    ``tokens_in`` that came from the provider's prompt cache.
    """
    if model in FREE or model in LOCAL:
        return 0.0
    info = _model_info(model)
    rate_in, rate_out = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if rate_in is None or rate_out is None:
        return None
    rate_cached = info.get("cache_read_input_token_cost", rate_in)
    return float((tokens_in - cached) * rate_in + cached * rate_cached + tokens_out * rate_out)


def longest_reply(model: str) -> int:
    """Tokens that a reply can have if the request sets no limit."""
    most = _model_info(model).get("max_output_tokens")
    return most if isinstance(most, int) else LONGEST_REPLY_TOKENS


def reasons(model: str) -> bool:
    """Whether a model may think before it writes, by LiteLLM's list: then its replies have no natural bound."""
    return bool(_model_info(model).get("supports_reasoning"))


@cache
def _model_info(model: str) -> dict[str, Any]:
    provider, _, name = model.partition("/")
    info: dict[str, Any] = _price_list().get(model) or _price_list().get(name) or {}
    return info if info.get("litellm_provider") == provider else {}


@cache
def _price_list() -> dict[str, Any]:
    """LiteLLM's list as a file: to import LiteLLM takes seconds. Without the file, prices are unknown."""
    file = Path(str(distribution("litellm").locate_file("litellm/model_prices_and_context_window_backup.json")))
    return json.loads(file.read_bytes()) if file.exists() else {}
