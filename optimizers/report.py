"""The sections of a report about runs of `polyhop optimize`: stages, test, searches, changes. A run that goes on is
shown as far as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..data.errors import PolyhopError
from ..eval.folder import RunError
from ..eval.report import between, lower, name, number, p_value
from ..eval.report.charts import Plot, Point, bounds
from ..eval.report.page import Section, render
from .artifact import Score, read
from .diff import Change, diff
from .records import BEST, PROGRAM, START, OptimizationRun, read_run
from .tunables import StudyResult, TrialRecord, shown

_TEMPLATES = Path(__file__).parent / "templates"
_SIZE: dict[str, Any] = {"percent": False, "width": 640, "height": 380}


def sections(path: Path) -> list[Section]:
    """The section of an optimization run.

    Raises:
        RunError: it is not such a run, or damaged.
    """
    run = read_run(path)
    settings, summary = run.settings, run.summary
    details = {"prompts": f" ({settings.optimizer})", "tunables": f" ({settings.trials} trials, {settings.sampler})"}
    cost, test = settings.cost, summary.test if summary else None
    try:
        changes = _changes(run)
    except PolyhopError as error:
        raise RunError(f"The run {path} cannot be reported: {error}") from error
    body = render(
        "optimization.html.j2",
        _TEMPLATES,
        program=run.program.get("name") or "A program",
        settings=settings,
        summary=summary,
        start=START,
        goal=name(settings.scored) + (f" (cost to minimize: {lower(cost)})" if cost else ""),
        stages=", then ".join(stage + details.get(stage, "") for stage in settings.stages),
        cost_name=name(cost) if cost else "",
        rows=_rows(run),
        proposals=list(run.proposals),
        test=test,
        kept=summary is not None and summary.best != START,
        test_start=_score(test.start, settings.scored) if test else "",
        test_best=_score(test.best, settings.scored) if test else "",
        test_difference=_score(test.difference, settings.scored, "+") if test else "",
        searches=list(_searches(run)),
        changes=changes,
    )
    return [Section("optimization", "Optimization", body)]


def _rows(run: OptimizationRun) -> list[list[str]]:
    """A row per stage that has ended."""
    metric, cost = run.settings.scored, run.settings.cost
    rows = []
    for stage in run.summary.stages if run.summary else ():
        verdict = f"{'kept' if stage.kept else 'not kept'}: {stage.why}" if stage.n else "the baseline"
        verdict += (f" ({stage.note})" if stage.note else "") + (f"; {stage.failures} failed" if stage.failures else "")
        gain = "" if stage.gain is None else number(stage.gain, metric, "+")
        p = "" if stage.p is None else p_value(stage.p)
        spent = number(stage.cost, cost) if cost else ""
        rows.append([stage.folder, number(stage.score, metric), gain, p, spent, verdict])
    return rows


def _score(score: Score, metric: str, sign: str = "") -> str:
    return f"{number(score.mean, metric, sign)} ({between((score.low, score.high), metric, sign)})"


def _changes(run: OptimizationRun) -> dict[str, Change]:
    """From the start to the result, or to the latest candidate of a run that goes on."""
    candidates = [run.path / folder / PROGRAM for folder in run.proposals if (run.path / folder / PROGRAM).exists()]
    last = run.path / BEST if run.summary else candidates[-1] if candidates else None
    return diff(read(run.path / START / PROGRAM).state, read(last).state) if last else {}


def _searches(run: OptimizationRun) -> Iterator[tuple[str, StudyResult, Markup, Markup | None, list[tuple[str, ...]]]]:
    for folder, proposal in run.proposals.items():
        if study := proposal.study:
            before, after = study.trials[0].values, study.best.values
            names = dict.fromkeys([*study.importances, *after])
            values = [(key, *(_value(each.get(key)) for each in (before, after)), _share(study, key)) for key in names]
            costs = {trial.costs.get(study.cost or "") for trial in study.trials}
            yield folder, study, history(study), front(study) if study.cost and len(costs) > 1 else None, values


def _value(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _share(study: StudyResult, tunable: str) -> str:
    return f"{100 * study.importances[tunable]:.1f}%" if tunable in study.importances else ""


# --- charts ----------------------------------------------------------------------------------------------------------


def history(study: StudyResult) -> Markup:
    """Score by trial: complete ones in the first color, pruned ones in grey, and a line for the best so far."""
    x_range = (-0.5, max(len(study.trials), 2) - 0.5)
    y_range = bounds(trial.score for trial in study.trials)
    plot = Plot("All trials and the best so far", "trial", "score", x_range, y_range, whole=True, **_SIZE)
    best: list[tuple[float, float]] = []
    for trial in study.trials:
        plot.dots([_point(trial, trial.number)], "muted" if trial.pruned else "s1")
        if not trial.pruned and (not best or trial.score >= best[-1][1]):
            best += [(trial.number, best[-1][1])] if best else []
            best.append((trial.number, trial.score))
    plot.line([*best, (len(study.trials) - 1, best[-1][1])], "s2")
    return plot.svg()


def front(study: StudyResult) -> Markup:
    """Score by cost: all trials, the Pareto front as a line, the chosen trial in the second color."""
    assert study.cost is not None
    costs = [trial.costs[study.cost] for trial in study.trials]
    label = f"{name(study.cost)} per question"
    scores = bounds(trial.score for trial in study.trials)
    plot = Plot("Score by cost; the line is the Pareto front", label, "score", bounds(costs), scores, **_SIZE)
    plot.dots((_point(trial, trial.costs[study.cost]) for trial in study.trials), "muted")
    plot.line([(trial.costs[study.cost], trial.score) for trial in study.front], "s1")
    plot.dots((_point(trial, trial.costs[study.cost]) for trial in study.front), "s1")
    plot.dots([_point(study.best, study.best.costs[study.cost])], "s2")
    return plot.svg()


def _point(trial: TrialRecord, x: float) -> Point:
    return Point(x, trial.score, f"trial {trial.number}: {trial.score:.4g}\n" + shown(trial.values, " = ", "\n"))
