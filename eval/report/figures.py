"""The charts of a group of evaluation runs, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ...data.text import count
from ..charts import Plot, Point, bounds, whisker
from ..statistics import Interval
from .calibration import STEADY, Calibration
from .numbers import between, lower, name, number, share
from .runs import EvaluationRun, Group, Part
from .traces import Mean


def score_cell(run: EvaluationRun, group: Group, metric: str) -> Markup:
    """A score with its interval, on the scale of its column: where the runs differ, or all of 0 to 1 for one run."""
    mean, interval = run.mean(metric), run.interval(metric)
    if mean is None or interval is None or run.name in group.negligible(metric):
        return Markup("")
    known = [each.interval(metric) or () for each in group.runs if each.name not in group.negligible(metric)]
    ends = (0.0, 1.0)
    if len(known) > 1:
        low, high = bounds((end for interval in known for end in interval), least=0.05)
        ends = min(low, 0.95), min(high, 1.0)
    note = f"{run.name}: {name(metric)} {number(mean, metric)} ({between(interval, metric)})"
    return whisker(mean, *interval, ends, run.series, note)


def difference_cell(run: EvaluationRun, group: Group, metric: str) -> Markup:
    """A difference from the first run with its interval; empty if it does not fit on the scale of its column."""
    mean, low, high = run.versus[metric].result.difference
    shown = [each for each in group.runs if metric in each.versus and each.name not in group.negligible(metric)]
    most = max((abs(end) for each in shown for end in each.versus[metric].result.difference), default=0.0) or 1.0
    if low < -most or most < high:
        return Markup("")
    values = f"{number(mean, metric, '+')} ({between((low, high), metric, '+')})"
    note = f"{run.name} against {group.runs[0].name}: {name(metric)} {values}"
    return whisker(mean, low, high, (-most, most), run.series, note)


def cost_cell(run: EvaluationRun, role: str, metric: str, cost: Interval, most: float) -> tuple[Markup, str]:
    """What an agent costs, on the scale of all agents."""
    text = f"{number(cost.mean, metric)} ({between((cost.low, cost.high), metric)})"
    return whisker(*cost, (-most, most), run.series, f"{role}: {name(metric)} {text}"), text


def scores_by_part(group: Group, title: str, parts: Sequence[Part], metric: str) -> Markup:
    """A score with its interval for each run, by number of hops or by type."""
    found = [
        (place, run, mean, ends)
        for place, part in enumerate(parts)
        for run in group.runs
        if run.name not in group.negligible(metric)
        and (mean := part.mean(run, metric)) is not None
        and (ends := part.interval(run, metric)) is not None
    ]
    x_names = [(part.name, count(part.questions(group.runs), "question")) for part in parts]
    space = max(len(group.runs) * 11 + 22, *(6.2 * len(line) + 8 for lines in x_names for line in lines))
    plot = Plot(
        f"{name(metric)} by {title}, in percent",
        "",
        f"{name(metric)}, %",
        (-0.5, len(parts) - 0.5),
        bounds(end for *_, ends in found for end in ends),
        x_names=x_names,
        width=max(392, space * len(parts) + 58),
    )
    step = 0.72 / max(1, len(group.runs))
    for place, run, mean, ends in found:
        x = place + step * (group.runs.index(run) - (len(group.runs) - 1) / 2)
        note = f"{run.name}, {title} {parts[place].name}: {number(mean, metric)} ({between(ends, metric)})"
        plot.marks([Point(x, mean, note, *ends)], run.series)
    return plot.svg()


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The points (cost, quality) that are not dominated: no other is as cheap and as good, and better in one."""
    return [
        n
        for n, (cost, quality) in enumerate(points)
        if not any(
            other_cost <= cost and other_quality >= quality and (other_cost, other_quality) != (cost, quality)
            for other_cost, other_quality in points
        )
    ]


def tradeoff(runs: Sequence[EvaluationRun], cost: str, quality: str, width: float) -> Markup:
    """Quality against cost, with the Pareto front."""
    points = [(run.mean(cost) or 0.0, run.mean(quality) or 0.0) for run in runs]
    intervals = [run.interval(quality) or (y, y) for run, (_, y) in zip(runs, points, strict=True)]
    plot = Plot(
        f"{name(quality)} in percent against {lower(cost)} per question",
        f"{name(cost)} per question",
        f"{name(quality)}, %",
        bounds([0.0, *(1.04 * x for x, _ in points)]),
        bounds(end for ends in intervals for end in ends),
        width=width,
    )
    best = sorted(points[n] for n in front(points))
    steps = [place for (x, y), (_, before) in zip(best[1:], best, strict=False) for place in ((x, before), (x, y))]
    plot.line([*best[:1], *steps], "front")
    marked: list[tuple[Point, str]] = []
    for run, (x, y), ends in zip(runs, points, intervals, strict=True):
        note = f"{run.name}: {number(y, quality)} ({between(ends, quality)}) for {number(x, cost)} {lower(cost)}"
        marked.append((Point(x, y, note, *ends), run.name))
        plot.marks([marked[-1][0]], run.series)
    plot.labels(sorted(marked, key=lambda each: (each[0].x, each[0].y) not in best))  # first those on the front
    return plot.svg()


def over_time(title: str, step: str, curves: Iterable[tuple[EvaluationRun, Sequence[Mean]]]) -> Markup:
    """A mean over questions after each search or round; marks that few questions reach are faint."""
    known = [(run, curve) for run, curve in curves if curve]
    plot = Plot(
        f"{title} after each {step}, in percent",
        f"after {step}",
        f"{title}, %",
        (0.6, max(2, *(len(curve) for _, curve in known)) + 0.4),
        bounds((point.mean for _, curve in known for point in curve), least=0.1),
        whole=True,
    )
    for run, curve in known:
        plot.series_line([(point.number, point.mean) for point in curve], run.series)
        for point in curve:
            note = f"{run.name}, {step} {point.number}: {share(point.mean)}, reached by {point.reached:,} questions"
            reached = point.reached / curve[0].reached
            class_ = "rare" if reached < 0.02 else "some" if reached < 0.2 else ""
            plot.marks([Point(point.number, point.mean, note)], run.series, class_)
    return plot.svg()


def reliability(run: EvaluationRun, found: Calibration) -> Markup:
    """The share of correct answers by stated confidence, with the number of answers as bars."""
    title = f"{run.name}: share of correct answers by confidence; ECE {found.ece:.3f}, AURC {found.aurc:.3f}"
    plot = Plot(title, "stated confidence, %", "correct, %", (0, 1), (0, 1), percent="xy", width=300, height=290)
    most = max(each.answers for each in found.bins)
    for each in found.bins:
        note = f"{each.answers:,} answers with a confidence of {each.low:.1f} to {each.high:.1f}"
        plot.column(each.low, each.high, 0.22 * each.answers / most, note)
    plot.line([(0, 0), (1, 1)], "ideal")
    for each in found.bins:
        low, high = each.interval
        note = f"confidence {share(each.confidence)}: {share(each.right)} correct ({share(low)} to {share(high)}), "
        plot.marks([Point(each.confidence, each.right, f"{note}{each.answers:,} answers", low, high)], run.series)
    return plot.svg()


def risk_by_coverage(known: Iterable[tuple[EvaluationRun, Calibration]]) -> Markup:
    """The share of wrong answers among the most confident ones, from the first `STEADY` on."""
    curves = [(run, found, found.steady) for run, found in known]
    highest = bounds([0.0, *(point.risk for *_, curve in curves for point in curve)])[1]
    plot = Plot(
        f"Share of wrong answers among the most confident ones, from the first {STEADY} on",
        "answered, % of all questions",
        "wrong, %",
        (0, 1),
        (0, min(highest, 1.0)),
        percent="xy",
        height=290,
    )
    for run, found, curve in curves:
        plot.series_line([(point.coverage, point.risk) for point in curve], run.series)
        last = curve[-1]
        note = f"{run.name}: {share(last.risk)} wrong of all {found.answers:,} answers"
        plot.marks([Point(last.coverage, last.risk, note)], run.series)
    return plot.svg()
