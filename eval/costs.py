"""What a question cost: calls, tokens and dollars, as far as DSPy reports them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from threading import Event
from typing import Any

from dspy.utils.usage_tracker import UsageTracker

from ..engines.prices import FREE, price


class Abandoned(BaseException):
    """Stops a program, at its next call to a model, that nobody waits for any more. Not an `Exception`: it must not
    end as an answer."""


class Ledger(UsageTracker):
    """The calls of one question: give it to ``dspy.context(usage_tracker=...)``. Replies from a cache do not count.

    DSPy's own tracker loses what happens in a program's threads; this one is shared with them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.abandoned = Event()

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        if self.abandoned.is_set():
            raise Abandoned
        self.usage_data[lm].append(self._flatten_usage_entry(usage_entry))

    def costs(self) -> dict[str, float]:
        """``tokens_in``, ``tokens_out``, ``tokens``, ``lm_calls`` and, where every price is known, ``cost_usd``."""
        entries = [(lm, usage) for lm, each in copy.copy(self.usage_data).items() for usage in list(each)]
        given = sum(_count(usage, "prompt_tokens") for _, usage in entries)
        taken = sum(_count(usage, "completion_tokens") for _, usage in entries)
        prices = [_price(lm, usage) for lm, usage in entries]
        costs = {"lm_calls": len(entries), "tokens_in": given, "tokens_out": taken, "tokens": given + taken}
        known = [price for price in prices if price is not None]
        return {**costs, **({"cost_usd": sum(known)} if len(known) == len(prices) else {})}


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
