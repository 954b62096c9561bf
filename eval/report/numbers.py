"""Names of metrics, and how numbers are formatted."""

from __future__ import annotations

from ..metrics import dollars, quantity

_PERCENTILES = {"seconds_p50": "Seconds, median", "seconds_p95": "Seconds, 95th percentile"}


def name(metric: str) -> str:
    return _PERCENTILES.get(metric) or quantity(metric).label


def lower(metric: str) -> str:
    """The name of a cost within a sentence."""
    return name(metric) if metric.startswith("lm_calls") else name(metric).lower()


def number(value: float | None, metric: str, sign: str = "") -> str:
    """A score in percent, a cost with its significant digits; a dash for None and NaN."""
    if value is None or value != value:
        return "–"
    if metric == "cost_usd":
        return ("−" if value < 0 else sign) + dollars(abs(value))
    return _plain(value, metric, sign).replace("-", "−")


def _plain(value: float, metric: str, sign: str) -> str:
    if quantity(metric).kind == "percent":
        return f"{100 * value:{sign}.1f}"
    if abs(value) >= 1000:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.1f}" if abs(value) >= 10 else f"{value:{sign}.2f}"


def between(ends: tuple[float, float], metric: str, sign: str = "") -> str:
    return f"{number(ends[0], metric, sign)} to {number(ends[1], metric, sign)}"


def p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def share(value: float) -> str:
    return f"{100 * value:.1f}%"
