"""Reports on runs: one HTML file. Here is how they name metrics and format numbers."""

from __future__ import annotations

from ..metrics import quantity

_PERCENTILES = {"seconds_p50": "Seconds, median", "seconds_p95": "Seconds, 95th percentile"}


def name(metric: str) -> str:
    return _PERCENTILES.get(metric) or quantity(metric).label


def lower(metric: str) -> str:
    """The name of a cost within a sentence."""
    return name(metric) if metric.startswith("lm_calls") else name(metric).lower()


def number(value: float | None, metric: str, sign: str = "") -> str:
    """A value as tables show it, with a typographic minus sign; a dash for None and NaN."""
    text = quantity(metric).text(value, sign)
    return "−" + text[1:] if text.startswith("-") else text or "–"


def between(ends: tuple[float, float], metric: str, sign: str = "") -> str:
    return f"{number(ends[0], metric, sign)} to {number(ends[1], metric, sign)}"


def p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
