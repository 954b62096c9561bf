"""One optimization of a program's exemplars, prompts and tunables.

    summary = optimize(program, Splits(train, val, test), "runs/mine", OptimizationSettings(budget_calls=20_000))
    best = polyhop.load("runs/mine/best", retriever)

In each round, each stage tunes the incumbent on the training questions. Its candidate replaces the incumbent if a
paired test on the validation questions says that it is better, or as good and cheaper. A spent budget ends the run with
the incumbent; what the final measurement needs is reserved from the start.

A run that was interrupted or killed resumes with the same call, and ends with the same program: finished stages are not
repeated, a search continues with its next trial, and a prompt optimizer starts again with the replies in DSPy's cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any

import dspy

from ..data.errors import PolyhopError
from ..engines.budget import Budget, BudgetSpent, Spent
from ..eval.folder import SUMMARY, LockedFolder, RunError, account, write_json
from ..eval.gold import LookUp
from ..eval.metrics import Metric, find_metric
from ..eval.records import read_records
from ..eval.run import evaluate
from ..eval.settings import ProgramSettings, RunManifest
from ..eval.statistics import Interval, compare, interval
from .artifact import Provenance, Split, load, save
from .measure import COUNTED, Measured, measure
from .records import (
    BEST,
    CANDIDATE,
    PACE,
    PROPOSAL,
    STAGE_LINES,
    START,
    TEST,
    OptimizationManifest,
    OptimizationSummary,
    ProposalRecord,
    StageRecord,
    TestRecord,
)
from .settings import OptimizationSettings, Splits
from .stages import RUN_STAGE, StageInput, StageProgress, values_of
from .stopping import stoppable

RESERVE = 1.25
"""What is reserved for a measurement, as a multiple of its expected cost."""

COSTS = (*COUNTED, "tokens", "tokens_in", "tokens_out", "cost_usd", "seconds")


@dataclass(frozen=True)
class OptimizationProgress:
    """The stage that runs, its progress, and what was spent in all."""

    stage: str
    progress: StageProgress
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
    on_progress: Callable[[OptimizationProgress], None] = lambda progress: None,
) -> OptimizationSummary:
    """Tune a program. The same call resumes a run that was interrupted.

    Args:
        program: The program at the start, with its models; it is not changed.
        splits: The questions.
        out: The folder of the run; see `records`. The best program is in ``out/best``.
        prompt_model: Writes instructions, for optimizers that need one.
        sources: The files of the splits by name, for the record.
        look_up: Finds gold passages in the final measurement; see `polyhop.eval.run.evaluate`.

    Raises:
        RunError: the folder contains another run or other files, or is in use.
        PolyhopError: the settings do not fit the program or the questions, or every question fails.
        BudgetSpent: the budget does not allow to measure the program at the start.
    """
    settings = settings or OptimizationSettings()
    check_settings(settings, program, prompt_model)
    metric = metric_to_maximize(settings.metric)
    for name, questions in splits.named.items():
        if not any(map(metric.applies, questions)):
            raise PolyhopError(
                f"{metric.name} cannot be measured on the {name} questions, which have no gold evidence: choose "
                "another --metric, such as answer_f1"
            )
    manifest = OptimizationManifest.model_validate(
        {
            "settings": settings,
            "program": ProgramSettings.of(program, type(program).__name__).to_json(),
            "questions": {name: Split.of(name, part).hash for name, part in splits.named.items()},
        }
    )
    with ExitStack() as stack:
        folder = stack.enter_context(_RunFolder(Path(out), manifest, settings))
        stack.enter_context(stoppable(folder.path))
        limits = (settings.budget_calls, settings.budget_usd, settings.budget_minutes)
        budget = Budget(*limits, file=account(folder.path))
        stack.callback(budget.close)
        if dspy.settings.lm is not None:  # of predictors without a model of their own
            stack.enter_context(dspy.context(lm=budget.meter(dspy.settings.lm)))
        provenance = {
            "dataset": dataset,
            "splits": {name: Split.of((sources or {}).get(name, name), part) for name, part in splits.named.items()},
        }
        run = _Run(folder, program, splits, settings, metric, budget, prompt_model, provenance, look_up, on_progress)
        run.measure_start()
        try:
            ended = run.stages()
        except BudgetSpent as spent:
            ended = f"the budget ({spent}) allows no further stage; resume with a larger one"
        return run.finish(ended)


def check_settings(settings: OptimizationSettings, program: dspy.Module, prompt_model: dspy.LM | None = None) -> None:
    metric_to_maximize(settings.metric)
    if settings.cost not in (None, *COSTS):
        raise PolyhopError(f"no cost {settings.cost!r}: choose from {', '.join(COSTS)}")
    if "prompts" in settings.stages:
        from .prompts import check

        check(settings.optimizer, program, preset=settings.auto, prompt_model=prompt_model)
    values_of(settings.warm_start)  # raises if there are none
    if "tunables" in settings.stages:
        from .tunables.sampling import make_sampler
        from .tunables.space import SearchSpace

        space = SearchSpace.of(program, settings.freeze, settings.ranges)
        make_sampler(settings.sampler, space, settings.seed, cost=settings.cost is not None)
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if settings.cost not in (None, *COUNTED) and any(lm is not None and lm.cache for lm in models):
        raise PolyhopError(
            f"{settings.cost} is unknown for replies from DSPy's cache: use {', '.join(COUNTED)} as the cost, or "
            "models with cache=False"
        )


def metric_to_maximize(name: str) -> Metric:
    metric = find_metric(name)
    if not metric.maximize:
        raise PolyhopError(f"{name} cannot be optimized: lower values are better")
    return metric


class _RunFolder(LockedFolder):
    """The folder of a run, for this process alone; ``stages`` are those that have ended, the start first."""

    def __init__(self, path: Path, manifest: OptimizationManifest, settings: OptimizationSettings) -> None:
        self._changeable = settings.changeable()
        super().__init__(path, manifest.model_dump(mode="json"), STAGE_LINES, beside=("spent",))

    def _manifest(self) -> Mapping[str, Any]:
        before = super()._manifest()
        if "settings" not in before or "program" not in before or "stages" not in before["settings"]:
            raise RunError(f"{self.path} is the folder of another kind of run: choose another --out.")
        return {**before, "settings": before["settings"] | self._changeable}

    def _take_up(self) -> None:
        self._file.seek(0)
        try:
            self.stages = [StageRecord.model_validate_json(line) for line in self._file]
        except ValueError as error:
            raise RunError(f"{self.path / STAGE_LINES} is damaged: {error}.") from error

    def append(self, record: StageRecord) -> None:
        """A stage has ended; it is not repeated."""
        self._file.write(json.dumps(record.to_json(), allow_nan=False).encode() + b"\n")
        self.stages.append(record)

    @property
    def incumbent(self) -> StageRecord:
        return next(record for record in reversed(self.stages) if record.kept)


@dataclass
class _Run:
    folder: _RunFolder
    start: dspy.Module
    splits: Splits
    settings: OptimizationSettings
    metric: Metric
    budget: Budget
    prompt_model: dspy.LM | None
    origin: dict[str, Any]
    look_up: LookUp | None
    on_progress: Callable[[OptimizationProgress], None]

    def measure_start(self) -> None:
        """Measure the program at the start, which candidates are compared with."""
        folder = self.folder.path / START
        if not folder.exists():
            save(self.start, folder, provenance=self._provenance())
        if not self.folder.stages:
            began = monotonic()
            measured = self._measured(self._load(folder), START)
            pace = {"seconds_a_question": (monotonic() - began) / len(self.splits.val)}
            write_json(self.folder.path / PACE, pace)
            self.folder.append(StageRecord(n=0, round=0, stage="start", kept=True, **self._facts(measured)))

    def stages(self) -> str:
        """Run the stages that are left; returns why the run ends."""
        done, stages = len(self.folder.stages) - 1, self.settings.stages
        with self._reserve(2 * len(self.splits.test)):
            for round_ in range(1, self.settings.rounds + 1):
                for n, stage in enumerate(stages, (round_ - 1) * len(stages) + 1):
                    if n > done:
                        self._stage(n, round_, stage)
                if not any(record.kept for record in self.folder.stages if record.round == round_):
                    return "no stage of a round helped" if round_ < self.settings.rounds else "all stages ran"
        return "all stages ran"

    def _stage(self, n: int, round_: int, stage: Any) -> None:
        """Run a stage, compare its candidate with the incumbent, and record the verdict."""
        incumbent = self.folder.incumbent
        record = StageRecord(n=n, round=round_, stage=stage, kept=False)
        folder = self.folder.path / record.folder
        folder.mkdir(exist_ok=True)
        if not (folder / CANDIDATE).exists():
            with self._reserve(len(self.splits.val)):
                proposal = RUN_STAGE[stage](
                    StageInput(
                        program=self._load(self.folder.path / incumbent.artifact),
                        train=self.splits.train,
                        metric=self.metric,
                        settings=self.settings,
                        seed=self.settings.seed + round_ - 1,
                        folder=folder,
                        prompt_model=self.budget.meter(self.prompt_model) if self.prompt_model else None,
                        on_progress=lambda progress: self._report(stage, progress),
                    )
                )
            written = ProposalRecord(note=proposal.note, spent=proposal.spent, study=proposal.study)
            write_json(folder / PROPOSAL, written.to_json())
            if proposal.program is None:
                self.folder.append(record.model_copy(update={"why": "no candidate", "note": proposal.note}))
                return
            study = written.to_json().get("study")
            save(proposal.program, folder / CANDIDATE, provenance=self._provenance(study=study))
        measured = self._measured(self._load(folder / CANDIDATE), stage)
        before = Measured(dict(enumerate(incumbent.scores)), dict(enumerate(incumbent.costs)))
        verdict = judge(measured, before, self.settings)
        written = ProposalRecord.model_validate_json((folder / PROPOSAL).read_bytes())
        self.folder.append(record.model_copy(update={**verdict, **self._facts(measured), "note": written.note}))
        if written.spent is not None:
            raise BudgetSpent(written.spent)

    def finish(self, ended: str) -> OptimizationSummary:
        """Save the best program, measure it on the test questions, and write the summary."""
        best = self.folder.incumbent
        scores = {"val": {self.metric.name: interval(best.scores)}}
        self._save_best(best, scores)  # whatever happens to the final measurement
        test = None
        try:
            test = self._tested(list({record.folder: record for record in (self.folder.stages[0], best)}.values()))
            self._save_best(best, {**scores, "test": _intervals(test)})
        except BudgetSpent as spent:
            ended = f"{ended}; the budget ({spent}) did not allow the final measurement"
        stages = [record.model_copy(update={"scores": [], "costs": []}) for record in self.folder.stages]
        summary = OptimizationSummary.model_validate(
            {
                "ended": ended,
                "best": {"n": best.n, "stage": best.stage},
                "stages": stages,
                "test": test,
                "spent": asdict(self.budget.spent),
            }
        )
        write_json(self.folder.path / SUMMARY, summary.to_json())
        return summary

    def _tested(self, records: Sequence[StageRecord]) -> TestRecord:
        """Start and best program on the test questions. Each gets an evaluation run, for `polyhop compare`."""
        runs: dict[str, Any] = {}
        scores: list[list[float]] = []
        for record in records:
            program, folder = self._load(self.folder.path / record.artifact), self.folder.path / TEST / record.folder
            detail = f"test questions, {record.folder}"
            runs[record.folder] = evaluate(
                program,
                list(self.splits.test),
                folder,
                threads=self.settings.threads,
                executor=self.settings.executor,
                look_up=self.look_up,
                manifest=RunManifest.of(program, list(self.splits.test), name=record.folder),
                on_progress=lambda each, detail=detail: self._report(  # type: ignore[misc]
                    TEST, StageProgress(each.done, each.questions, detail)
                ),
            )
            scores.append([float(each.scores.get(self.metric.name, float("nan"))) for each in read_records(folder)])
        compared = compare(scores[-1], scores[0], seed=self.settings.seed)
        return TestRecord.model_validate(
            {
                "metric": self.metric.name,
                "start": interval(scores[0])._asdict(),
                "best": interval(scores[-1])._asdict(),
                "difference": compared.difference._asdict(),
                "p": compared.p_permutation,
                "runs": runs,
            }
        )

    # --- parts -------------------------------------------------------------------------------------------------------

    def _load(self, folder: Path) -> dspy.Module:
        """A saved program with metered models. A new candidate is loaded as well, so that a run has the same programs
        before and after it is resumed."""
        program = load(folder, program=self.start.deepcopy())
        self.budget.meter_program(program)
        return program

    def _save_best(self, best: StageRecord, scores: Mapping[str, Mapping[str, Interval]]) -> None:
        file = self.folder.path / best.folder / PROPOSAL
        study = json.loads(file.read_bytes()).get("study") if file.exists() else None
        program = self._load(self.folder.path / best.artifact)
        save(program, self.folder.path / BEST, provenance=self._provenance(scores=scores, study=study))

    def _provenance(self, **more: Any) -> Provenance:
        spent = self.budget.spent
        return Provenance(
            **self.origin,
            metric=self.metric.name,
            seed=self.settings.seed,
            spent={"lm_calls": spent.calls, "cost_usd": spent.usd, "minutes": spent.seconds / 60},
            settings={
                name: value
                for name, value in self.settings.model_dump(mode="json").items()
                if name not in self.settings.changeable()
            },
            **more,
        )

    def _measured(self, program: dspy.Module, stage: str) -> Measured:
        done = 0

        def on_score(number: int, score: float) -> bool:
            nonlocal done
            done += 1
            self._report(stage, StageProgress(done, len(self.splits.val), "validation questions"))
            return True

        found = measure(program, self.splits.val, self.metric, threads=self.settings.threads, on_score=on_score)
        if len(found.failures) == len(found.scores):
            failure = next(iter(found.failures.values()))
            raise PolyhopError(f"the program failed on every validation question: {failure}")
        return found

    def _facts(self, measured: Measured) -> dict[str, Any]:
        numbers = sorted(measured.scores)
        # Seconds differ between runs: they are recorded only if they are the cost.
        named = [name for name in COSTS if name != "seconds" or self.settings.cost == "seconds"]
        return {
            "score": measured.score,
            "failures": len(measured.failures),
            "scores": [measured.scores[n] for n in numbers],
            "costs": [{name: measured.costs[n][name] for name in named if name in measured.costs[n]} for n in numbers],
        }

    def _report(self, stage: str, progress: StageProgress) -> None:
        self.on_progress(OptimizationProgress(stage, progress, self.budget.spent))

    def _reserve(self, questions: int) -> AbstractContextManager[None]:
        """Inside, the expected cost of so many questions is reserved."""
        costs = self.folder.stages[0].costs
        calls = RESERVE * questions * sum(each.get("lm_calls", 0.0) for each in costs) / len(costs)
        pace = json.loads((self.folder.path / PACE).read_bytes())["seconds_a_question"]
        return self.budget.keeping_back(ceil(calls), calls * self.budget.usd_a_call, RESERVE * questions * pace)


def judge(new: Measured, old: Measured, settings: OptimizationSettings) -> dict[str, Any]:
    """The verdict on a candidate, as fields of a `StageRecord`.

    It is kept if its score is better with p < ``level``, or if its cost is lower with p < ``level`` and its score is
    not lower. A question that fails scores 0.
    """
    numbers, level = sorted(old.scores), settings.level
    scored = compare([new.scores[n] for n in numbers], [old.scores[n] for n in numbers], seed=settings.seed)
    gain, p = scored.difference.mean, scored.p_permutation
    better = gain > 0 and p < level
    if settings.cost is None:
        why = "better" if better else "not better" if gain <= 0 else "not significantly better"
        return {"kept": better, "why": why, "gain": gain, "p": p}
    costs = [[measured.costs[n].get(settings.cost, float("nan")) for n in numbers] for measured in (old, new)]
    saving = compare(*costs, seed=settings.seed)
    saved, p_cost = saving.difference.mean, saving.p_permutation
    cheaper = saved > 0 and p_cost < level and gain >= 0
    why = "better" if better else "cheaper and not worse" if cheaper else "neither better nor cheaper"
    found = {"cost": new.cost(settings.cost), "saved": saved, "p_cost": p_cost}
    return {"kept": better or cheaper, "why": why, "gain": gain, "p": p, **found}


def _intervals(test: TestRecord) -> dict[str, Interval]:
    """Of every metric of the best program."""
    run = list(test.runs.values())[-1]
    return {
        name: Interval(mean, *run.intervals[name])
        for name, mean in run.metrics.items()
        if mean is not None and name in run.intervals
    }
