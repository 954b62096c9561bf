"""The stages of a joint run: each takes the best program so far and train questions, and proposes another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy

from ...engines.budget import Budget, BudgetSpent
from ...eval.metrics import Metric
from ...eval.official.files import replacing
from ...programs.exemplars import ExemplarMemory, Exemplars
from .plan import Plan, divide

if TYPE_CHECKING:
    from ..tunables import StudyResult

Make = Callable[[], dspy.Module]

EXEMPLAR_TRIALS = 16  # of how many to show, and which


@dataclass(frozen=True)
class Report:
    """How a stage is going: ``done`` of ``total`` of what it does, and a word about it."""

    done: float
    total: float | None
    detail: str


@dataclass(frozen=True)
class Work:
    """What a stage works with.

    Attributes:
        program: The best program so far, which a stage leaves as it is.
        train: Its questions.
        seed: Another one in every round.
        folder: Its own.
        jobs: Processes of a search over tunables.
        budget: Of the program's models.
    """

    program: dspy.Module
    train: Sequence[dspy.Example]
    metric: Metric
    plan: Plan
    seed: int
    folder: Path
    threads: int = 1
    prompt_model: dspy.LM | None = None
    jobs: int = 1
    budget: Budget | None = None
    on_report: Callable[[Report], None] = lambda report: None


@dataclass(frozen=True)
class Proposal:
    """What a stage comes to.

    Attributes:
        program: The program to judge; None if there is nothing to propose.
        note: What was done, in a few words.
        study: The summary of a search.
        spent: What part of the budget was spent before the stage was over, if it was: the proposal is the best so far.
    """

    program: dspy.Module | None
    note: str
    study: Mapping[str, Any] | None = field(default=None, repr=False)
    spent: str | None = None


def tune_exemplars(work: Work) -> Proposal:
    """Fill the memory with plans of the train questions, and choose how many to show, and which.

    The plans are gold decompositions where the benchmark has them, and those of questions that the program answers
    right. What it had in its memory stays there.
    """
    from ..exemplars import collect, from_musique, limited

    names = [name.removeprefix("self.") for name, _ in work.program.named_sub_modules(Exemplars)]
    if not names:
        return Proposal(None, "it has no exemplar memory")
    gold = list(from_musique(example for example in work.train if example.get("sub_questions")))
    solved = collect(
        work.program,
        list(work.train),
        work.folder / "collected",
        threads=work.threads,
        on_progress=lambda progress: work.on_report(Report(progress.done, progress.questions, "collecting plans")),
    )
    found = limited([*gold, *solved], work.plan.exemplars)
    program = work.program.deepcopy()
    memories = [part for _, part in program.named_sub_modules(Exemplars)]
    added = 0
    for part in memories:
        before = part.memory.exemplars
        merged = limited([*before, *found], None)
        added += len(merged) - len(before)
        part.memory = ExemplarMemory(merged)
    note = f"{added} plans added, {len(gold)} gold and {len(solved)} of its own were found"
    if not added:
        return Proposal(None, note)
    chosen = [f"{name}.{what}" for name in names for what in ("count", "mode")]
    return _search(work, program, note, "exemplars", EXEMPLAR_TRIALS, only=chosen)


def tune_prompts(work: Work) -> Proposal:
    """Have one of DSPy's optimizers write instructions or choose demos, on one half of the questions for another."""
    from ..prompts import optimize_prompts

    plan = work.plan
    first, second = divide(work.train, (0.5, 0.5), work.seed)
    program = optimize_prompts(
        plan.optimizer,
        work.program,
        first,
        second,
        work.metric,
        preset=plan.preset,
        seed=work.seed,
        threads=work.threads,
        prompt_model=work.prompt_model,
        log_dir=work.folder / "log",
        on_progress=lambda calls: work.on_report(Report(calls, None, f"LM calls of {plan.optimizer}")),
    )
    return Proposal(program, f"{plan.optimizer}, {plan.preset}")


def tune_tunables(work: Work) -> Proposal:
    """Search the tunables on the train questions."""
    plan = work.plan
    note = f"{plan.trials} trials, {plan.sampler}"
    return _search(work, work.program, note, "tunables", plan.trials)


STAGES: dict[str, Callable[[Work], Proposal]] = {
    "exemplars": tune_exemplars,
    "prompts": tune_prompts,
    "tunables": tune_tunables,
}


def _search(
    work: Work, program: dspy.Module, note: str, name: str, trials: int, *, only: Sequence[str] = ()
) -> Proposal:
    """Search the tunables of a program, or ``only`` some of them, as far as the plan lets them move."""
    from ..tunables import TrialProgress, TunableSearch
    from ..tunables.space import matching

    freeze, ranges = work.plan.freeze, work.plan.ranges
    if only:
        searched = [each for each in only if each not in matching(program, freeze)]
        if not searched:
            return Proposal(program, f"{note}; what could be searched is frozen")
        freeze = tuple(each for each in matching(program, ["*"]) if each not in searched)
        fitting = [(each, range_) for pattern, range_ in ranges.items() for each in matching(program, [pattern])]
        ranges = {each: range_ for each, range_ in fitting if each in searched}

    def told(progress: TrialProgress) -> None:
        best = "" if progress.best is None else f", best {100 * progress.best:.1f}"
        work.on_report(Report(progress.done, progress.trials, f"trials{best}"))

    search = TunableSearch(
        metric=work.metric,
        trials=trials,
        sampler=work.plan.sampler,
        cost=work.plan.cost,
        freeze=freeze,
        ranges=ranges,
        seed=work.seed,
        threads=work.threads,
        jobs=work.jobs,
        storage=work.folder / f"{name}.journal",
        budget=work.budget,
        on_trial=told,
    )
    spent = None
    try:
        search.compile(program, valset=work.train)
    except BudgetSpent as error:
        ended = search.result.trials if search.result else []
        if not any(trial.number and trial.state == "complete" for trial in ended):
            raise
        spent, note = str(error), f"{note}, cut short after {len(ended)}"
    assert search.result is not None
    _draw(search.result, work)
    return Proposal(search.tuned(program), note, search.result.model_dump(mode="json"), spent)


def _draw(result: StudyResult, work: Work) -> None:
    """Figures of a search."""
    from ...eval.charts import standalone
    from ..tunables import plots

    drawn = {
        "history": plots.history(result.trials),
        "front": plots.front(result, work.plan.cost or "lm_calls"),
        "importances": plots.importances(result),
    }
    for name, picture in drawn.items():
        with replacing(work.folder / f"{name}.svg") as file:
            file.write(standalone(picture))
