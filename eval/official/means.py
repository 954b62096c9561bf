"""Means over questions, one question at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def means(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every value over the rows that have it; keeps nothing but the sums.

    Raises:
        ValueError: there are no rows.
    """
    totals: dict[str, float] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            totals[name] = totals.get(name, 0.0) + value
            counts[name] = counts.get(name, 0) + 1
    if not counts:
        raise ValueError("there are no questions to evaluate")
    return {name: total / counts[name] for name, total in totals.items()}
