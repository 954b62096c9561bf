"""The section of a report about a run of `polyhop optimize`: stages, test, searches, changes. A run that goes on is
shown as far as it is."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ..data.errors import PolyhopError
from ..eval.folder import MANIFEST, SUMMARY, RunError, read_json, read_model
from ..eval.metrics import quantity
from ..eval.report import between, lower, name, number
from ..eval.report.page import Cell, Section, around_0, charted, render
from ..eval.statistics import Interval
from .artifact import ARTIFACT, Score, diff, read, shown
from .optimize import PROGRAM, STAGE, START, OptimizationSummary, StageRecord
from .settings import BEST, OptimizationSettings
from .tunables import StudyResult

WIDTH, HEIGHT = 640, 200  # of the plot of a search, without its margins


def is_optimization(path: Path) -> bool:
    """Whether a folder is that of a run of `polyhop optimize`."""
    return (path / START).is_dir()


class Point(NamedTuple):
    """A trial in the plot of a search: its place, whether it was stopped or chosen, and what is said of it."""

    x: float
    y: float
    pruned: bool
    chosen: bool
    note: str


class Plot(NamedTuple):
    """The scores of the trials of a search against the LM calls so far: the points, the line of the best one so far as
    an SVG path, and the marks of both axes with their texts."""

    points: list[Point]
    best: str
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]


def plotted(study: StudyResult, metric: str) -> Plot:
    """Calls are those of the trials, also where DSPy's cache has the reply."""
    calls = [*accumulate(trial.questions * trial.costs.get("lm_calls", 0.0) for trial in study.trials)]
    scores = [trial.score for trial in study.trials]
    low, high, most = min(scores), max(scores), calls[-1] or 1.0
    span = (high - low) or 1.0

    def at(call: float, score: float) -> tuple[float, float]:
        return round(WIDTH * call / most, 1), round(HEIGHT * (high - score) / span, 1)

    points, line, best = list[Point](), list[str](), low
    for trial, call in zip(study.trials, calls, strict=True):
        x, y = at(call, trial.score)
        stopped = ", stopped" if trial.pruned else ""
        note = f"trial {trial.number}{stopped}: {number(trial.score, metric)} after {call:,.0f} calls"
        points.append(Point(x, y, trial.pruned, trial.number == study.best.number, note))
        if not trial.pruned:
            line += [f"H{x}V{y}" if line else f"M{x} {y}"] if trial.score > best or not line else []
            best = max(best, trial.score)
    across = [(at(most * part, 0)[0], f"{most * part:,.0f}") for part in (0, 0.5, 1)]
    marks = dict.fromkeys((low, (low + high) / 2, high))
    up = [(at(0, score)[1], number(score, metric)) for score in marks]
    return Plot(points, "".join([*line, f"H{WIDTH}"]), across, up)


def section(path: Path) -> Section:
    """The section of an optimization run.

    Raises:
        RunError: it is not such a run, or damaged.
    """
    manifest = read_json(path / MANIFEST)
    values = manifest.get("settings") or {}
    if isinstance(values, dict):  # also of another version, which had other settings
        values = {name: value for name, value in values.items() if name in OptimizationSettings.model_fields}
    settings = OptimizationSettings.of(values, str(path / MANIFEST))
    files = sorted(path.glob(f"*-*/{STAGE}"), key=lambda file: file.parent.name.partition("-")[0].zfill(9))
    proposals = {file.parent.name: read_model(StageRecord, file) for file in files}
    summary = read_model(OptimizationSummary, path / SUMMARY) if (path / SUMMARY).exists() else None
    metric, cost = settings.scored, settings.cost

    def score(score: Score, sign: str = "") -> str:
        return f"{number(score.mean, metric, sign)} ({between((score.low, score.high), metric, sign)})"

    searches = []
    for folder, proposal in proposals.items():
        if study := proposal.study:
            before, after = study.trials[0].values, study.best.values
            values = [(key, shown(before.get(key, "")), shown(after[key])) for key in after]
            searches.append((folder, study, plotted(study, metric), values))
    costs = [name(cost)] if cost else []
    candidates = [folder for folder in proposals if (path / folder / PROGRAM / ARTIFACT).exists()]
    last = path / BEST if summary else path / candidates[-1] / PROGRAM if candidates else path / START / PROGRAM
    try:  # from the start to the result, or to the latest candidate of a run that goes on
        changes = diff(read(path / START / PROGRAM).state, read(last).state)
    except PolyhopError as error:
        raise RunError(f"The run {path} cannot be reported: {error}") from error
    stages = summary.stages if summary else []
    gains = [Interval(stage.gain, *stage.ends) if stage.gain is not None and stage.ends else None for stage in stages]
    scale = around_0(gain for gain in gains if gain)
    rows = []
    for stage, gain in zip(stages, gains, strict=True):
        cells = [Cell(text, bold=False) for text in stage.row(settings)]
        if gain:
            cells[2] = charted(gain, metric, scale, 0, stage.folder, "+")._replace(bold=stage.kept)
        rows.append(cells)
    details = {"prompts": f" ({settings.optimizer})", "tunables": f" ({settings.trials} trials)"}
    body = render(
        "optimization.html.j2",
        Path(__file__).parent / "templates",
        program=(manifest.get("program") or {}).get("name") or "A program",
        settings=settings,
        summary=summary,
        start=START,
        goal=name(metric) + (f" (cost to minimize: {lower(cost)})" if cost else ""),
        stages=", then ".join(stage + details.get(stage, "") for stage in settings.stages),
        headings=["Stage", name(metric) + ", %" * (quantity(metric).kind == "percent"), "Gain", "p", *costs, "Verdict"],
        rows=rows,
        width=WIDTH,
        height=HEIGHT,
        level=settings.level / settings.comparisons,
        proposals=list(proposals),
        score=score,
        searches=searches,
        changes=changes,
    )
    return Section("optimization", "Optimization", body)
