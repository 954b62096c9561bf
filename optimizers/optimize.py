"""One optimization of a program's exemplars, prompts and tunables: a folder of evaluation runs and artifacts.

    summary = optimize(program, Splits(train, val, test), "runs/mine", OptimizationSettings(budget_calls=20_000))
    best = polyhop.load("runs/mine/best", retriever)

Each stage tunes the incumbent on the training questions. Its candidate replaces the incumbent if a paired test on the
validation questions says that it is better, or as good and cheaper; each test has a share of the level (Bonferroni). A
spent budget ends the run; the final measurement is reserved from the start. A run that was killed resumes to the same
result, but for a budget: a kill pays twice for the calls in flight.

RUN/manifest.json       the settings, the program and the questions
RUN/spent.json          what was spent, by all processes
RUN/N-STAGE/program/    the candidate of a stage, as an artifact; that of 0-start is the program at the start
RUN/N-STAGE/val/        its evaluation on the validation questions
RUN/N-STAGE/stage.json, study.journal    how the candidate was found
RUN/N-STAGE/train/      its evaluation on the training questions, if the stage of exemplars reads it
RUN/test/N-STAGE/       evaluations of the start and of the best program on the test questions
RUN/best/               the best program, as an artifact
RUN/summary.json        written last
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from math import ceil, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import dspy
import numpy as np
from pydantic import BaseModel, ConfigDict

from ..data.errors import PolyhopError
from ..engines.budget import Budget, BudgetSpent, Spent
from ..eval.folder import (
    MANIFEST,
    SUMMARY,
    ProgramSettings,
    RunManifest,
    account,
    claimed,
    read_json,
    read_model,
    read_records,
    write_json,
)
from ..eval.gold import LookUp
from ..eval.metrics import COSTS, find_metric
from ..eval.report import number, p_value
from ..eval.run import COUNTED, evaluate
from ..eval.statistics import compare, interval
from .artifact import ARTIFACT, Provenance, Score, Split, load, save
from .prompts import check
from .settings import BEST, DECIDING, OptimizationSettings, Splits
from .stages import STAGES, Context
from .tunables import StudyResult, search_space

START, PROGRAM, STAGE = "0-start", "program", "stage.json"
TRAIN, VAL, TEST = "train", "val", "test"

RESERVE = 1.25
"""What is reserved for a measurement, as a multiple of its expected cost."""

_KINDS = {TRAIN: "training", VAL: "validation", TEST: "test"}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class StageRecord(_Record):
    """A stage: how its candidate was found, or why there is none, and the budget that ended its search early
    (``spent``); then means over the validation questions, the paired test against the incumbent (``ends`` are those of
    the gain's 95% interval), and whether the candidate replaced it. ``stage`` is "start" for the program at the
    start."""

    n: int
    stage: str
    kept: bool = False
    why: str = ""
    note: str = ""
    score: float | None = None
    gain: float | None = None
    ends: tuple[float, float] | None = None
    p: float | None = None
    cost: float | None = None
    saved: float | None = None
    p_cost: float | None = None
    failures: int = 0
    study: StudyResult | None = None  # only in the file of the stage
    spent: str | None = None

    @property
    def folder(self) -> str:
        return f"{self.n}-{self.stage}"

    def row(self, settings: OptimizationSettings) -> list[str]:
        """Its cells in a table: the folder, score, gain, p, cost (if there is one) and the verdict."""
        metric, cost = settings.scored, settings.cost
        verdict = f"{'kept' if self.kept else 'not kept'}: {self.why}" if self.n else "the baseline"
        verdict += (f" ({self.note})" if self.note else "") + (f"; {self.failures} failed" if self.failures else "")
        gain = "" if self.gain is None else number(self.gain, metric, "+")
        p, costs = "" if self.p is None else p_value(self.p), [number(self.cost, cost)] if cost else []
        return [self.folder, number(self.score, metric), gain, p, *costs, verdict]


class TestRecord(_Record):
    """Start and best program on the test questions, and the paired permutation test."""

    __test__ = False

    metric: str
    questions: int
    start: Score
    best: Score
    difference: Score
    p: float


class OptimizationSummary(_Record):
    """The result of a run and why it ended; no ``test`` if the budget did not allow it."""

    ended: str
    best: str
    stages: list[StageRecord]
    test: TestRecord | None = None
    spent: Spent = Spent()


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
    settings, path = settings or OptimizationSettings(), Path(out)
    check_settings(settings, program, prompt_model)
    splits = replace(splits)  # now that the metric is known, which may need no answers
    if (least := settings.least_questions) > len(splits.val):
        warnings.warn(
            f"no candidate can be kept: its test at p < {settings.level / settings.comparisons:.2g} needs {least} "
            f"validation questions or more, and there are {len(splits.val)}",
            stacklevel=2,
        )
    metric = find_metric(settings.metric)
    for name, questions in splits.named.items():
        if not any(map(metric.applies, questions)):
            raise PolyhopError(
                f"{metric.name} cannot be measured on the {name} questions, which have no gold evidence: choose "
                "another --metric, such as answer_f1"
            )
    used = {name: Split.of((sources or {}).get(name, name), questions) for name, questions in splits.named.items()}
    manifest: dict[str, Any] = {
        "settings": settings.model_dump(mode="json"),
        "program": ProgramSettings.of(program, type(program).__name__).to_json(),
        "questions": {name: split.hash for name, split in used.items()},
    }

    def manifest_before() -> dict[str, Any]:
        """The manifest of the folder, but for what may change."""
        stored = read_json(path / MANIFEST)
        deciding = {name: (stored.get("settings") or {}).get(name) for name in DECIDING}
        return {**stored, "settings": manifest["settings"] | deciding}

    with ExitStack() as stack:
        stack.enter_context(claimed(path, manifest, manifest_before))
        budget = Budget(**settings.budget, file=account(path))
        stack.callback(budget.close)
        if dspy.settings.lm is not None:  # of predictors without a model of their own
            stack.enter_context(dspy.context(lm=budget.meter(dspy.settings.lm)))
        run = _Run(path, program, splits, settings, budget, prompt_model, dataset, look_up, on_progress)
        return run(Provenance(dataset=dataset, splits=used, metric=metric.name, seed=settings.seed))


def check_settings(settings: OptimizationSettings, program: dspy.Module, prompt_model: dspy.LM | None = None) -> None:
    """Raise what is wrong with the settings before anything is asked."""
    if not find_metric(settings.metric).maximize:
        raise PolyhopError(f"{settings.metric} cannot be optimized: lower values are better")
    if settings.cost not in (None, *COSTS):
        raise PolyhopError(f"no cost {settings.cost!r}: choose from {', '.join(COSTS)}")
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if settings.cost not in (None, *COUNTED) and any(lm is not None and lm.cache for lm in models):
        raise PolyhopError(
            f"{settings.cost} is unknown for replies from DSPy's cache: use {', '.join(COUNTED)}, or --no-cache"
        )
    if "tunables" in settings.stages:
        search_space(program, settings.freeze, settings.ranges)
    if "prompts" in settings.stages:
        check(settings.optimizer, program, prompt_model)


@dataclass
class _Run:
    """A run that goes on, and the stages that have ended."""

    path: Path
    start: dspy.Module
    splits: Splits
    settings: OptimizationSettings
    budget: Budget
    prompt_model: dspy.LM | None
    dataset: str | None
    look_up: LookUp | None
    on_progress: Callable[[Progress], None]
    stages: list[StageRecord] = field(default_factory=list)
    now: str = "start"  # the stage that goes on

    def __call__(self, origin: Provenance) -> OptimizationSummary:
        if not (self.path / START / PROGRAM / ARTIFACT).exists():
            save(self.start, self.path / START / PROGRAM)
        self.measure(self.load(START), VAL, self.path / START / VAL)
        self.stages = [StageRecord(n=0, stage="start", kept=True, **self._means(START))]
        ended = "all stages ran"
        try:
            with self._reserve(2 * len(self.splits.test)):
                for stage in self.settings.stages:
                    self._run_stage(StageRecord(n=len(self.stages), stage=stage))
        except BudgetSpent as spent:
            ended = f"the budget ({spent}) allows no further stage; resume with a larger one"
        test, best, metric = None, self.incumbent, self.settings.scored
        scores = {VAL: {metric: _mean(_column(self.path / best / VAL, metric))}}
        try:
            test = self._tested(best)
            scores[TEST] = {metric: test.best}
        except BudgetSpent as spent:
            ended = f"{ended}; the budget ({spent}) did not allow the final measurement"
        paid, fixed = self.budget.spent, self.settings.model_dump(mode="json", include={*DECIDING})
        costs = {"lm_calls": paid.calls, "cost_usd": paid.usd, "minutes": paid.seconds / 60}
        made = origin.model_copy(update={"scores": scores, "spent": costs, "settings": fixed})
        save(self.load(best), self.path / BEST, provenance=made)
        summary = OptimizationSummary(ended=ended, best=best, stages=self.stages, test=test, spent=paid)
        write_json(self.path / SUMMARY, summary.model_dump(mode="json", exclude_none=True))
        return summary

    def _run_stage(self, record: StageRecord) -> None:
        """Let a stage propose a candidate, evaluate it, and compare it with the incumbent."""
        self.now, incumbent, folder = record.stage, self.incumbent, self.path / record.folder
        if not (folder / STAGE).exists():
            folder.mkdir(exist_ok=True)
            with self._reserve(len(self.splits.val)):
                proposal = STAGES[record.stage](self.load(incumbent), self._context(folder))
            if proposal.program is not None:
                save(proposal.program, folder / PROGRAM)
            proposed = {"note": proposal.note, "study": proposal.study, "spent": proposal.spent}
            write_json(folder / STAGE, record.model_copy(update=proposed).model_dump(mode="json", exclude_none=True))
        record, verdict = read_model(StageRecord, folder / STAGE), {"why": "no candidate"}
        if (folder / PROGRAM).exists():
            self.measure(self.load(record.folder), VAL, folder / VAL)
            verdict = judge(folder / VAL, self.path / incumbent / VAL, self.settings) | self._means(record.folder)
        self.stages.append(record.model_copy(update={"study": None, **verdict}))
        if record.spent is not None:
            raise BudgetSpent(record.spent)

    def _context(self, folder: Path) -> Context:
        trained = self.path / self.incumbent / TRAIN
        return Context(
            settings=self.settings,
            train=self.splits.train,
            seed=self.settings.seed + sum(record.stage == self.now for record in self.stages),  # it may come again
            folder=folder,
            prompt_model=self.budget.meter(self.prompt_model) if self.prompt_model else None,
            evaluate=lambda program: self.measure(program, TRAIN, trained),
            report=self.report,
        )

    def _tested(self, best: str) -> TestRecord:
        """Start and best program on the test questions."""
        self.now = TEST
        runs = [self.path / TEST / folder for folder in (START, best)]
        for out in dict.fromkeys(runs):
            self.measure(self.load(out.name), TEST, out)
        start, tuned = (_column(out, self.settings.scored) for out in runs)
        compared = compare(tuned, start, seed=self.settings.seed)
        return TestRecord(
            metric=self.settings.scored,
            questions=len(self.splits.test),
            start=_mean(start),
            best=_mean(tuned),
            difference=Score(**compared.difference._asdict()),
            p=compared.p_permutation,
        )

    @property
    def incumbent(self) -> str:
        """The folder of the stage whose program is the best so far."""
        return next(record.folder for record in reversed(self.stages) if record.kept)

    def load(self, folder: str) -> dspy.Module:
        """The program of a stage, with metered models. It is always read from its artifact, so that a run has the same
        programs before and after it is resumed."""
        program = load(self.path / folder / PROGRAM, program=self.start.deepcopy())
        self.budget.meter_program(program)
        return program

    def measure(self, program: dspy.Module, split: str, out: Path) -> Path:
        """Evaluate a program into a folder; an evaluation that is finished asks nothing."""
        questions, name = list(self.splits.named[split]), out.name if split == TEST else out.parent.name
        detail = f"{_KINDS[split]} questions, {name}"
        summary = evaluate(
            program,
            questions,
            out,
            threads=self.settings.threads,
            executor=self.settings.executor,
            look_up=self.look_up,
            manifest=RunManifest.of(program, questions, name=name, dataset=self.dataset),
            on_progress=lambda progress: self.report(progress.done, progress.questions, detail),
        )
        if not summary["counts"]["answered"]:
            raise PolyhopError(f"the program failed on all {detail}: {summary['failures'][0]['message']}")
        return out

    def report(self, done: float, total: float | None, detail: str) -> None:
        self.on_progress(Progress(self.now, done, total, detail, self.budget.spent))

    def _means(self, folder: str) -> dict[str, Any]:
        """What a `StageRecord` holds of an evaluation."""
        run, names = self.path / folder / VAL, {"score": self.settings.scored, "cost": self.settings.cost}
        failures = sum(record.error is not None for record in read_records(run))
        means = {field: float(np.nanmean(_column(run, name))) for field, name in names.items() if name}
        return {"failures": failures, **means}

    def _reserve(self, questions: int) -> AbstractContextManager[None]:
        """Inside, the expected cost of so many questions is reserved, at the pace of the start."""
        costs = [record.costs for record in read_records(self.path / START / VAL)]
        calls = RESERVE * questions * fmean(cost.get("lm_calls", 0.0) for cost in costs)
        parallel = self.settings.threads * (self.settings.workers or 1)
        seconds = RESERVE * questions * fmean(cost["seconds"] for cost in costs) / parallel
        return self.budget.keeping_back(ceil(calls), calls * self.budget.usd_a_call, seconds)


# --- the verdict -----------------------------------------------------------------------------------------------------


def judge(candidate: Path, incumbent: Path, settings: OptimizationSettings) -> dict[str, Any]:
    """The verdict on a candidate from two evaluation runs over the same questions, as fields of a `StageRecord`: it is
    kept if its score is better, or if its cost is lower and its score not lower (two-sided paired permutation tests).
    Each test has its share of ``level``, so that a run keeps what does not help with a chance of ``level`` at most."""
    level = settings.level / settings.comparisons
    scored = compare(*(_column(run, settings.scored) for run in (candidate, incumbent)), seed=settings.seed)
    (gain, low, high), p = scored.difference, scored.p_permutation
    better = gain > 0 and p < level
    verdict: dict[str, Any] = {"gain": gain, "ends": (low, high), "p": p}
    if settings.cost is None:
        why = "better" if better else "not better" if gain <= 0 else "not significantly better"
        return {"kept": better, "why": why, **verdict}
    saving = compare(*(_column(run, settings.cost) for run in (incumbent, candidate)), seed=settings.seed)
    saved, p_cost = saving.difference.mean, saving.p_permutation
    cheaper = saved > 0 and p_cost < level and gain >= 0
    why = "better" if better else "cheaper and not worse" if cheaper else "neither better nor cheaper"
    return {"kept": better or cheaper, "why": why, **verdict, "saved": saved, "p_cost": p_cost}


def _column(run: Path, name: str) -> list[float]:
    """A score or a cost of each question of a run; NaN where a question has none."""
    return [float((record.scores | record.costs).get(name, nan)) for record in read_records(run)]


def _mean(column: Sequence[float]) -> Score:
    return Score(**interval(column)._asdict())
