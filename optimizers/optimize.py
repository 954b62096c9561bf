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
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
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
from ..programs.confidence import Confidence
from ..programs.exemplars import Exemplars
from .artifact import Provenance, Score, Split, load, save
from .confidence import fit_runs
from .exemplars import effects, from_musique, from_run, useful
from .records import (
    BEST,
    PROGRAM,
    PROPOSAL,
    START,
    TEST,
    TRAIN,
    VAL,
    OptimizationSummary,
    Proposal,
    StageRecord,
    TestRecord,
    read_file,
)
from .settings import OptimizationSettings, Splits, divide
from .tunables import TrialRecord, TunableSearch, matching, search_space, with_values

RESERVE = 1.25
"""What is reserved for a measurement, as a multiple of its expected cost."""

EXEMPLAR_TRIALS = 16  # of how many exemplars to show, and which

_COUNTED = ("lm_calls", "lm_calls_critical_path", "searches")  # also for replies from a cache
_KINDS = {TRAIN: "training", VAL: "validation", TEST: "test"}


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
    manifest = {
        "settings": settings.model_dump(mode="json"),
        "program": ProgramSettings.of(program, type(program).__name__).to_json(),
        "questions": {name: split.hash for name, split in used.items()},
    }
    with ExitStack() as stack:
        stack.enter_context(claimed(path, manifest, lambda: _known(path, settings), beside=(ACCOUNT,)))
        budget = Budget(**settings.budget, file=account(path))
        stack.callback(budget.close)
        if dspy.settings.lm is not None:  # of predictors without a model of their own
            stack.enter_context(dspy.context(lm=budget.meter(dspy.settings.lm)))
        origin = Provenance(dataset=dataset, splits=used, metric=metric.name, seed=settings.seed)
        run = Run(path, program, splits, settings, metric, budget, prompt_model, look_up, on_progress)
        return run(origin)


def check_settings(settings: OptimizationSettings, program: dspy.Module, prompt_model: dspy.LM | None = None) -> None:
    """Raise what is wrong with the settings before anything is asked."""
    if not find_metric(settings.metric).maximize:
        raise PolyhopError(f"{settings.metric} cannot be optimized: lower values are better")
    if settings.cost not in (None, *COSTS):
        raise PolyhopError(f"no cost {settings.cost!r}: choose from {', '.join(COSTS)}")
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if settings.cost not in (None, *_COUNTED) and any(lm is not None and lm.cache for lm in models):
        raise PolyhopError(
            f"{settings.cost} is unknown for replies from DSPy's cache: use {', '.join(_COUNTED)} as the cost, or "
            "models with cache=False"
        )
    if "tunables" in settings.stages:
        search_space(program, settings.freeze, settings.ranges)
    if "prompts" in settings.stages:
        from .prompts import check

        check(settings.optimizer, program, prompt_model)


def _known(path: Path, settings: OptimizationSettings) -> dict[str, Any]:
    """The manifest of a folder, but for what may change."""
    known = read_json(path / MANIFEST, f"{path} has no {MANIFEST}.")
    if "stages" not in known.get("settings", {}):
        raise RunError(f"{path} is the folder of another kind of run: choose another --out.")
    return {**known, "settings": known["settings"] | settings.changeable()}


@dataclass
class Run:
    """A run that goes on, and the stages that have ended."""

    path: Path
    start: dspy.Module
    splits: Splits
    settings: OptimizationSettings
    metric: Metric
    budget: Budget
    prompt_model: dspy.LM | None
    look_up: LookUp | None
    on_progress: Callable[[Progress], None]
    stages: list[StageRecord] = field(default_factory=list)

    def __call__(self, origin: Provenance) -> OptimizationSummary:
        if not (self.path / START / PROGRAM).exists():
            save(self.start, self.path / START / PROGRAM)
        self.measure(self.load(START), VAL, self.path / START / VAL, "start")
        self.stages = [StageRecord(n=0, round=0, stage="start", kept=True, **self._means(START))]
        try:
            with self._reserve(2 * len(self.splits.test)):
                ended = self._rounds()
        except BudgetSpent as spent:
            ended = f"the budget ({spent}) allows no further stage; resume with a larger one"
        test, best = None, self.incumbent.folder
        scores = {VAL: {self.metric.name: _score(self._scores(self.path / best / VAL))}}
        try:
            test = self._tested(best)
            scores[TEST] = {self.metric.name: test.best}
        except BudgetSpent as spent:
            ended = f"{ended}; the budget ({spent}) did not allow the final measurement"
        paid, fixed = self.budget.spent, self.settings.model_dump(mode="json", exclude={*self.settings.changeable()})
        costs = {"lm_calls": paid.calls, "cost_usd": paid.usd, "minutes": paid.seconds / 60}
        made = origin.model_copy(update={"scores": scores, "spent": costs, "settings": fixed})
        save(self.load(best), self.path / BEST, provenance=made)
        summary = OptimizationSummary(ended=ended, best=best, stages=self.stages, test=test, spent=paid)
        write_json(self.path / SUMMARY, summary.model_dump(mode="json", exclude_none=True))
        return summary

    def _rounds(self) -> str:
        """Run the stages; returns why the run ends."""
        for round_ in range(1, self.settings.rounds + 1):
            for stage in self.settings.stages:
                self._run_stage(StageRecord(n=len(self.stages), round=round_, stage=stage))
            if not any(record.kept for record in self.stages if record.round == round_):
                return "no stage of a round helped" if round_ < self.settings.rounds else "all stages ran"
        return "all stages ran"

    def _run_stage(self, record: StageRecord) -> None:
        """Let a stage propose a candidate, evaluate it, and compare it with the incumbent."""
        folder, incumbent = self.path / record.folder, self.incumbent.folder
        if not (folder / PROPOSAL).exists():
            folder.mkdir(exist_ok=True)
            stage = Stage(self, record, folder, self.load(incumbent), self.path / incumbent)
            with self._reserve(len(self.splits.val)):
                candidate, found = getattr(stage, record.stage)()
            if candidate is not None:
                save(candidate, folder / PROGRAM)
            write_json(folder / PROPOSAL, found.model_dump(mode="json", exclude_none=True))
        proposal, verdict = read_file(Proposal, folder / PROPOSAL), {"why": "no candidate"}
        if (folder / PROGRAM).exists():
            self.measure(self.load(record.folder), VAL, folder / VAL, record.stage)
            verdict = judge(folder / VAL, self.path / incumbent / VAL, self.settings) | self._means(record.folder)
        self.stages.append(record.model_copy(update={"note": proposal.note, **verdict}))
        if proposal.spent is not None:
            raise BudgetSpent(proposal.spent)

    def _tested(self, best: str) -> TestRecord:
        """Start and best program on the test questions."""
        runs = [self.path / TEST / folder for folder in (START, best)]
        for out in dict.fromkeys(runs):
            self.measure(self.load(out.name), TEST, out, TEST)
        start, tuned = (self._scores(out) for out in runs)
        compared = compare(tuned, start, seed=self.settings.seed)
        return TestRecord(
            metric=self.metric.name,
            questions=len(self.splits.test),
            start=_score(start),
            best=_score(tuned),
            difference=Score(**compared.difference._asdict()),
            p=compared.p_permutation,
        )

    @property
    def incumbent(self) -> StageRecord:
        return next(record for record in reversed(self.stages) if record.kept)

    def load(self, folder: str) -> dspy.Module:
        """The program of a stage, with metered models. It is always read from its artifact, so that a run has the same
        programs before and after it is resumed."""
        program = load(self.path / folder / PROGRAM, program=self.start.deepcopy())
        self.budget.meter_program(program)
        return program

    def measure(self, program: dspy.Module, split: str, out: Path, stage: str) -> Path:
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
            manifest=RunManifest.of(program, questions, name=name),
            on_progress=lambda each: self.report(stage, each.done, each.questions, detail),
        )
        if not summary["counts"]["answered"]:
            raise PolyhopError(f"the program failed on all {detail}: {summary['failures'][0]['message']}")
        return out

    def report(self, stage: str, done: float, total: float | None, detail: str) -> None:
        self.on_progress(Progress(stage, done, total, detail, self.budget.spent))

    def _scores(self, run: Path) -> list[float]:
        return _column(run, self.metric.name)

    def _means(self, folder: str) -> dict[str, Any]:
        """What a `StageRecord` holds of an evaluation."""
        run, cost = self.path / folder / VAL, self.settings.cost
        failures = sum(record.error is not None for record in read_records(run))
        means = {"score": self._scores(run), **({"cost": _column(run, cost)} if cost else {})}
        return {"failures": failures, **{name: float(np.nanmean(column)) for name, column in means.items()}}

    def _reserve(self, questions: int) -> AbstractContextManager[None]:
        """Inside, the expected cost of so many questions is reserved, at the pace of the start."""
        costs = [record.costs for record in read_records(self.path / START / VAL)]
        calls = RESERVE * questions * sum(each.get("lm_calls", 0.0) for each in costs) / len(costs)
        parallel = self.settings.threads * (self.settings.workers or 1)
        seconds = RESERVE * questions * sum(each["seconds"] for each in costs) / len(costs) / parallel
        return self.budget.keeping_back(ceil(calls), calls * self.budget.usd_a_call, seconds)


# --- the stages ------------------------------------------------------------------------------------------------------

Proposed = tuple[dspy.Module | None, Proposal]


@dataclass(frozen=True)
class Stage:
    """A stage's folder, and the incumbent with its folder. Each method, by the name of the stage, tunes a copy of the
    incumbent on the training questions and proposes it."""

    run: Run
    record: StageRecord
    folder: Path
    program: dspy.Module
    incumbent: Path

    def exemplars(self) -> Proposed:
        """Add plans of the training questions to the exemplar memory, and tune how many it shows, and which.

        Plans are gold decompositions, and those of questions that the program answers correctly. Shown all of them, the
        program answers the training questions once more: the plans are kept that were shown where scores rose.
        """
        names = [name.removeprefix("self.") for name, _ in self.program.named_sub_modules(Exemplars)]
        if not names:
            return None, Proposal(note="the program has no exemplar memory")
        settings, before = self.run.settings, self._trained()
        gold, own = list(from_musique(self.run.splits.train)), list(from_run(before))
        every, program = self.program.deepcopy(), self.program.deepcopy()
        for _, part in every.named_sub_modules(Exemplars):
            part.memory = part.memory.joined([*gold, *own])
            part.count.value = max(part.count.value, 1)
            part.mode.value = "same complexity" if part.mode.value == "none" else part.mode.value
        shown = self.run.measure(every, TRAIN, self.folder / "shown", self.record.stage)
        added, gains = 0, effects(before, shown, settings.scored)
        for _, part in program.named_sub_modules(Exemplars):
            joined = part.memory.joined(useful([*gold, *own], gains, settings.exemplars))
            added, part.memory = added + len(joined) - len(part.memory), joined
        note = f"{added} plans added, of {len(gold)} gold and {len(own)} own ones"
        if not added:
            return None, Proposal(note=note)
        searched = {name for each in names for name in (f"{each}.count", f"{each}.mode")}
        searched -= {*matching(program, settings.freeze)}
        if not searched:
            return program, Proposal(note=f"{note}; their tunables are frozen")
        return self._search(program, note, EXEMPLAR_TRIALS, {*matching(program, ["*"])} - searched)

    def confidence(self) -> Proposed:
        """Fit alpha, minima and threshold to the judgements of the training questions."""
        if not any(True for _ in self.program.named_sub_modules(Confidence)):
            return None, Proposal(note="the program weighs no judgements")
        try:
            found = fit_runs([self._trained()])
        except PolyhopError as error:
            return None, Proposal(note=str(error))
        old, new = (100 * figures[None].error for figures in (found.before, found.after))
        note = f"{found.before[None].answers} judged answers, {old:.1f}% misjudged, {new:.1f}% with fitted values"
        if not found.helps:
            return None, Proposal(note=note)
        frozen = matching(self.program, self.run.settings.freeze)
        values = {name: value for name, value in found.values.items() if name not in frozen}
        return with_values(self.program, values), Proposal(note=note)

    def prompts(self) -> Proposed:
        """Run a prompt optimizer, on one half of the questions with the other half for validation."""
        from .prompts import optimize_prompts

        run, settings = self.run, self.run.settings
        first, second = divide(run.splits.train, (0.5, 0.5), self._seed)
        program = optimize_prompts(
            settings.optimizer,
            self.program,
            first,
            second,
            run.metric,
            auto=settings.auto,
            seed=self._seed,
            threads=settings.threads,
            prompt_model=run.budget.meter(run.prompt_model) if run.prompt_model else None,
            log=self.folder / "log.txt",
            on_call=lambda calls: run.report("prompts", calls, None, f"LM calls of {settings.optimizer}"),
        )
        return program, Proposal(note=f"{settings.optimizer}, {settings.auto}")

    def tunables(self) -> Proposed:
        settings = self.run.settings
        return self._search(self.program, f"{settings.trials} trials, {settings.sampler}", settings.trials)

    @property
    def _seed(self) -> int:
        return self.run.settings.seed + self.record.round - 1

    def _trained(self) -> Path:
        """The evaluation of the incumbent on the training questions, which later stages share."""
        return self.run.measure(self.program, TRAIN, self.incumbent / TRAIN, self.record.stage)

    def _search(self, program: dspy.Module, note: str, trials: int, frozen: Set[str] = frozenset()) -> Proposed:
        """Search the tunables of a program within the settings' limits."""
        run, settings = self.run, self.run.settings

        def on_trial(done: Sequence[TrialRecord]) -> None:
            best = max(each.score for each in done if not each.pruned)
            run.report(self.record.stage, len(done), trials, f"trials, best {100 * best:.1f}")

        search = TunableSearch(
            run.metric,
            trials=trials,
            sampler=settings.sampler,
            cost=settings.cost,
            freeze=[*settings.freeze, *frozen],
            ranges=settings.ranges,
            seed=self._seed,
            threads=settings.threads,
            storage=self.folder / "study.journal",
            on_trial=on_trial,
        )
        spent = None
        try:
            search.compile(program, valset=run.splits.train)
        except BudgetSpent as error:
            if search.result is None or len(search.result.trials) < 2:
                raise
            spent, note = str(error), f"{note}, ended by the budget after {len(search.result.trials)}"
        assert search.result is not None
        tuned = with_values(program, search.result.best.values)
        return tuned, Proposal(note=note, study=search.result, spent=spent)


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


def _column(run: Path, name: str) -> list[float]:
    """A score or a cost of each question of a run; NaN where a question has none."""
    return [float((record.scores | record.costs).get(name, nan)) for record in read_records(run)]


def _score(column: Sequence[float]) -> Score:
    return Score(**interval(column)._asdict())
