"""What tokens cost, by DSPy's price list."""

from __future__ import annotations

FREE = frozenset({"lexical"})  # they count tokens, so that models can be compared, and nobody pays for them


def price(model: str, tokens_in: int, tokens_out: int, cached: int = 0) -> float | None:
    """Dollars for a call; None for a model whose prices nobody knows.

    Args:
        model: As LiteLLM names it, with its provider.
        cached: How many of ``tokens_in`` came from the provider's prompt cache.
    """
    if model in FREE:
        return 0.0
    from dspy.clients.model_metadata import model_info, rate

    provider, _, name = model.partition("/")
    info = model_info(provider, name) if name else {}
    given, taken = rate(info, "input_cost_per_token"), rate(info, "output_cost_per_token")
    if given is None or taken is None:
        return None
    cheaper = rate(info, "cache_read_input_token_cost")
    dollars: float = (tokens_in - cached) * given + cached * (given if cheaper is None else cheaper)
    dollars += tokens_out * taken
    return dollars
