"""Pictures of `convergence`: what searches found, what rounds kept, and why programs stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from .convergence import Point, over_rounds, over_searches
from .figures import Plot, bounds, figure, grid, legend
from .figures import Point as Mark
from .html import Html, details, join, table, tag
from .marks import Series, run_name
from .numbers import share
from .runs import Group, Run

MOST = 12
"""Searches and rounds that are shown."""

_CURVES: tuple[tuple[str, str, Callable[[Run], list[Point]]], ...] = (
    ("Gold passages found", "search", lambda run: over_searches(run.courses)),
    ("Evidence recall", "round", lambda run: over_rounds(run.courses, lambda each: each.recall)),
    ("Evidence precision", "round", lambda run: over_rounds(run.courses, lambda each: each.precision)),
)


def growth(group: Group, series: Series) -> Html:
    """The curves with their table, and the reasons to stop."""
    found = [(title, step, {run.name: curve(run)[:MOST] for run in group.runs}) for title, step, curve in _CURVES]
    known = [entry for entry in found if any(entry[2].values())]
    parts: list[Html] = []
    if known:
        pictures = [figure(title, _plot(title, step, curves, series)) for title, step, curves in known]
        parts = [
            legend((run.name, series[run.name]) for run in group.runs),
            grid(*pictures),
            tag(
                "p",
                "Means over the questions that have gold passages; a question that ended before keeps what it had. The "
                "fainter a mark, the fewer questions came so far (see the table).",
                class_="quiet",
            ),
            details("As a table", _table(group, series)),
        ]
    else:
        parts = [tag("p", "No trace of these runs can be held against gold passages.", class_="quiet")]
    return join([*parts, tag("h3", "Why it stopped"), _stops(group, series)])


def _plot(title: str, step: str, curves: dict[str, list[Point]], series: Series) -> Html:
    longest = max(map(len, curves.values()))
    values = [point.mean for curve in curves.values() for point in curve]
    plot = Plot(
        f"{title} after each {step}, in percent",
        f"after {step}",
        f"{title}, %",
        (0.6, max(longest, 2) + 0.4),
        bounds(values, least=0.1),
        whole=True,
    )
    for name, curve in curves.items():
        plot.series_line([(point.number, point.mean) for point in curve], series[name])
        for point in curve:
            told = f"{name}, {step} {point.number}: {share(point.mean)}, reached by {point.reached:,} questions"
            reached = point.reached / curve[0].reached
            class_ = "rare" if reached < 0.02 else "some" if reached < 0.2 else ""
            plot.marks([Mark(point.number, point.mean, told)], series[name], class_)
    return plot.svg()


def _table(group: Group, series: Series) -> Html:
    rows = []
    for run in group.runs:
        searches = over_searches(run.courses)
        recalls = over_rounds(run.courses, lambda each: each.recall)
        precisions = over_rounds(run.courses, lambda each: each.precision)
        required = over_rounds(run.courses, lambda each: each.required)
        for n in range(min(MOST, max(len(searches), len(recalls)))):
            cells = [
                *_after(searches, n, share),
                *_after(recalls, n, share),
                *_after(precisions, n, share)[:1],
                *_after(required, n, lambda value: f"{value:.2f}")[:1],
            ]
            rows.append([run_name(run, series), str(n + 1), *cells])
    head = ["Run", "Search or round", "Found", "Questions with so many searches", "Evidence R"]
    head += ["Questions with so many rounds", "Evidence P", "Questions still open"]
    return table("After each search and round", head, rows)


def _after(points: Sequence[Point], n: int, shown: Callable[[float], str]) -> list[str]:
    return [shown(points[n].mean), f"{points[n].reached:,}"] if n < len(points) else ["", ""]


def _stops(group: Group, series: Series) -> Html:
    counts = {run.name: Counter(_reason(run)) for run in group.runs}
    total: Counter[str] = sum(counts.values(), Counter())
    reasons = [reason for reason, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))]
    rows = [
        [run_name(run, series), *(_stop(counts[run.name][reason], run.done) for reason in reasons)]
        for run in group.runs
    ]
    return table("Why it stopped, as shares of the questions", ["Run", *reasons], rows)


def _reason(run: Run) -> list[str]:
    return [
        "failed" if kind.value == "failed" else stop or "not said"
        for kind, stop in zip(run.outcomes, run.stops, strict=True)
    ]


def _stop(count: int, questions: int) -> Html:
    if not count:
        return tag("td", "–", class_="quiet")
    part = count / questions
    bar = tag("span", class_="meter", style=f"width:{100 * part:.1f}%")
    return tag("td", share(part), tag("span", bar, class_="track", aria_hidden="true"))
