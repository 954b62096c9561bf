"""The data of the sections on optimization runs, and the templates that show it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup
from pydantic import BaseModel, ValidationError

from ...data.errors import PolyhopError, first_error
from ...data.files import read_bytes
from ...data.text import count
from ...engines.budget import Spent, read_spent
from ...eval.charts import Plot, bounds
from ...eval.folder import ACCOUNT, MANIFEST, SUMMARY, RunError
from ...eval.report.numbers import between, lower, name, number, p_value
from ...eval.report.page import Section, render
from ...programs.exemplars import Exemplar
from ..artifact import Artifact, read
from ..artifact_format import Score
from ..diff import Difference, Side, compare
from ..records import (
    BEST,
    PROPOSAL,
    STAGE_LINES,
    START,
    MeasuredRecord,
    OptimizationManifest,
    OptimizationSummary,
    ProposalRecord,
    StageRecord,
    TestRecord,
)
from ..settings import OptimizationSettings
from ..tunables.result import StudyResult, TrialRecord

M = TypeVar("M", bound=BaseModel)
_SCORES = ("answer_em", "answer_f1", "evidence_precision", "evidence_recall", "evidence_f1", "fact_f1", "joint_f1",
           "passage_recall@5")  # fmt: skip
_COSTS = ("lm_calls", "lm_calls_critical_path", "searches", "tokens", "cost_usd", "seconds_p50")
_MAX_VALUE, _MAX_LISTED = 1_000, 100  # characters of a value; demos and exemplars of one change
_TEMPLATES = Path(__file__).parent / "templates"


def sections(path: Path) -> list[Section]:
    """The sections of an optimization run, with distinct names."""
    try:
        run = read_run(path)
        found = [_plan(run), *_test(run), *_searches(run), *_changes(run)]
    except RunError:
        raise
    except PolyhopError as error:
        raise RunError(f"The run {path} cannot be reported: {error}") from error
    return (
        [*found, Section("spent", "Spending", _render("spent", spent=run.spent, plan=run.plan))] if run.spent else found
    )


def comparison(runs: Mapping[str, Path]) -> Section:
    """One row per optimization run."""
    rows = [_row(title, read_run(path)) for title, path in runs.items()]
    return Section("optimizations", "Optimizations", _render("optimizations", rows=rows))


def _render(template: str, **context: Any) -> Markup:
    return render(f"{template}.html.j2", _TEMPLATES, **context)


def _row(title: str, run: OptimizationRun) -> list[str]:
    plan, test = run.plan, run.test
    gain, p = "", ""
    means: list[float | None]
    if test is not None:
        means = [test.start.mean, test.best.mean]
        calls = [each.metrics.get("lm_calls") for each in test.runs.values()]
        if len(test.runs) > 1:
            gain, p = _mean(test.difference, plan.metric, "+"), _p(test.p)
    else:
        stages = [run.stages[0], run.kept or run.stages[0]] if run.stages else []
        means, calls = [stage.score for stage in stages], [stage.mean_cost("lm_calls") for stage in stages]
    changed = dict.fromkeys(number(each, "lm_calls") for each in calls if each is not None)
    scores = [number(mean, plan.metric) for mean in means] or ["", ""]
    goal = name(plan.metric) + (f", {lower(plan.cost)}" if plan.cost else "")
    return [title, *scores, gain, p, " → ".join(changed), _result(run), goal, run.name, _dataset(run)]


def _result(run: OptimizationRun) -> str:
    if run.ended is None:
        return "not finished"
    kept = [stage.stage for stage in run.stages if stage.kept and stage.n]
    return f"kept: {', '.join(kept)}" if kept else "nothing was kept"


def _dataset(run: OptimizationRun) -> str:
    return (run.start.manifest.dataset if run.start else None) or ""


def _mean(mean: Score, metric: str, sign: str = "") -> str:
    return f"{number(mean.mean, metric, sign)} ({between((mean.low, mean.high), metric, sign)})"


def _p(p: float | None) -> str:
    return "" if p is None else p_value(p)


# --- plan and test ---------------------------------------------------------------------------------------------------


def _plan(run: OptimizationRun) -> Section:
    """The plan, the state of the run, and a row per stage."""
    plan = run.plan
    details = {
        "prompts": f" ({plan.optimizer}, {plan.auto})",
        "tunables": f" ({count(plan.trials, 'trial')}, {plan.sampler})",
    }
    cost = plan.cost or "lm_calls"
    rows = [
        [
            stage.stage if not stage.n or plan.rounds == 1 else f"{stage.stage}, round {stage.round}",
            number(stage.score, plan.metric),
            "" if stage.gain is None else number(stage.gain, plan.metric, "+"),
            _p(stage.p),
            number(stage.mean_cost(cost), cost),
            _verdict(stage),
        ]
        for stage in run.stages
    ]
    body = _render(
        "optimization",
        run=run,
        stages=", then ".join(stage + details.get(stage, "") for stage in plan.stages),
        splits={key: split.count for key, split in run.start.manifest.splits.items()} if run.start else {},
        dataset=_dataset(run),
        goal=f"{name(plan.metric)}{f' (cost to minimize: {lower(plan.cost)})' if plan.cost else ''}",
        validation=count(len(run.stages[0].scores), "validation question") if run.stages else "validation questions",
        state=_state(run),
        rows=rows,
        cost=cost,
    )
    return Section("optimization", "Optimization", body)


def _state(run: OptimizationRun) -> str:
    if not run.stages:
        return "the program is measured at the start"
    if run.running is not None:
        stage, _, title = run.running.partition("-")
        return f"{title} (stage {stage}) is running"
    return "the result is being measured, or the next stage has not started"


def _verdict(stage: StageRecord) -> str:
    verdict = f"{'kept' if stage.kept else 'not kept'}: {stage.why}" if stage.n else "the baseline"
    note = f" ({stage.note})" if stage.note else ""
    return verdict + note + (f"; {stage.failures} failed" if stage.failures else "")


def _test(run: OptimizationRun) -> Iterator[Section]:
    """The programs at the start and in the end, on questions that no stage has seen."""
    test = run.test
    if test is not None:
        programs = list(test.runs.values())
        rows = [
            [name(metric), *(_measure(each, metric) for each in programs)]
            for metric in dict.fromkeys([test.metric, *_SCORES, *_COSTS])
            if any(each.metrics.get(metric) is not None for each in programs)
        ]
        body = _render(
            "test", test=test, asked=programs[0].counts["questions"], mean=_mean, rows=rows, chart=_both(test)
        )
        yield Section("test", "Test", body)
    elif run.ended is not None:
        yield Section("test", "Test", Markup("<p>The test questions were not used.</p>"))


def _both(test: TestRecord) -> Markup:
    """Both means with their intervals on one axis."""
    low, high = bounds(end for each in (test.start, test.best) for end in (each.low, each.high))
    title = f"{name(test.metric)} in percent, with 95% intervals"
    plot = Plot(title, f"{name(test.metric)}, %", "", (low, high), (-0.5, 1.5), y_names=("tuned", "start"),
                percent="x", width=560, height=130)  # fmt: skip
    for row, mean in enumerate((test.best, test.start)):
        plot.interval(row, mean.low, mean.mean, mean.high, 1 - row, _mean(mean, test.metric))
    return plot.svg()


def _measure(program: MeasuredRecord, metric: str) -> str:
    mean, ends = program.metrics.get(metric), program.intervals.get(metric)
    if mean is None:
        return ""
    return number(mean, metric) + (f" ({between(ends, metric)})" if ends else "")


# --- searches --------------------------------------------------------------------------------------------------------


def _searches(run: OptimizationRun) -> Iterator[Section]:
    for folder, result, trials in run.searches():
        stage, _, kind = folder.partition("-")
        title = "Search over the exemplars" if kind == "exemplars" else "Search over the tunables"
        if run.plan.rounds > 1:
            title += f", round {1 + (int(stage) - 1) // len(run.plan.stages)}"
        yield Section(f"search-{folder}", title, _search(result, trials, run.plan.cost))


def _search(result: StudyResult | None, trials: Sequence[TrialRecord], cost: str | None) -> Markup:
    from ..tunables import plots
    from ..tunables.result import pareto_front

    counts = Counter(trial.state for trial in trials)
    states = f"{count(len(trials), 'trial')} ({', '.join(f'{n} {state}' for state, n in counts.most_common())})"
    history = plots.history(trials) if any(trial.score is not None for trial in trials) else None
    cost = result.settings.cost if result else cost
    spent = {trial.costs.get(cost or "") for trial in trials}  # with equal costs, there is nothing to trade
    if result is None:
        known = [trial for trial in trials if trial.state == "complete" and cost in trial.costs]
        best = pareto_front(known, cost) if cost and len(spent) > 1 else []
        front = plots.front(trials, cost, best) if cost and best else None
        return _render("search", result=None, states=states, history=history, cost=cost, front=front)
    return _render(
        "search",
        result=result,
        states=states,
        questions=count(int(result.settings.questions.get("count", 0)), "question"),
        history=history,
        cost=cost,
        front=plots.front(trials, cost, result.front, result.best)
        if cost and result.front and len(spent) > 1
        else None,
        importances=plots.importances(result) if result.importances else None,
        values=_values(result),
        score=lambda trial: "no score" if trial.score is None else f"{trial.score:.4g}",
    )


def _values(result: StudyResult) -> list[tuple[str, str, str, str, str]]:
    """Name, default, chosen value, importance and range of each tunable, the most important first."""
    rows = []
    for tunable in dict.fromkeys([*result.importances, *result.settings.space, *result.best.values]):
        before, after = result.default.values.get(tunable), result.best.values.get(tunable)
        importance = result.importances.get(tunable)
        rows.append(
            (
                tunable,
                "" if before is None else _value(before),
                "" if after is None else _value(after),
                "" if importance is None else f"{100 * importance:.1f}%",
                _range(result.settings.space.get(tunable, "")),
            )
        )
    return rows


def _range(distribution: str) -> str:
    """The range of a tunable, from Optuna's JSON."""
    try:
        found: dict[str, Any] = json.loads(distribution)["attributes"]
        if "choices" in found:
            return ", ".join(_value(each) for each in found["choices"])
        return f"{_value(found['low'])} to {_value(found['high'])}{' (log)' if found.get('log') else ''}"
    except (ValueError, KeyError, TypeError):
        return ""


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]} … ({len(text) - _MAX_VALUE:,} more characters)"


# --- changes ---------------------------------------------------------------------------------------------------------


def _changes(run: OptimizationRun) -> Iterator[Section]:
    """From the start to the best program, and what was proposed but not kept."""
    if run.kept is None:
        return
    kept = start = run.stages[0]
    rejected = []
    for stage in run.stages[1:]:
        if stage.kept:
            kept = stage
        elif stage.score is not None:
            rejected.append((f"Not kept: the proposal of {stage.stage} (stage {stage.n})", _change(run, kept, stage)))
    result = _change(run, start, run.kept, open=True) if run.kept.n else None
    yield Section("changes", "Changes", _render("changes", result=result, rejected=rejected))


def _change(run: OptimizationRun, before: StageRecord, after: StageRecord, *, open: bool = False) -> Markup:
    sides = [Side.of_artifact(stage.folder, run.program_of(stage)) for stage in (before, after)]
    found = compare(*sides)
    exemplars = [
        (key, *_exemplars(found, key, sides[0].memories[key], sides[1].memories[key])) for key in found.exemplars
    ]
    return _render(
        "change",
        found=found,
        open=open,
        fields=lambda demo: {
            key: _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for key, value in demo.items()
            if key != "augmented"  # DSPy's note on bootstrapped demos
        },
        most=_MAX_LISTED,
        exemplars=exemplars,
        value=_value,
        short=_short,
    )


def _exemplars(
    found: Difference, key: str, before: Sequence[Exemplar], after: Sequence[Exemplar]
) -> tuple[list[list[str]], list[Exemplar], list[Exemplar]]:
    """Rows of counts by number of hops, the added and the removed exemplars."""
    change, old, new = found.exemplars[key], Counter(before), Counter(after)
    hops = sorted({*change.before, *change.after})
    rows = [[str(n), str(change.before.get(n, 0)), str(change.after.get(n, 0))] for n in hops]
    return rows, list((new - old).elements()), list((old - new).elements())


# --- reading a run, without a lock: files are replaced as a whole, and lines are appended -----------------------------


@dataclass(frozen=True)
class OptimizationRun:
    """An optimization run: finished stages (the start first), the folder of the running stage, and why the run ended if
    it did.
    """

    path: Path
    plan: OptimizationSettings
    program: Mapping[str, Any]
    stages: Sequence[StageRecord]
    running: str | None
    ended: str | None
    test: TestRecord | None
    spent: Spent | None

    @property
    def name(self) -> str:
        return str(self.program.get("name") or self.program.get("class") or "A program")

    @cached_property
    def kept(self) -> StageRecord | None:
        """The stage of the best program so far."""
        return next((stage for stage in reversed(self.stages) if stage.kept), None)

    @cached_property
    def start(self) -> Artifact | None:
        """The program at the start, once it is saved."""
        return read(self.path / START) if (self.path / START / MANIFEST).exists() else None

    def program_of(self, stage: StageRecord) -> Artifact:
        """The program of a stage; the result, which has the scores of all, for the one that was kept."""
        if self.ended is not None and stage is self.kept and (self.path / BEST).is_dir():
            return read(self.path / BEST)
        return read(self.path / stage.artifact)

    def searches(self) -> Iterator[tuple[str, StudyResult | None, Sequence[TrialRecord]]]:
        """Finished searches and the running one: the folder of the stage, the result if there is one, the trials."""
        from ..tunables.storage import read_trials

        for stage in [*(stage.folder for stage in self.stages if stage.n), *([self.running] if self.running else [])]:
            proposal = _read(ProposalRecord, self.path / stage / PROPOSAL)
            journal = self.path / stage / f"{stage.partition('-')[2]}.journal"
            if proposal is not None and proposal.study is not None:
                yield stage, proposal.study, proposal.study.trials
            elif proposal is None and journal.exists() and (trials := read_trials(journal)):
                yield stage, None, trials


def read_run(path: Path) -> OptimizationRun:
    manifest = _read(OptimizationManifest, path / MANIFEST)
    if manifest is None:
        raise RunError(f"{path} is not a run folder: it has no {MANIFEST}.")
    plan = manifest.settings
    if plan is None:
        raise RunError(f"{path} is another kind of run, not an optimization.")
    stages = list(_stages(path / STAGE_LINES))
    account = path / f"{ACCOUNT}.json"
    summary = _read(OptimizationSummary, path / SUMMARY)
    if summary is not None and len(summary.stages) < len(stages):
        summary = None  # resumed after its end, with a larger budget
    running = None
    if summary is None and 0 < len(stages) <= plan.rounds * len(plan.stages):
        name = f"{len(stages)}-{plan.stages[(len(stages) - 1) % len(plan.stages)]}"
        running = name if (path / name).is_dir() else None
    return OptimizationRun(
        path,
        plan,
        manifest.program,
        stages,
        running,
        summary.ended if summary else None,
        summary.test if summary else None,
        read_spent(account) if account.exists() else None,
    )


def _read(model: type[M], path: Path) -> M | None:
    """A file, or None if there is none."""
    try:
        return model.model_validate_json(read_bytes(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        raise RunError(f"{path} is damaged: {first_error(error)}.") from error


def _stages(path: Path) -> Iterator[StageRecord]:
    try:
        lines = read_bytes(path).split(b"\n")[:-1]  # text after the last line break is still being written
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    for n, line in enumerate(lines, 1):
        try:
            yield StageRecord.model_validate_json(line)
        except ValidationError as error:
            raise RunError(f"{path}, line {n} is damaged: {first_error(error)}.") from error
