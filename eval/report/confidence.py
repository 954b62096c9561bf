"""Pictures of `calibration`: a reliability diagram for each run, and risk against coverage."""

from __future__ import annotations

from .calibration import Calibration, Covered, calibration
from .figures import Plot, Point, bounds, figure, grid
from .html import Html, details, join, table, tag
from .marks import Series, run_name
from .numbers import share
from .runs import Group

STEADY = 20
"""So many answers the curve of risk begins with."""


def confidence(group: Group, series: Series) -> Html:
    """Every run that states confidences."""
    found = {run.name: calibration(*run.stated(), questions=run.done) for run in group.runs}
    known = {name: each for name, each in found.items() if each}
    if not known:
        return tag("p", "No answer of these runs has a confidence.", class_="quiet")
    pictures = [figure(name, _reliability(name, each, series)) for name, each in known.items()]
    rows = [
        [
            run_name(run, series),
            f"{each.answers:,}",
            f"{each.ece:.3f}",
            f"{each.brier:.3f}",
            *(_covered(each, coverage) for coverage in (0.25, 0.5, 0.75)),
        ]
        for run in group.runs
        if (each := known.get(run.name))
    ]
    head = ["Run", "Answers", "ECE", "Brier", "Wrong of the surest 25%", "of 50%", "of 75%"]
    return join(
        [
            grid(
                table("Calibration of every run", head, rows),
                figure(f"Risk against coverage, from the {STEADY} surest answers on", _risk(known, series)),
                class_="beside",
            ),
            tag("h3", "Reliability: how many of the answers of a confidence are right"),
            grid(*pictures),
            tag(
                "p",
                "On the dashed line confidence is what it says. Each mark has its 95% interval; the grey bars show how "
                "many answers have such a confidence.",
                class_="quiet",
            ),
            details("As a table", _table(known)),
        ]
    )


def _covered(found: Calibration, coverage: float) -> str:
    """The risk where a share of the questions is first covered."""
    return next((share(point.risk) for point in found.curve if point.coverage >= coverage), "–")


def _reliability(name: str, found: Calibration, series: Series) -> Html:
    title = f"{name}: share of right answers by stated confidence; ECE {found.ece:.3f}, Brier {found.brier:.3f}"
    plot = Plot(title, "stated confidence, %", "right, %", (0, 1), (0, 1), percent="xy", width=300, height=290)
    most = max(each.answers for each in found.bins)
    for each in found.bins:
        told = f"{each.answers:,} answers of confidence {each.low:.1f} to {each.high:.1f}"
        plot.column(each.low, each.high, 0.22 * each.answers / most, told)
    plot.line([(0, 0), (1, 1)], "ideal")
    for each in found.bins:
        low, high = each.interval
        told = f"confidence {share(each.confidence)}: {share(each.right)} right ({share(low)} to {share(high)}), "
        plot.marks([Point(each.confidence, each.right, f"{told}{each.answers:,} answers", low, high)], series[name])
    return plot.svg()


def _risk(known: dict[str, Calibration], series: Series) -> Html:
    curves = {name: steady(each) for name, each in known.items()}
    highest = bounds([0.0, *(point.risk for curve in curves.values() for point in curve)])[1]
    plot = Plot(
        "Share of wrong answers among the surest ones",
        "answered, % of all questions",
        "wrong, %",
        (0, 1),
        (0, min(highest, 1.0)),
        percent="xy",
        width=392,
        height=290,
    )
    for name, curve in curves.items():
        plot.series_line([(point.coverage, point.risk) for point in curve], series[name])
        last = curve[-1]
        told = f"{name}: {share(last.risk)} wrong of all {known[name].answers:,} answers"
        plot.marks([Point(last.coverage, last.risk, told)], series[name])
    return plot.svg()


def steady(found: Calibration) -> list[Covered]:
    """The curve without its beginning: a share of one or two answers would be most of the picture."""
    per_answer = found.curve[-1].coverage / found.answers
    points = [point for point in found.curve if point.coverage > (STEADY - 0.5) * per_answer]
    return points or [found.curve[-1]]


def _table(known: dict[str, Calibration]) -> Html:
    rows = [
        [
            name,
            f"{each.low:.1f} to {each.high:.1f}",
            f"{each.answers:,}",
            share(each.confidence),
            share(each.right),
            f"{share(each.interval[0])} to {share(each.interval[1])}",
        ]
        for name, found in known.items()
        for each in found.bins
    ]
    return table("Reliability", ["Run", "Confidence", "Answers", "Mean confidence", "Right", "95% interval"], rows)
