"""Charts of a search: its history, its Pareto front, its importances.

Path("history.svg").write_text(standalone(history(search.result.trials)))
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ...eval.charts import Plot, Point, bounds
from ...eval.report.numbers import name
from .result import StudyResult, TrialRecord, score_of, shown

_WIDTH, _HEIGHT = 640, 380
_MAX_NOTES = 2_000  # values of tunables in notes, about 60 kB; with more, notes show the score alone


def history(trials: Sequence[TrialRecord]) -> Markup:
    """Score by trial: complete ones in the first color, pruned ones in grey, and a line for the best so far."""
    shown = [trial for trial in trials if trial.score is not None]
    last = max((trial.number for trial in shown), default=0)
    scores = bounds(map(score_of, shown))
    title = "All trials and the best complete one so far"
    plot = Plot(
        title,
        "trial",
        "score",
        (-0.5, max(last, 1) + 0.5),
        scores,
        percent="",
        whole=True,
        width=_WIDTH,
        height=_HEIGHT,
    )
    brief = sum(len(trial.values) for trial in shown) > _MAX_NOTES
    best: list[tuple[float, float]] = []
    for trial in shown:
        complete, score = trial.state == "complete", score_of(trial)
        plot.dots([_point(trial, trial.number, brief)], "s1" if complete else "muted")
        if complete and (not best or score >= best[-1][1]):
            best += [(trial.number, best[-1][1])] if best else []
            best.append((trial.number, score))
    if best:
        plot.line([*best, (last, best[-1][1])], "s2")
    return plot.svg()


def front(
    trials: Sequence[TrialRecord], cost: str, best: Sequence[TrialRecord], chosen: TrialRecord | None = None
) -> Markup:
    """Score by cost: all complete trials, the Pareto front as a line, the chosen trial in the second color."""
    shown = [trial for trial in trials if trial.state == "complete" and cost in trial.costs]
    x_range, y_range = bounds(trial.costs[cost] for trial in shown), bounds(map(score_of, shown))
    label = f"{name(cost)} per question"
    plot = Plot(
        "Score by cost; the line is the Pareto front",
        label,
        "score",
        x_range,
        y_range,
        percent="",
        width=_WIDTH,
        height=_HEIGHT,
    )
    brief = sum(len(trial.values) for trial in shown) > _MAX_NOTES
    plot.dots((_point(trial, trial.costs[cost], brief) for trial in shown), "muted")
    plot.line([(trial.costs[cost], score_of(trial)) for trial in best], "s1")
    plot.dots((_point(trial, trial.costs[cost], brief) for trial in best), "s1")
    plot.dots((_point(trial, trial.costs[cost], brief) for trial in (chosen,) if trial), "s2")
    return plot.svg()


def importances(result: StudyResult) -> Markup:
    """The importance of each tunable, as bars."""
    names = [*reversed(result.importances)]  # from the bottom up
    most = max(result.importances.values(), default=1.0) or 1.0
    rows = max(len(names), 1)
    plot = Plot(
        "Share of the variance of the score that each tunable explains",
        "share of the variance, %",
        "",
        (0, 1.15 * most),
        (-0.5, rows - 0.5),
        y_names=names or [""],
        percent="x",
        width=_WIDTH,
        height=54 + 24 * rows,
    )
    for row, tunable in enumerate(names):
        share = result.importances[tunable]
        plot.row_bar(row, share, f"{100 * share:.1f}%", 0)
    return plot.svg()


def _point(trial: TrialRecord, x: float, brief: bool) -> Point:
    score = score_of(trial)
    note = f"trial {trial.number}, {trial.state}: {score:.4g}"
    return Point(x, score, note if brief else f"{note}\n" + shown(trial.values, " = ", "\n"))
