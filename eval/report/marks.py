"""How runs are shown wherever they are shown: each with its colour and its shape."""

from __future__ import annotations

from collections.abc import Iterable

from ..scoring import METRICS
from .figures import mark
from .html import Html, tag
from .runs import Group, Run

FULL = "numbers full"  # a table as wide as the page

Series = dict[str, int]
"""The number of the colour and shape of each run, by its name."""


def run_name(run: Run, series: Series) -> Html:
    return tag(
        "span",
        tag("svg", mark(series[run.name], 7, 7), width=14, height=14, aria_hidden="true"),
        " ",
        run.name,
        class_="run",
    )


def nothing(group: Group, metric: str) -> set[str]:
    """The runs that score next to nothing beside the others: on one scale, no picture would show how those differ."""
    if metric not in METRICS:  # a cost of nothing is worth a look
        return set()
    scores = {run.name: run.mean(metric) or 0.0 for run in group.runs}
    best = max(scores.values())
    return {name for name, score in scores.items() if score <= best / 50} if best else set()


def not_drawn(group: Group, metrics: Iterable[str]) -> Iterable[Html]:
    """Says who is not in the pictures."""
    names = list(dict.fromkeys(name for metric in metrics for name in sorted(nothing(group, metric))))
    if names:
        yield tag("p", f"Not drawn where the score is next to 0: {', '.join(names)}.", class_="quiet")
