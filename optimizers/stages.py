"""The stages of an optimization by name: each proposes a tuned copy of a program, or says why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import dspy

from ..engines.budget import BudgetSpent
from ..eval.metrics import find_metric
from ..programs.exemplars import Exemplars
from ..programs.tunable import tunables as tunables_of
from .artifact import dump
from .exemplars import at_most, from_musique, from_run, successes, with_demos
from .prompts import optimize_prompts
from .settings import OptimizationSettings, divide
from .tunables import HEADROOM, StudyResult, TrialRecord, TunableSearch, matching

EXEMPLAR_TRIALS = 16  # of how many exemplars to show, and which
DEMO_SETS = 8  # of the agents, to choose from


@dataclass(frozen=True)
class Context:
    """What a stage works with. ``evaluate`` evaluates the program on the training questions, and returns the folder of
    the run; ``folder`` is the stage's own; ``report`` is told what is done, of how much, and what it is."""

    settings: OptimizationSettings
    train: Sequence[dspy.Example]
    seed: int
    folder: Path
    prompt_model: dspy.LM | None
    evaluate: Callable[[dspy.Module], Path]
    report: Callable[[float, float | None, str], None]


class Proposal(NamedTuple):
    """The candidate of a stage (None if there is none), what to say of it, the search that found it, and the budget
    that ended the search."""

    program: dspy.Module | None
    note: str
    study: StudyResult | None = None
    spent: str | None = None


def exemplars(program: dspy.Module, context: Context) -> Proposal:
    """Add plans to the exemplar memory, gold ones and those of correct answers; then search how many it shows, which,
    and demos of the agents from runs that ended right."""
    settings, notes, start = context.settings, list[str](), dump(program)
    parts = {name.removeprefix("self."): part for name, part in program.named_sub_modules(Exemplars)}
    successful = list(from_run(context.evaluate(program))) if parts else []
    context.report(0, None, "training questions, for demos")
    runs = successes(program, context.train, find_metric(settings.metric), settings.threads)  # as evaluated: cached
    if parts:
        added, gold = 0, list(from_musique(context.train))
        for part in parts.values():
            joined = part.memory.joined(at_most(settings.exemplars, [*gold, *successful]))
            added += len(joined) - len(part.memory)
            part.memory = joined
        notes.append(f"{added} plans added, of {len(gold)} gold and {len(successful)} own ones")
    variants = with_demos(program, runs, DEMO_SETS, context.seed) if runs else []
    notes.append(f"{len(variants)} sets of demos from {len(runs)} runs that ended right")
    searched = {f"{name}.{tunable}" for name in parts for tunable in ("count", "mode")}
    frozen = {*matching(program, ["*"])} - searched if tunables_of(program) else set()
    if not variants and not searched - {*matching(program, settings.freeze)}:
        return Proposal(None if dump(program) == start else program, "; ".join(notes))
    proposal = _search(program, context, "; ".join(notes), EXEMPLAR_TRIALS, frozen, variants)
    return proposal._replace(program=None) if dump(proposal.program) == start else proposal


def prompts(program: dspy.Module, context: Context) -> Proposal:
    """Run a prompt optimizer, on one half of the questions with the other half for validation."""
    settings = context.settings
    context.report(0, None, settings.optimizer)
    first, second = divide(context.train, (0.5, 0.5), context.seed)
    tuned = optimize_prompts(
        settings.optimizer,
        program,
        first,
        second,
        find_metric(settings.metric),
        auto=settings.auto,
        seed=context.seed,
        threads=settings.threads,
        prompt_model=context.prompt_model,
        log=context.folder / "log.txt",
    )
    note = f"{settings.optimizer}, {settings.auto}"
    return Proposal(None, f"{note}: nothing changed") if dump(tuned) == dump(program) else Proposal(tuned, note)


def tunables(program: dspy.Module, context: Context) -> Proposal:
    """Search the tunables that are not frozen."""
    trials = context.settings.trials
    return _search(program, context, f"{trials} trials", trials)


def _search(
    program: dspy.Module,
    context: Context,
    note: str,
    trials: int,
    frozen: Set[str] = frozenset(),
    variants: Sequence[dspy.Module] = (),
) -> Proposal:
    settings, metric = context.settings, find_metric(context.settings.metric)

    def on_trial(done: Sequence[TrialRecord]) -> None:
        best = max(trial.score for trial in done if not trial.pruned)
        context.report(len(done), trials, f"trials, best {metric.text(best)}")

    search = TunableSearch(
        metric,
        trials=trials,
        cost=settings.cost,
        variants=variants,
        freeze=[*settings.freeze, *frozen],
        ranges=settings.ranges,
        seed=context.seed,
        threads=settings.threads,
        storage=context.folder / "study.journal",
        on_trial=on_trial,
    )
    spent = None
    try:
        tuned = search.compile(program, valset=context.train)
    except BudgetSpent as error:
        if search.result is None or len(search.result.trials) < 2:
            raise
        tuned = search.program(program, search.result.best.values)
        spent, note = str(error), f"{note}, ended by the budget after {len(search.result.trials)}"
    assert search.result is not None
    if not search.result.headroom:
        note += f", ended after {len(search.result.trials)}: none gained {100 * HEADROOM:g} points"
    return Proposal(tuned, note, search.result, spent)


STAGES: dict[str, Callable[[dspy.Module, Context], Proposal]] = {
    "exemplars": exemplars,
    "prompts": prompts,
    "tunables": tunables,
}
