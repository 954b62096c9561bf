"""Scores by the number of hops and by the type of the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .figures import Plot, Point, bounds, figure, grid, legend
from .html import Html, details, join, table, tag
from .marks import Series, not_drawn, nothing, run_name
from .numbers import between, count, name, number
from .runs import Group, Run

SHOWN = ("answer_f1", "evidence_f1", "joint_f1")
_LISTED = ("answer_em", *SHOWN)


def parts(group: Group, series: Series) -> Html:
    """A picture and a table for each way to part the questions that the runs have."""
    found = [("by_hops", "By hops", "Hops"), ("by_kind", "By type", "Type")]
    known = [entry for entry in found if any(run.summary.get(entry[0]) for run in group.runs)]
    if not known:
        return tag("p", "The questions have neither a number of hops nor a type.", class_="quiet")
    marks = legend((run.name, series[run.name]) for run in group.runs)
    return join([marks, *not_drawn(group, SHOWN), *(_part(group, series, *entry) for entry in known)])


def _part(group: Group, series: Series, key: str, title: str, heading: str) -> Html:
    names = sorted({each for run in group.runs for each in run.summary.get(key) or {}})
    metrics = [
        metric for metric in SHOWN if any(_value(run, key, each, metric) for run in group.runs for each in names)
    ]
    pictures = [figure(name(metric), _plot(group, series, key, names, metric, heading)) for metric in metrics]
    return join([tag("h3", title), grid(*pictures), details("As a table", _table(group, series, key, names, heading))])


def _plot(group: Group, series: Series, key: str, names: list[str], metric: str, heading: str) -> Html:
    found = [
        (place, run, value)
        for place, each in enumerate(names)
        for run in group.runs
        if run.name not in nothing(group, metric) and (value := _value(run, key, each, metric))
    ]
    low, high = bounds(end for _, _, (_, low, high) in found for end in (low, high))
    x_names = [(each, count(_count(group, key, each), "question")) for each in names]
    space = max(len(group.runs) * 11 + 22, *(6.2 * len(line) + 8 for lines in x_names for line in lines))
    plot = Plot(
        f"{name(metric)} by {heading.lower()}, in percent",
        "",
        f"{name(metric)}, %",
        (-0.5, len(names) - 0.5),
        (low, high),
        x_names=x_names,
        width=max(392, space * len(names) + 58),
    )
    step = 0.72 / max(1, len(group.runs))
    for place, run, (mean, low, high) in found:
        x = place + step * (group.runs.index(run) - (len(group.runs) - 1) / 2)
        told = f"{run.name}, {heading.lower()} {names[place]}: {number(metric, mean)} ({between(metric, low, high)})"
        plot.marks([Point(x, mean, told, low, high)], series[run.name])
    return plot.svg()


def _count(group: Group, key: str, each: str) -> int:
    return max(int(_part_of(run, key, each).get("counts", {}).get("questions", 0)) for run in group.runs)


def _part_of(run: Run, key: str, each: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (run.summary.get(key) or {}).get(each) or {}
    return found


def _value(run: Run, key: str, each: str, metric: str) -> tuple[float, float, float] | None:
    part = _part_of(run, key, each)
    if metric not in part.get("metrics", {}):
        return None
    return part["metrics"][metric], *part["intervals"][metric]


def _table(group: Group, series: Series, key: str, names: list[str], heading: str) -> Html:
    metrics = [
        metric for metric in _LISTED if any(_value(run, key, each, metric) for run in group.runs for each in names)
    ]
    return table(
        f"Scores by {heading.lower()}",
        ["Run", heading, "Questions", *map(name, metrics), "LM calls"],
        list(_rows(group, series, key, names, metrics)),
    )


def _rows(group: Group, series: Series, key: str, names: list[str], metrics: list[str]) -> Iterable[list[object]]:
    for run in group.runs:
        for each in names:
            if part := _part_of(run, key, each):
                cells = [_words(metric, _value(run, key, each, metric)) for metric in metrics]
                calls = number("lm_calls", part["metrics"].get("lm_calls"))
                yield [run_name(run, series), each, f"{part['counts']['questions']:,}", *cells, calls]


def _words(metric: str, value: tuple[float, float, float] | None) -> Html:
    if value is None:
        return tag("td", "–")
    return tag("td", number(metric, value[0]), " ", tag("small", f"({between(metric, *value[1:])})", class_="quiet"))
