"""The stages of an optimization: each tunes the incumbent on the training questions and proposes a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dspy

from ..data.errors import PolyhopError
from ..engines.budget import BudgetSpent
from ..programs.confidence import Confidence
from ..programs.exemplars import Exemplars
from .confidence import fit_runs
from .exemplars import effects, from_musique, from_run, useful
from .records import TRAIN, Proposal, StageRecord, values_of
from .settings import divide
from .tunables import TunableSearch, matching, with_values

if TYPE_CHECKING:
    from .optimize import Run

EXEMPLAR_TRIALS = 16  # of how many exemplars to show, and which


@dataclass(frozen=True)
class Stage:
    """The incumbent, which a stage does not change, its folder, and a folder of the stage's own."""

    run: Run
    record: StageRecord
    folder: Path
    program: dspy.Module
    incumbent: str

    @property
    def seed(self) -> int:
        return self.run.settings.seed + self.record.round - 1

    def report(self, done: float, total: float | None, detail: str) -> None:
        self.run.report(self.record.stage, done, total, detail)

    def trained(self) -> Path:
        """The evaluation of the incumbent on the training questions, which later stages share."""
        return self.measured(self.program, self.run.path / self.incumbent / TRAIN)

    def measured(self, program: dspy.Module, out: Path) -> Path:
        self.run.measure(program, self.run.splits.train, out, self.record.stage, f"training questions, {out.name}")
        return out


def _exemplars(stage: Stage) -> tuple[dspy.Module | None, Proposal]:
    """Add plans of the training questions to the exemplar memory, and tune how many it shows, and which.

    Plans are gold decompositions, and those of questions that the program answers correctly. Shown all of them, the
    program answers the training questions once more: the plans are kept that were shown where scores rose.
    """
    names = [name.removeprefix("self.") for name, _ in stage.program.named_sub_modules(Exemplars)]
    if not names:
        return None, Proposal(candidate=False, note="the program has no exemplar memory")
    settings, before = stage.run.settings, stage.trained()
    gold, own = list(from_musique(stage.run.splits.train)), list(from_run(before))
    every, program = stage.program.deepcopy(), stage.program.deepcopy()
    for _, part in every.named_sub_modules(Exemplars):
        part.memory = part.memory.joined([*gold, *own])
        part.count.value = max(part.count.value, 1)
        part.mode.value = "same complexity" if part.mode.value == "none" else part.mode.value
    added, gains = 0, effects(before, stage.measured(every, stage.folder / "shown"), settings.scored)
    for _, part in program.named_sub_modules(Exemplars):
        joined = part.memory.joined(useful([*gold, *own], gains, settings.exemplars))
        added, part.memory = added + len(joined) - len(part.memory), joined
    note = f"{added} plans added, of {len(gold)} gold and {len(own)} own ones"
    if not added:
        return None, Proposal(candidate=False, note=note)
    frozen = matching(program, settings.freeze)
    searched = [name for each in names for name in (f"{each}.count", f"{each}.mode") if name not in frozen]
    if not searched:
        return program, Proposal(candidate=True, note=f"{note}; their tunables are frozen")
    return _search(stage, program, note, EXEMPLAR_TRIALS, searched)


def _confidence(stage: Stage) -> tuple[dspy.Module | None, Proposal]:
    """Fit alpha, minima and threshold to the judgements of the training questions."""
    if not any(True for _ in stage.program.named_sub_modules(Confidence)):
        return None, Proposal(candidate=False, note="the program weighs no judgements")
    try:
        found = fit_runs([stage.trained()])
    except PolyhopError as error:
        return None, Proposal(candidate=False, note=str(error))
    old, new = found.before[None], found.after[None]
    note = f"{old.answers} judged answers, {100 * old.error:.1f}% misjudged, {100 * new.error:.1f}% with fitted values"
    if not found.helps:
        return None, Proposal(candidate=False, note=note)
    frozen = matching(stage.program, stage.run.settings.freeze)
    values = {name: value for name, value in found.values.items() if name not in frozen}
    return with_values(stage.program, values), Proposal(candidate=True, note=note)


def _prompts(stage: Stage) -> tuple[dspy.Module | None, Proposal]:
    """Run a prompt optimizer, on one half of the questions with the other half for validation."""
    from .prompts import optimize_prompts

    run, settings = stage.run, stage.run.settings
    first, second = divide(run.splits.train, (0.5, 0.5), stage.seed)
    program = optimize_prompts(
        settings.optimizer,
        stage.program,
        first,
        second,
        run.metric,
        auto=settings.auto,
        seed=stage.seed,
        threads=settings.threads,
        prompt_model=run.budget.meter(run.prompt_model) if run.prompt_model else None,
        log=stage.folder / "log.txt",
        on_call=lambda calls: stage.report(calls, None, f"LM calls of {settings.optimizer}"),
    )
    return program, Proposal(candidate=True, note=f"{settings.optimizer}, {settings.auto}")


def _tunables(stage: Stage) -> tuple[dspy.Module | None, Proposal]:
    settings = stage.run.settings
    return _search(stage, stage.program, f"{settings.trials} trials, {settings.sampler}", settings.trials)


PROPOSE: dict[str, Callable[[Stage], tuple[dspy.Module | None, Proposal]]] = {
    "exemplars": _exemplars,
    "confidence": _confidence,
    "prompts": _prompts,
    "tunables": _tunables,
}


def _search(
    stage: Stage, program: dspy.Module, note: str, trials: int, only: Sequence[str] = ()
) -> tuple[dspy.Module, Proposal]:
    """Search the tunables of a program, or ``only`` some of them, within the settings' limits."""
    run, settings = stage.run, stage.run.settings
    named = {name: each for pattern, each in settings.ranges.items() for name in matching(program, [pattern])}
    every = matching(program, ["*"]) if only else []
    search = TunableSearch(
        run.metric,
        trials=trials,
        sampler=settings.sampler,
        cost=settings.cost,
        freeze=[name for name in every if name not in only] or settings.freeze,
        ranges={name: each for name, each in named.items() if name in only} if only else settings.ranges,
        start=values_of(settings.warm_start),
        seed=stage.seed,
        threads=settings.threads,
        storage=stage.folder / "study.journal",
        on_trial=lambda done: stage.report(
            len(done), trials, f"trials, best {100 * max(each.score for each in done if not each.pruned):.1f}"
        ),
    )
    spent = None
    try:
        search.compile(program, valset=run.splits.train)
    except BudgetSpent as error:
        if search.result is None or len(search.result.trials) < 2:
            raise
        spent, note = str(error), f"{note}, ended by the budget after {len(search.result.trials)}"
    return search.tuned(program), Proposal(candidate=True, note=note, study=search.result, spent=spent)
