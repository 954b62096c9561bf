"""How numbers and values are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .reading import Mean

MOST = 1_000  # characters of a value

_NAMES = {
    "cost_usd": "dollars",
    "lm_calls_critical_path": "LM calls in sequence",
    "seconds_p50": "seconds, median",
}


def percent(value: float | None, *, sign: bool = False) -> str:
    return "" if value is None else f"{100 * value:{'+' if sign else ''}.1f}".replace("-", "−")


def around(mean: Mean, *, sign: bool = False) -> str:
    """A mean with its interval."""
    return f"{percent(mean.mean, sign=sign)} ({percent(mean.low, sign=sign)} to {percent(mean.high, sign=sign)})"


def mean_of(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):,.2f}" if values else ""


def value(of: Any) -> str:
    """Of a tunable; of a real one as many digits as mean something."""
    if isinstance(of, float):
        return f"{of:.4g}"
    return short(of if isinstance(of, str) else json.dumps(of, ensure_ascii=False))


def short(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]} … ({len(text) - MOST:,} more characters)"


def named(name: str) -> str:
    """A metric or a cost as words."""
    words = name.replace("_", " ").replace("lm calls", "LM calls").replace(" f1", " F1").replace(" em", " EM")
    return _NAMES.get(name, words)


def number(of: float) -> str:
    return f"{of:,.0f}" if abs(of) >= 100 else f"{of:.3g}"
