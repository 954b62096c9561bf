"""What a question cost: calls, tokens and dollars, as far as DSPy reports them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from threading import Event
from typing import Any

from dspy.utils.usage_tracker import UsageTracker

_FREE = "lexical"  # it counts tokens, so that models can be compared, and nobody pays for them


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
    if lm == _FREE:
        return 0.0
    told = usage.get("cost")
    if isinstance(told, int | float):
        return float(told)
    from dspy.clients.model_metadata import model_info, rate

    provider, _, name = lm.partition("/")
    info = model_info(provider, name) if name else {}
    given, taken = rate(info, "input_cost_per_token"), rate(info, "output_cost_per_token")
    if given is None or taken is None:
        return None
    cached = _count(usage.get("prompt_tokens_details") or {}, "cached_tokens")
    cheaper = rate(info, "cache_read_input_token_cost")
    fresh = _count(usage, "prompt_tokens") - cached
    price: float = fresh * given + cached * (given if cheaper is None else cheaper)
    price += _count(usage, "completion_tokens") * taken
    return price


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0
