"""What tokens cost, by DSPy's price list."""

from __future__ import annotations

from functools import cache

LONGEST_REPLY = 32_768
"""Tokens that a reply may have where nobody sets a limit or knows one."""

FREE = frozenset({"lexical"})  # they count tokens, so that models can be compared, and nobody pays for them


def price(model: str, tokens_in: int, tokens_out: int, cached: int = 0) -> float | None:
    """Dollars for a call; None for a model whose prices nobody knows.

    Args:
        model: As LiteLLM names it, with its provider.
        cached: How many of ``tokens_in`` came from the provider's prompt cache.
    """
    if model in FREE:
        return 0.0
    rates = _rates(model)
    if rates is None:
        return None
    given, taken, cheaper = rates
    return (tokens_in - cached) * given + cached * cheaper + tokens_out * taken


@cache
def _rates(model: str) -> tuple[float, float, float] | None:
    """Dollars for a token given, taken, and given from the provider's cache."""
    from dspy.clients.model_metadata import model_info, rate

    provider, _, name = model.partition("/")
    info = model_info(provider, name) if name else {}
    given, taken = rate(info, "input_cost_per_token"), rate(info, "output_cost_per_token")
    if given is None or taken is None:
        return None
    cheaper = rate(info, "cache_read_input_token_cost")
    return given, taken, given if cheaper is None else cheaper


@cache
def longest_reply(model: str) -> int:
    """Tokens that a reply may have where nobody sets a limit."""
    from dspy.clients.model_metadata import model_info

    provider, _, name = model.partition("/")
    most = model_info(provider, name).get("max_output_tokens") if name else None
    return most if isinstance(most, int) else LONGEST_REPLY
