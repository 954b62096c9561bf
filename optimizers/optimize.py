"""One optimization of a program's exemplars, prompts and tunables: a folder of evaluation runs and artifacts.

    summary = optimize(program, Splits(train, val, test), "runs/mine", OptimizationSettings(budget_calls=20_000))
    best = polyhop.load("runs/mine/best", retriever)

In each round, each stage tunes the incumbent on the training questions. Its candidate replaces the incumbent if a
paired test on the validation questions says that it is better, or as good and cheaper. All stages use the same
validation questions, so each test has a share of the level (Bonferroni). A spent budget ends the run with the
incumbent; what the final measurement needs is reserved from the start.

A run that was interrupted or killed resumes with the same call: evaluations and searches go on where they were, and a
prompt optimizer starts again with the replies in DSPy's cache. It ends with the same program, unless a budget ends it:
a kill pays twice for the calls in flight, so that a budget allows less than it would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from math import ceil, nan
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from ..data.errors import PolyhopError
from ..engines.budget import Budget, BudgetSpent, Spent
from ..eval.folder import ACCOUNT, MANIFEST, SUMMARY, RunError, account, claimed, read_json, write_json
from ..eval.gold import LookUp
from ..eval.metrics import COSTS, Metric, find_metric
from ..eval.records import read_records
from ..eval.run import evaluate
from ..eval.settings import ProgramSettings, RunManifest
from ..eval.statistics import compare, interval
from .artifact import Provenance, Score, Split, load, save
from .records import (
    BEST,
    PROGRAM,
    PROPOSAL,
    START,
    TEST,
    VAL,
    OptimizationSummary,
    Proposal,
    StageRecord,
    TestRecord,
    read_file,
    values_of,
)
from .settings import OptimizationSettings, Splits
from .stages import PROPOSE, Stage
from .tunables import search_space

RESERVE = 1.25
"""What is reserved for a measurement, as a multiple of its expected cost."""

_COUNTED = ("lm_calls", "lm_calls_critical_path", "searches")  # also for replies from a cache


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` units of work of a stage, what they are, and what was spent in all."""

    stage: str
    done: float
    total: float | None
    detail: str
    spent: Spent


def optimize(
    program: dspy.Module,
    splits: Splits,
    out: Path | str,
    settings: OptimizationSettings | None = None,
    *,
    prompt_model: dspy.LM | None = None,
    sources: Mapping[str, Path | str] | None = None,
    dataset: str | None = None,
    look_up: LookUp | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> OptimizationSummary:
    """Tune a program. The same call resumes a run that was interrupted.

    Args:
        program: The program at the start, with its models; it is not changed.
        splits: The questions.
        out: The folder of the run. The best program is in ``out/best``.
        prompt_model: Writes instructions, for optimizers that need one.
        sources: The files of the splits by name, for the record.
        look_up: Finds gold passages by title: `BM25Index.titled` of the index that is searched.

    Raises:
        RunError: the folder contains another run or other files, or is in use.
        PolyhopError: the settings do not fit the program or the questions, or every question fails.
        BudgetSpent: the budget does not allow to measure the program at the start.

    Warns:
        UserWarning: there are so few validation questions that no candidate can be kept.
    """
    settings = settings or OptimizationSettings()
    check_settings(settings, program, prompt_model)
    splits = replace(splits)  # now that the metric is known, which may need no answers
    if (least := settings.least_questions) > len(splits.val):
        warnings.warn(
            f"no candidate can be kept: its test at p < {settings.level / settings.comparisons:.2g} needs {least} "
            f"validation questions or more, and there are {len(splits.val)}",
            stacklevel=2,
        )
    metric = _metric(settings.metric)
    for name, questions in splits.named.items():
        if not any(map(metric.applies, questions)):
            raise PolyhopError(
                f"{metric.name} cannot be measured on the {name} questions, which have no gold evidence: choose "
                "another --metric, such as answer_f1"
            )
    manifest = {
        "settings": settings.model_dump(mode="json"),
        "program": ProgramSettings.of(program, type(program).__name__).to_json(),
        "questions": {name: Split.of(name, part).hash for name, part in splits.named.items()},
    }
    with ExitStack() as stack:
        path = Path(out)
        stack.enter_context(claimed(path, manifest, lambda: _known(path, settings), beside=(ACCOUNT,)))
        limits = (settings.budget_calls, settings.budget_usd, settings.budget_minutes)
        budget = Budget(*limits, file=account(path))
        stack.callback(budget.close)
        if dspy.settings.lm is not None:  # of predictors without a model of their own
            stack.enter_context(dspy.context(lm=budget.meter(dspy.settings.lm)))
        named = {name: Split.of((sources or {}).get(name, name), part) for name, part in splits.named.items()}
        origin = {"dataset": dataset, "splits": named}
        run = Run(path, program, splits, settings, metric, budget, prompt_model, origin, look_up, on_progress)
        return run()


def check_settings(settings: OptimizationSettings, program: dspy.Module, prompt_model: dspy.LM | None = None) -> None:
    """Raise what is wrong with the settings before anything is asked."""
    _metric(settings.metric)
    if settings.cost not in (None, *COSTS):
        raise PolyhopError(f"no cost {settings.cost!r}: choose from {', '.join(COSTS)}")
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if settings.cost not in (None, *_COUNTED) and any(lm is not None and lm.cache for lm in models):
        raise PolyhopError(
            f"{settings.cost} is unknown for replies from DSPy's cache: use {', '.join(_COUNTED)} as the cost, or "
            "models with cache=False"
        )
    values_of(settings.warm_start)  # raises if there are none
    if "tunables" in settings.stages:
        search_space(program, settings.freeze, settings.ranges)
    if "prompts" in settings.stages:
        from .prompts import check

        check(settings.optimizer, program, prompt_model)


def _metric(name: str) -> Metric:
    metric = find_metric(name)
    if not metric.maximize:
        raise PolyhopError(f"{name} cannot be optimized: lower values are better")
    return metric


def _known(path: Path, settings: OptimizationSettings) -> dict[str, Any]:
    """The manifest of a folder, but for what may change."""
    known = read_json(path / MANIFEST, f"{path} has no {MANIFEST}.")
    if "stages" not in known.get("settings", {}):
        raise RunError(f"{path} is the folder of another kind of run: choose another --out.")
    return {**known, "settings": known["settings"] | settings.changeable()}


@dataclass
class Run:
    """A run that goes on."""

    path: Path
    start: dspy.Module
    splits: Splits
    settings: OptimizationSettings
    metric: Metric
    budget: Budget
    prompt_model: dspy.LM | None
    origin: dict[str, Any]
    look_up: LookUp | None
    on_progress: Callable[[Progress], None]

    def __call__(self) -> OptimizationSummary:
        if not (self.path / START / PROGRAM).exists():
            save(self.start, self.path / START / PROGRAM, provenance=self._provenance())
        self._evaluate(START, "val", self.splits.val)
        stages = [StageRecord(n=0, round=0, stage="start", kept=True, **_means(self.path / START / VAL, self.settings))]
        try:
            ended = self._stages(stages)
        except BudgetSpent as spent:
            ended = f"the budget ({spent}) allows no further stage; resume with a larger one"
        return self._finish(stages, ended)

    def _stages(self, stages: list[StageRecord]) -> str:
        """Run the stages; returns why the run ends."""
        with self._reserve(2 * len(self.splits.test)):
            for round_ in range(1, self.settings.rounds + 1):
                for stage in self.settings.stages:
                    self._stage(StageRecord(n=len(stages), round=round_, stage=stage, kept=False), stages)
                if not any(record.kept for record in stages if record.round == round_):
                    return "no stage of a round helped" if round_ < self.settings.rounds else "all stages ran"
        return "all stages ran"

    def _stage(self, record: StageRecord, stages: list[StageRecord]) -> None:
        """Run a stage, evaluate its candidate, and compare it with the incumbent."""
        folder, incumbent = self.path / record.folder, _incumbent(stages)
        if not (folder / PROPOSAL).exists():
            folder.mkdir(exist_ok=True)
            with self._reserve(len(self.splits.val)):
                program = self._load(incumbent.folder)
                candidate, found = PROPOSE[record.stage](Stage(self, record, folder, program, incumbent.folder))
            if candidate is not None:
                save(candidate, folder / PROGRAM, provenance=self._provenance())
            write_json(folder / PROPOSAL, found.model_dump(mode="json", exclude_none=True))
        proposal = read_file(Proposal, folder / PROPOSAL)
        record = record.model_copy(update={"note": proposal.note})
        if not proposal.candidate:
            stages.append(record.model_copy(update={"why": "no candidate"}))
            return
        self._evaluate(record.folder, record.stage, self.splits.val)
        verdict = judge(folder / VAL, self.path / incumbent.folder / VAL, self.settings)
        stages.append(record.model_copy(update={**verdict, **_means(folder / VAL, self.settings)}))
        if proposal.spent is not None:
            raise BudgetSpent(proposal.spent)

    def _finish(self, stages: Sequence[StageRecord], ended: str) -> OptimizationSummary:
        """Save the best program, measure it on the test questions, and write the summary."""
        best, name = _incumbent(stages), self.metric.name
        scores = {"val": {name: _score(_column(self.path / best.folder / VAL, name))}}
        self._save_best(best, scores)  # whatever happens to the final measurement
        test = None
        try:
            test = self._tested(best)
            self._save_best(best, {**scores, "test": self._test_scores(best)})
        except BudgetSpent as spent:
            ended = f"{ended}; the budget ({spent}) did not allow the final measurement"
        summary = OptimizationSummary(
            ended=ended, best=best.folder, stages=list(stages), test=test, spent=self.budget.spent
        )
        write_json(self.path / SUMMARY, summary.model_dump(mode="json", exclude_none=True))
        return summary

    def _tested(self, best: StageRecord) -> TestRecord:
        """Start and best program on the test questions."""
        folders = list(dict.fromkeys([START, best.folder]))
        for folder in folders:
            self._evaluate(folder, TEST, self.splits.test)
        columns = [_column(self.path / TEST / folder, self.metric.name) for folder in folders]
        compared = compare(columns[-1], columns[0], seed=self.settings.seed)
        return TestRecord(
            metric=self.metric.name,
            questions=len(self.splits.test),
            start=_score(columns[0]),
            best=_score(columns[-1]),
            difference=Score(**compared.difference._asdict()),
            p=compared.p_permutation,
            runs=folders,
        )

    # --- parts -------------------------------------------------------------------------------------------------------

    def _load(self, folder: str) -> dspy.Module:
        """The program of a stage, with metered models. It is always read from its artifact, so that a run has the same
        programs before and after it is resumed."""
        program = load(self.path / folder / PROGRAM, program=self.start.deepcopy())
        self.budget.meter_program(program)
        return program

    def _evaluate(self, folder: str, stage: str, questions: Sequence[dspy.Example]) -> None:
        """Evaluate the program of a stage."""
        kind = "test" if stage == TEST else "validation"
        out = self.path / TEST / folder if stage == TEST else self.path / folder / VAL
        self.measure(self._load(folder), questions, out, stage, f"{kind} questions, {folder}")

    def measure(
        self, program: dspy.Module, questions: Sequence[dspy.Example], out: Path, stage: str, detail: str
    ) -> None:
        """Evaluate a program into a folder; an evaluation that is finished asks nothing."""
        summary = evaluate(
            program,
            list(questions),
            out,
            threads=self.settings.threads,
            executor=self.settings.executor,
            look_up=self.look_up,
            manifest=RunManifest.of(program, list(questions), name=out.parent.name if stage != TEST else out.name),
            on_progress=lambda each: self.report(stage, each.done, each.questions, detail),
        )
        if not summary["counts"]["answered"]:
            raise PolyhopError(f"the program failed on all {detail}: {summary['failures'][0]['message']}")

    def _save_best(self, best: StageRecord, scores: Mapping[str, Mapping[str, Score]]) -> None:
        save(self._load(best.folder), self.path / BEST, provenance=self._provenance(scores=scores))

    def _test_scores(self, best: StageRecord) -> dict[str, Score]:
        summary = read_json(self.path / TEST / best.folder / SUMMARY, "the test has no summary")
        means, ends = summary["metrics"], summary["intervals"]
        return {name: Score(mean=means[name], low=ends[name][0], high=ends[name][1]) for name in means if name in ends}

    def _provenance(self, **more: Any) -> Provenance:
        spent, settings = self.budget.spent, self.settings
        return Provenance(
            **self.origin,
            metric=self.metric.name,
            seed=settings.seed,
            spent={"lm_calls": spent.calls, "cost_usd": spent.usd, "minutes": spent.seconds / 60},
            settings=settings.model_dump(mode="json", exclude={*settings.changeable()}),
            **more,
        )

    def report(self, stage: str, done: float, total: float | None, detail: str) -> None:
        self.on_progress(Progress(stage, done, total, detail, self.budget.spent))

    def _reserve(self, questions: int) -> AbstractContextManager[None]:
        """Inside, the expected cost of so many questions is reserved, at the pace of the start."""
        costs = [record.costs for record in read_records(self.path / START / VAL)]
        calls = RESERVE * questions * sum(each.get("lm_calls", 0.0) for each in costs) / len(costs)
        parallel = self.settings.threads * (self.settings.workers or 1)
        seconds = RESERVE * questions * sum(each["seconds"] for each in costs) / len(costs) / parallel
        return self.budget.keeping_back(ceil(calls), calls * self.budget.usd_a_call, seconds)


# --- the verdict -----------------------------------------------------------------------------------------------------


def judge(candidate: Path, incumbent: Path, settings: OptimizationSettings) -> dict[str, Any]:
    """The verdict on a candidate from two evaluation runs over the same questions, as fields of a `StageRecord`.

    It is kept if its score is better, or if its cost is lower and its score not lower (two-sided paired permutation
    tests). Each test has its share of ``level``, so that a run keeps what does not help with a chance of ``level`` at
    most. A question that fails scores 0.
    """
    level = settings.level / settings.comparisons
    scored = compare(*(_column(run, settings.scored) for run in (candidate, incumbent)), seed=settings.seed)
    gain, p = scored.difference.mean, scored.p_permutation
    better = gain > 0 and p < level
    if settings.cost is None:
        why = "better" if better else "not better" if gain <= 0 else "not significantly better"
        return {"kept": better, "why": why, "gain": gain, "p": p}
    saving = compare(*(_column(run, settings.cost) for run in (incumbent, candidate)), seed=settings.seed)
    saved, p_cost = saving.difference.mean, saving.p_permutation
    cheaper = saved > 0 and p_cost < level and gain >= 0
    why = "better" if better else "cheaper and not worse" if cheaper else "neither better nor cheaper"
    return {"kept": better or cheaper, "why": why, "gain": gain, "p": p, "saved": saved, "p_cost": p_cost}


def _incumbent(stages: Sequence[StageRecord]) -> StageRecord:
    return next(record for record in reversed(stages) if record.kept)


def _column(run: Path, name: str) -> list[float]:
    """A score or a cost of each question of a run; NaN where a question has none."""
    return [float((record.scores | record.costs).get(name, nan)) for record in read_records(run)]


def _score(column: Sequence[float]) -> Score:
    return Score(**interval(column)._asdict())


def _means(run: Path, settings: OptimizationSettings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "score": float(np.nanmean(_column(run, settings.scored))),
        "failures": sum(record.error is not None for record in read_records(run)),
    }
    if settings.cost is not None:
        found["cost"] = float(np.nanmean(_column(run, settings.cost)))
    return found
