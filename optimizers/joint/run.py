"""The joint run: stages propose, validation questions decide, and what was best is measured on questions nobody saw.

    summary = optimize(make, Splits(train, val, test), "runs/mine", plan=Plan(rounds=2), budget=Budget(calls=20_000))
    best = polyhop.load("runs/mine/best", retriever)

In every round every stage tunes the best program so far on the train questions. Its proposal takes that program's place
if a paired test on the validation questions says that it is better, or as good and cheaper (`verdict`). A spent budget
ends the run with the best program so far; what the last measurement needs is kept back from the beginning.

The run can be stopped at any moment, also by a kill, and goes on with the same call: stages that are over are not
played again, a search goes on with its next trial, and a prompt optimizer starts again with the replies that DSPy has
in its cache. It ends with the program it would have ended with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...engines.budget import Budget, BudgetSpent, Spent
from ...eval.folder import SUMMARY, account, write_json
from ...eval.gold import LookUp
from ...eval.settings import ProgramSettings
from ...eval.statistics import Interval, interval
from ..artifact import Provenance, Split, load, save
from ..measure import Measured, measure
from .checkpoint import BEST, CANDIDATE, START, Checkpoint, Line
from .checks import COSTS, check_plan, check_questions, metric_named
from .estimate import SPARE
from .final import intervals_of, measure_both
from .plan import Plan, Splits
from .stages import STAGES, Make, Report, Work
from .verdict import judge

TEST, PROPOSAL, PACE = "test", "proposal.json", "pace.json"


@dataclass(frozen=True)
class Told:
    """What a run says while it goes: which stage, how far it is, and what has been spent."""

    stage: str
    report: Report
    spent: Spent


@dataclass
class _Run:
    make: Make
    splits: Splits
    checkpoint: Checkpoint
    plan: Plan
    budget: Budget
    threads: int
    prompt_model: dspy.LM | None
    jobs: int
    sources: Mapping[str, Path | str]
    dataset: str | None
    look_up: LookUp | None
    on_told: Callable[[Told], None]

    def __post_init__(self) -> None:
        self.metric = metric_named(self.plan.metric)
        self.parts = {name: Split.of(self.sources.get(name, name), part) for name, part in self.splits.named.items()}

    # --- programs ----------------------------------------------------------------------------------------------------

    def program(self, folder: Path) -> dspy.Module:
        """A program that was put aside, with models on the account. Also of the start: what has been through a file
        is the same before and after a stop."""
        program = load(folder, program=self.make())
        self.budget.meter_program(program)
        return program

    def folder_of(self, line: Line) -> Path:
        folder = self.checkpoint.path / self._name(line)
        return folder if line["stage"] == START else folder / CANDIDATE

    def provenance(self, **more: Any) -> Provenance:
        spent = self.budget.spent
        return Provenance(
            dataset=self.dataset,
            splits=self.parts,
            metric=self.plan.metric,
            seed=self.plan.seed,
            spent={"lm_calls": spent.calls, "cost_usd": spent.usd, "minutes": spent.seconds / 60},
            settings=self.plan.to_record(),
            **more,
        )

    # --- measuring ---------------------------------------------------------------------------------------------------

    def measured(self, program: dspy.Module, stage: str) -> Measured:
        done = 0

        def told(number: int, score: float) -> bool:
            nonlocal done
            done += 1
            self.tell(stage, Report(done, len(self.splits.val), "validation questions"))
            return True

        found = measure(program, self.splits.val, self.metric, threads=self.threads, on_score=told)
        if len(found.failures) == len(found.scores):
            raise PolyhopError(
                f"the program failed on every validation question: {next(iter(found.failures.values()))}"
            )
        return found

    def tell(self, stage: str, report: Report) -> None:
        self.on_told(Told(stage, report, self.budget.spent))

    # --- stages ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Measure the program as it is: what all proposals are compared with."""
        folder = self.checkpoint.path / START
        if not folder.exists():
            save(self.make(), folder, provenance=self.provenance())
        if not self.checkpoint.lines:
            began = monotonic()
            measured = self.measured(self.program(folder), START)
            write_json(
                self.checkpoint.path / PACE, {"seconds_a_question": (monotonic() - began) / len(self.splits.val)}
            )
            self.checkpoint.append({"n": 0, "round": 0, "stage": START, "kept": True, **self._record(measured)})

    def play(self, n: int, round_: int, stage: str) -> None:
        """Play a stage, judge what it proposes, and write that down.

        Raises:
            BudgetSpent: also after the verdict, if the budget has cut the stage short.
        """
        best = self.checkpoint.kept
        line: Line = {"n": n, "round": round_, "stage": stage, "kept": False}
        folder = _made(self.checkpoint.path / self._name(line))
        if not (folder / CANDIDATE).exists():
            with self._keeping_back(len(self.splits.val)):
                proposal = STAGES[stage](self._work(folder, self.folder_of(best), round_, stage))
            told = {"note": proposal.note, "spent": proposal.spent, "study": proposal.study}
            write_json(folder / PROPOSAL, told)
            if proposal.program is None:
                self.checkpoint.append({**line, "why": "nothing to propose", "note": proposal.note})
                return
            save(proposal.program, folder / CANDIDATE, provenance=self.provenance(study=proposal.study))
        measured = self.measured(self.program(folder / CANDIDATE), stage)
        verdict = judge(measured, _measured(best), cost=self.plan.cost, level=self.plan.level, seed=self.plan.seed)
        told = json.loads((folder / PROPOSAL).read_bytes())
        self.checkpoint.append({**line, **verdict.to_record(), "note": told["note"], **self._record(measured)})
        if told["spent"] is not None:
            raise BudgetSpent(told["spent"])

    def _work(self, folder: Path, best: Path, round_: int, stage: str) -> Work:
        return Work(
            program=self.program(best),
            train=self.splits.train,
            metric=self.metric,
            plan=self.plan,
            seed=self.plan.seed + round_ - 1,
            folder=folder,
            threads=self.threads,
            prompt_model=self.budget.meter(self.prompt_model) if self.prompt_model else None,
            jobs=self.jobs,
            budget=self.budget,
            on_report=lambda report: self.tell(stage, report),
        )

    def _keeping_back(self, questions: int) -> AbstractContextManager[None]:
        """Inside, what so many questions should cost stays in the account."""
        costs: list[dict[str, float]] = self.checkpoint.lines[0]["costs"]
        calls = SPARE * questions * sum(each.get("lm_calls", 0.0) for each in costs) / len(costs)
        seconds = SPARE * questions * json.loads((self.checkpoint.path / PACE).read_bytes())["seconds_a_question"]
        return self.budget.keeping_back(ceil(calls), calls * self.budget.usd_a_call, seconds)

    def stages(self) -> str:
        """Play what is left; returns why that is the end."""
        with self._keeping_back(2 * len(self.splits.test)):
            return self._stages(len(self.checkpoint.lines) - 1)

    def _stages(self, played: int) -> str:
        for round_ in range(1, self.plan.rounds + 1):
            for place, stage in enumerate(self.plan.stages):
                n = (round_ - 1) * len(self.plan.stages) + place + 1
                if n > played:
                    self.play(n, round_, stage)
            of_round = [line for line in self.checkpoint.lines if line["round"] == round_]
            if not any(line["kept"] for line in of_round):
                return "no stage of a round helped" if round_ < self.plan.rounds else "all stages are played"
        return "all stages are played"

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self, ended: str) -> dict[str, Any]:
        """Put the result into its place, measure it on the test questions, and sum up."""
        path, best = self.checkpoint.path, self.checkpoint.kept
        programs = {START: self.folder_of(self.checkpoint.lines[0]), self._name(best): self.folder_of(best)}
        scores = {"val": {self.plan.metric: interval(best["scores"])}}
        self._put(best, scores)  # whatever may happen to the last measurement
        test: dict[str, Any] | None = None
        try:
            test = measure_both(
                {name: partial(self.program, folder) for name, folder in programs.items()},
                list(self.splits.test),
                self.plan.metric,
                path / TEST,
                threads=self.threads,
                look_up=self.look_up,
                seed=self.plan.seed,
                on_progress=lambda name, progress: self.tell(
                    TEST, Report(progress.done, progress.questions, f"test questions, {name}")
                ),
            )
            self._put(best, {**scores, "test": intervals_of(test)})
        except BudgetSpent as spent:
            ended = f"{ended}; the budget ({spent}) did not suffice for the test questions"
        summary = {
            "ended": ended,
            "best": {"n": best["n"], "stage": best["stage"]},
            "stages": [
                {key: value for key, value in line.items() if key not in ("scores", "costs")}
                for line in self.checkpoint.lines
            ],
            "test": test,
            "spent": asdict(self.budget.spent),
        }
        write_json(path / SUMMARY, summary)
        return summary

    def _put(self, best: Line, scores: Mapping[str, Mapping[str, Interval]]) -> None:
        provenance = self.provenance(scores=scores, study=self._study(best))
        save(self.program(self.folder_of(best)), self.checkpoint.path / BEST, provenance=provenance)

    def _name(self, line: Line) -> str:
        """Of a stage, unlike that of any other of the run."""
        return START if line["stage"] == START else f"{line['n']}-{line['stage']}"

    def _study(self, best: Line) -> Mapping[str, Any] | None:
        proposal = self.checkpoint.path / self._name(best) / PROPOSAL
        study: Mapping[str, Any] | None = json.loads(proposal.read_bytes())["study"] if proposal.exists() else None
        return study

    def _record(self, measured: Measured) -> dict[str, Any]:
        numbers = sorted(measured.scores)
        # How long a question took is another number each time: only who asks for it gets it.
        named = [name for name in COSTS if name != "seconds" or self.plan.cost == "seconds"]
        costs = [{name: measured.costs[n][name] for name in named if name in measured.costs[n]} for n in numbers]
        return {
            "score": measured.score,
            "failures": len(measured.failures),
            "scores": [measured.scores[n] for n in numbers],
            "costs": costs,
        }


def optimize(
    make: Make,
    splits: Splits,
    out: Path | str,
    *,
    plan: Plan | None = None,
    budget: Budget | None = None,
    threads: int = 1,
    prompt_model: dspy.LM | None = None,
    jobs: int = 1,
    sources: Mapping[str, Path | str] | None = None,
    dataset: str | None = None,
    look_up: LookUp | None = None,
    on_told: Callable[[Told], None] = lambda told: None,
) -> dict[str, Any]:
    """Tune a program and return the summary; started again with the same arguments and ``out``, it continues.

    Args:
        make: Makes the program at its start, with a model for each of its agents.
        splits: The questions.
        out: The folder of the run; see `checkpoint`.
        plan: What to do; all stages once by default.
        budget: What may be spent; its file is put into the folder if it has none.
        threads: Questions asked at the same time.
        prompt_model: Writes instructions, for optimizers that need one.
        jobs: Processes of a search over tunables.
        sources: The files of the splits by their names, for the record.
        look_up: Where gold passages are looked up in the last measurement; see `polyhop.eval.run.evaluate`.
        on_told: Told how the run is going.

    Raises:
        RunError: the folder holds another run or something else, or is in use.
        PolyhopError: nothing can be measured, or a stage cannot be played as planned.
        BudgetSpent: the budget does not suffice to measure the program at its start.
    """
    plan = plan or Plan()
    path = Path(out)
    program = make()
    check_plan(plan, program, prompt_model)
    check_questions(plan, splits)
    manifest = {
        "plan": plan.to_record(),
        "program": ProgramSettings.of(program, type(program).__name__).to_json(),
        "questions": {name: Split.of(name, part).hash for name, part in splits.named.items()},
    }
    with ExitStack() as stack:
        checkpoint = stack.enter_context(Checkpoint(path, manifest))
        if budget is None or budget.file is None:
            limits = (budget.calls, budget.usd, budget.minutes) if budget else (None, None, None)
            budget = Budget(*limits, file=account(path))
        stack.callback(budget.close)
        if dspy.settings.lm is not None:  # of agents that have no model of their own
            stack.enter_context(dspy.context(lm=budget.meter(dspy.settings.lm)))
        resources = (threads, prompt_model, jobs, sources or {}, dataset, look_up, on_told)
        run = _Run(make, splits, checkpoint, plan, budget, *resources)
        run.start()
        try:
            ended = run.stages()
        except BudgetSpent as spent:
            ended = f"the budget ({spent}) allows no further stage; the same run with a larger one goes on"
        return run.finish(ended)


def _measured(line: Line) -> Measured:
    return Measured(dict(enumerate(line["scores"])), dict(enumerate(line["costs"])))


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
