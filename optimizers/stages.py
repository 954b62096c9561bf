"""The stages of an optimization: each tunes the incumbent on the training questions and proposes a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path

import dspy

from ..data.errors import PolyhopError
from ..engines.budget import BudgetSpent
from ..eval.charts import standalone
from ..eval.metrics import Metric
from ..eval.official.files import replacing
from ..programs.complexity import estimate_complexity
from ..programs.exemplars import ExemplarMemory, Exemplars
from .settings import OptimizationSettings, divide
from .tunables import StudyResult, TrialProgress, TunableSearch, plots
from .tunables.space import Values, matching

EXEMPLAR_TRIALS = 16  # of how many exemplars to show, and which


@dataclass(frozen=True)
class StageProgress:
    """``done`` of ``total`` units of work, and what they are."""

    done: float
    total: float | None
    detail: str


@dataclass(frozen=True)
class StageInput:
    """The arguments of a stage: the incumbent, which it does not change, the training questions, and a folder of its
    own.
    """

    program: dspy.Module
    train: Sequence[dspy.Example]
    metric: Metric
    settings: OptimizationSettings
    seed: int
    folder: Path
    prompt_model: dspy.LM | None
    on_progress: Callable[[StageProgress], None]


@dataclass(frozen=True)
class Proposal:
    """The candidate of a stage, if there is one, and a note; ``spent`` is the budget that ended the stage early, with
    the best candidate so far.
    """

    program: dspy.Module | None
    note: str
    study: StudyResult | None = None
    spent: str | None = None


def tune_exemplars(stage: StageInput) -> Proposal:
    """Add plans of the training questions to the exemplar memory, and tune which it shows, and how many for each number
    of hops.

    Plans are gold decompositions, and those of questions that the program answers correctly.
    """
    from .exemplars import collect, from_musique, limited

    names = [name.removeprefix("self.") for name, _ in stage.program.named_sub_modules(Exemplars)]
    if not names:
        return Proposal(None, "the program has no exemplar memory")
    gold = list(from_musique(example for example in stage.train if example.get("sub_questions")))
    solved = collect(
        stage.program,
        list(stage.train),
        stage.folder / "collected",
        threads=stage.settings.threads,
        executor=stage.settings.executor,
        on_progress=lambda each: stage.on_progress(StageProgress(each.done, each.questions, "collecting plans")),
    )
    found = limited([*gold, *solved], stage.settings.exemplars)
    program = stage.program.deepcopy()
    added = 0
    for _, part in program.named_sub_modules(Exemplars):
        before = part.memory.exemplars
        merged = limited([*before, *found], None)
        added += len(merged) - len(before)
        part.memory = ExemplarMemory(merged)
    note = f"{added} plans added, from {len(gold)} gold and {len(solved)} own ones"
    if not added:
        return Proposal(None, note)
    shown = [f"{name}.{what}" for name in names for what in ("count", "mode")]
    proposal = _search(stage, program, note, "exemplars", EXEMPLAR_TRIALS, only=shown)
    if proposal.study is None or proposal.program is None:
        return proposal
    for path, part in proposal.program.named_sub_modules(Exemplars):
        name = path.removeprefix("self.")
        part.memory.most = _most_by_hops(stage, proposal.program, name, proposal.study)
        note = f"{note}; {name} by hops: " + ", ".join(f"{hops}: {most}" for hops, most in part.memory.most.items())
    return replace(proposal, note=note)


def _most_by_hops(stage: StageInput, program: dspy.Module, name: str, study: StudyResult) -> dict[int, int]:
    """The number of exemplars for each number of hops that scored best on the questions with these hops, the smallest
    of equal ones. Trials tell, because exemplars for one number of hops do not reach questions of another.
    """
    estimate, values = getattr(program, "estimator", estimate_complexity), study.best.values
    if f"{name}.count" not in values:
        return {}
    numbers: dict[int, list[int]] = {}
    for n, example in enumerate(stage.train):
        numbers.setdefault(estimate(example.question).hops, []).append(n)
    tried: dict[int, Mapping[int, float]] = {}
    for trial in (trial for trial in study.trials if trial.state == "complete"):
        mode = trial.values.get(f"{name}.mode", "")
        count = 0 if mode == "none" else trial.values[f"{name}.count"]
        if count == 0 or mode == values.get(f"{name}.mode", ""):
            tried[count] = trial.scores
    return {
        hops: max(sorted(tried), key=lambda count: fsum(tried[count][n] for n in asked))
        for hops, asked in sorted(numbers.items())
    }


def tune_prompts(stage: StageInput) -> Proposal:
    """Run a prompt optimizer, on one half of the questions with the other half for validation."""
    from .prompts import optimize_prompts

    settings = stage.settings
    first, second = divide(stage.train, (0.5, 0.5), stage.seed)
    program = optimize_prompts(
        settings.optimizer,
        stage.program,
        first,
        second,
        stage.metric,
        preset=settings.auto,
        seed=stage.seed,
        threads=settings.threads,
        prompt_model=stage.prompt_model,
        log_dir=stage.folder / "log",
        on_progress=lambda calls: stage.on_progress(StageProgress(calls, None, f"LM calls of {settings.optimizer}")),
    )
    return Proposal(program, f"{settings.optimizer}, {settings.auto}")


def tune_tunables(stage: StageInput) -> Proposal:
    settings = stage.settings
    note = f"{settings.trials} trials, {settings.sampler}"
    return _search(stage, stage.program, note, "tunables", settings.trials)


RUN_STAGE: dict[str, Callable[[StageInput], Proposal]] = {
    "exemplars": tune_exemplars,
    "prompts": tune_prompts,
    "tunables": tune_tunables,
}


def values_of(runs: Sequence[Path]) -> list[Values]:
    """The values of the best trials of the searches of some runs of `polyhop optimize`."""
    from .report.optimization import read_run

    found: list[Values] = []
    for run in runs:
        studies = [study for _, study, _ in read_run(run).searches() if study]
        if not studies:
            raise PolyhopError(f"{run} has no finished search to start from")
        found += [values for study in studies for values in study.leading]
    return found


def _search(
    stage: StageInput, program: dspy.Module, note: str, name: str, trials: int, *, only: Sequence[str] = ()
) -> Proposal:
    """Search the tunables of a program, or ``only`` some of them, within the settings' limits."""
    settings = stage.settings
    freeze, ranges = settings.freeze, settings.ranges
    if only:
        searched = [each for each in only if each not in matching(program, freeze)]
        if not searched:
            return Proposal(program, f"{note}; their tunables are frozen")
        freeze = tuple(each for each in matching(program, ["*"]) if each not in searched)
        named = [(each, range_) for pattern, range_ in ranges.items() for each in matching(program, [pattern])]
        ranges = {each: range_ for each, range_ in named if each in searched}

    def on_trial(progress: TrialProgress) -> None:
        best = "" if progress.best is None else f", best {100 * progress.best:.1f}"
        stage.on_progress(StageProgress(progress.done, progress.trials, f"trials{best}"))

    search = TunableSearch(
        metric=stage.metric,
        trials=trials,
        sampler=settings.sampler,
        cost=settings.cost,
        freeze=freeze,
        ranges=ranges,
        start=values_of(settings.warm_start),
        seed=stage.seed,
        parallel_trials=settings.parallel_trials,
        threads=settings.threads,
        storage=settings.storage or stage.folder / f"{name}.journal",
        study=f"{stage.folder.parent.name}/{stage.folder.name}/{name}" if settings.storage else "tunables",
        on_trial=on_trial,
    )
    spent = None
    try:
        search.compile(program, valset=stage.train)
    except BudgetSpent as error:
        ended = search.result.trials if search.result else []
        if not any(trial.number and trial.state == "complete" for trial in ended):
            raise
        spent, note = str(error), f"{note}, ended by the budget after {len(ended)}"
    assert search.result is not None
    figures = {
        "history": plots.history(search.result.trials),
        "front": plots.front(
            search.result.trials, settings.cost or "lm_calls", search.result.front, search.result.best
        ),
        "importances": plots.importances(search.result),
    }
    for title, figure in figures.items():
        with replacing(stage.folder / f"{title}.svg") as file:
            file.write(standalone(figure))
    return Proposal(search.tuned(program), note, search.result, spent)
