"""Cost against quality, and which runs no other beats at both."""

from __future__ import annotations

from collections.abc import Sequence

from .figures import Plot, Point, bounds, figure, grid, legend
from .html import Html, details, join, table, tag
from .marks import Series, not_drawn, nothing, run_name
from .numbers import between, name, number
from .runs import Group, Run

COSTS = ("lm_calls", "tokens", "cost_usd")
QUALITIES = ("answer_f1", "evidence_f1")


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which points (cost, quality) no other dominates: none is at least as cheap and as good, and better in one."""
    return [
        n
        for n, (cost, quality) in enumerate(points)
        if not any(
            other_cost <= cost and other_quality >= quality and (other_cost, other_quality) != (cost, quality)
            for other_cost, other_quality in points
        )
    ]


def tradeoff(group: Group, series: Series) -> Html:
    """A picture for every cost that the runs have, against every quality, and the table."""
    pairs = [(cost, quality) for quality in QUALITIES for cost in COSTS if _known(group, cost, quality)]
    if not pairs:
        return tag("p", "The runs have no cost that can be compared.", class_="quiet")
    marks = legend((run.name, series[run.name]) for run in group.runs)
    width = 392 if len({cost for cost, _ in pairs}) > 2 else 440
    rows = [
        grid(*(figure(_heading(*pair), _plot(group, series, *pair, width)) for pair in pairs if pair[1] == quality))
        for quality in QUALITIES
    ]
    said = "The dashed line is the front: no run is both cheaper and better than one on it."
    told = [tag("p", said, class_="quiet")] if len(group.runs) > 1 else []
    in_numbers = details("As a table", _table(group, series, pairs))
    return join([marks, *rows, *told, *not_drawn(group, QUALITIES), in_numbers])


def _heading(cost: str, quality: str) -> str:
    return f"{name(quality)} against {_lower(cost)}"


def _lower(metric: str) -> str:
    return name(metric) if metric == "lm_calls" else name(metric).lower()


def _known(group: Group, cost: str, quality: str) -> list[Run]:
    """The runs that have both; none where nothing was spent."""
    runs = [run for run in group.runs if run.mean(cost) is not None and run.mean(quality) is not None]
    return runs if any(run.mean(cost) for run in runs) else []


def _points(runs: Sequence[Run], cost: str, quality: str) -> list[tuple[float, float]]:
    return [(run.mean(cost) or 0.0, run.mean(quality) or 0.0) for run in runs]


def _plot(group: Group, series: Series, cost: str, quality: str, width: float) -> Html:
    runs = [run for run in _known(group, cost, quality) if run.name not in nothing(group, quality)]
    points = _points(runs, cost, quality)
    intervals = [run.interval(quality) or (y, y) for run, (_, y) in zip(runs, points, strict=True)]
    plot = Plot(
        f"{name(quality)} in percent against {_lower(cost)} a question",
        f"{name(cost)} a question",
        f"{name(quality)}, %",
        bounds([0.0, *(1.04 * x for x, _ in points)]),
        bounds(end for ends in intervals for end in ends),
        width=width,
    )
    best = sorted(points[n] for n in front(points))
    steps = [place for (x, y), (_, before) in zip(best[1:], best, strict=False) for place in ((x, before), (x, y))]
    plot.line([*best[:1], *steps], "front")
    marked: list[tuple[Point, str]] = []
    for run, (x, y), (low, high) in zip(runs, points, intervals, strict=True):
        told = f"{run.name}: {number(quality, y)} ({between(quality, low, high)}) for {number(cost, x)} {_lower(cost)}"
        marked.append((Point(x, y, told, low, high), run.name))
        plot.marks([marked[-1][0]], series[run.name])
    plot.labels(sorted(marked, key=lambda each: (each[0].x, each[0].y) not in best))  # the front has the first choice
    return plot.svg()


def _table(group: Group, series: Series, pairs: Sequence[tuple[str, str]]) -> Html:
    runs = {pair: _known(group, *pair) for pair in pairs}
    best = {pair: {runs[pair][n].name for n in front(_points(runs[pair], *pair))} for pair in pairs}
    rows = []
    for run in group.runs:
        on = [f"{name(quality)} / {_lower(cost)}" for cost, quality in pairs if run.name in best[cost, quality]]
        metrics = [number(metric, run.mean(metric)) for metric in (*QUALITIES, *COSTS)]
        rows.append([run_name(run, series), *metrics, tag("td", ", ".join(on) or "none", class_="words")])
    return table("Cost against quality", ["Run", *map(name, (*QUALITIES, *COSTS)), "On the front of"], rows)
