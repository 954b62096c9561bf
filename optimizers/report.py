"""The section of a report about a run of `polyhop optimize`: stages, test, searches, changes. A run that goes on is
shown as far as it is."""

from __future__ import annotations

from pathlib import Path

from ..data.errors import PolyhopError
from ..eval.folder import MANIFEST, SUMMARY, RunError, read_json, read_model
from ..eval.metrics import quantity
from ..eval.report import between, lower, name, number
from ..eval.report.page import Section, render
from .artifact import ARTIFACT, Score, diff, read, shown
from .optimize import PROGRAM, STAGE, START, OptimizationSummary, StageRecord
from .settings import BEST, OptimizationSettings


def is_optimization(path: Path) -> bool:
    """Whether a folder is that of a run of `polyhop optimize`."""
    return (path / START).is_dir()


def section(path: Path) -> Section:
    """The section of an optimization run.

    Raises:
        RunError: it is not such a run, or damaged.
    """
    manifest = read_json(path / MANIFEST, f"{path} is not a run folder: it has no {MANIFEST}.")
    values = manifest.get("settings") or {}
    if isinstance(values, dict):  # also of another version, which had other settings
        values = {name: value for name, value in values.items() if name in OptimizationSettings.model_fields}
    settings = OptimizationSettings.of(values, str(path / MANIFEST))
    files = sorted(path.glob(f"*-*/{STAGE}"), key=lambda file: file.parent.name.partition("-")[0].zfill(9))
    proposals = {file.parent.name: read_model(StageRecord, file) for file in files}
    summary = read_model(OptimizationSummary, path / SUMMARY) if (path / SUMMARY).exists() else None
    metric, cost, test = settings.scored, settings.cost, summary.test if summary else None

    def score(score: Score, sign: str = "") -> str:
        return f"{number(score.mean, metric, sign)} ({between((score.low, score.high), metric, sign)})"

    searches = []
    for folder, proposal in proposals.items():
        if study := proposal.study:
            before, after = study.trials[0].values, study.best.values
            searches.append((folder, study, [(key, shown(before.get(key, "")), shown(after[key])) for key in after]))
    costs = [name(cost)] if cost else []
    candidates = [folder for folder in proposals if (path / folder / PROGRAM / ARTIFACT).exists()]
    last = path / BEST if summary else path / candidates[-1] / PROGRAM if candidates else path / START / PROGRAM
    try:  # from the start to the result, or to the latest candidate of a run that goes on
        changes = diff(read(path / START / PROGRAM).state, read(last).state)
    except PolyhopError as error:
        raise RunError(f"The run {path} cannot be reported: {error}") from error
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
        rows=[stage.row(settings) for stage in summary.stages] if summary else [],
        level=settings.level / settings.comparisons,
        proposals=list(proposals),
        test=test,
        kept=summary is not None and summary.best != START,
        test_start=score(test.start) if test else "",
        test_best=score(test.best) if test else "",
        test_difference=score(test.difference, "+") if test else "",
        searches=searches,
        changes=changes,
    )
    return Section("optimization", "Optimization", body)
