"""The search for better tunables: Optuna as a DSPy teleprompter, for any program that has some (`polyhop.tunables`).

    search = TunableSearch(metrics.evidence_f1, trials=60, cost="lm_calls", storage="runs/x/study.journal")
    tuned = search.compile(program, valset=questions)
    search.result.best.values, search.result.front

The study is an ordinary one in a journal file, which Optuna's own tools read. The sampler (TPE) is seeded anew for each
trial, so what is drawn depends on the seed and the finished trials alone: a killed search ends as an uninterrupted one.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import zip_longest
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import dspy
import numpy as np
import optuna
from dspy.teleprompt import Teleprompter
from filelock import FileLock
from optuna import samplers
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState
from pydantic import BaseModel, Field

from ..data.errors import PolyhopError
from ..eval.folder import cut_half_line
from ..eval.metrics import named
from ..programs.tunable import conditions_of, tunables
from .artifact import dump
from .replay import Metric, Scored, scored_runs

Values = dict[str, Any]
"""Values of tunables by their dotted names."""

Ranges = Mapping[str, Sequence[Any]]
"""By name or glob: the lowest and the highest value of a number, or some values of a choice; ``()`` is all that a
tunable allows, also where it is not searched by default."""

VARIANT = "variant"
"""Among the values of a trial, the number of its variant; None is the program itself."""

Space = Mapping[str, BaseDistribution]

FEW = 12
"""Questions that every trial answers; half of the trials go on at twice as many, and so forth."""

_DRAWS = 50
"""Draws without values that were not tried, after which a search ends: there are no others, or hardly."""

HEADROOM_TRIALS, HEADROOM = 12, 0.02
"""A search ends if none of so many trials gains so much on what it was asked, as a share of a score of 1."""


class TrialRecord(BaseModel):
    """A finished trial; trial 0 is the program as it was. ``values`` are those that were drawn. Score and costs are
    means over the ``questions`` that were asked, of which failed ones score 0; but the score of a trial that was
    stopped is that of trial 0 and the mean gain so far."""

    number: int
    values: Values
    score: float
    costs: dict[str, float] = {}
    questions: int = 0
    scores: dict[int, float] = Field(default={}, exclude=True)
    failures: int = 0
    pruned: bool = False


class StudyResult(BaseModel):
    """The result of a search: the trial whose values the program gets, and the Pareto front of score and cost (see
    `choose`). Without ``headroom`` nothing that was tried gained."""

    trials: list[TrialRecord]
    best: TrialRecord
    front: list[TrialRecord]
    cost: str | None = None
    headroom: bool = True


@dataclass
class TunableSearch(Teleprompter):
    """Optuna over the tunables of any DSPy program, and over variants of it that have other prompts.

    Trial 0, the program as it is, answers all questions; the others begin with its failures and its successes in turn.
    Without a cost, half of them are stopped after `FEW` questions, a quarter after twice as many, and so on (Optuna's
    `SuccessiveHalvingPruner`), and the search ends if no one of the first `HEADROOM_TRIALS` gains `HEADROOM`.

    Attributes:
        metric: A DSPy metric to maximize.
        trials: How many, including the first one, which is the program as it is. A search can be resumed with more.
        cost: A cost to minimize as well, one of `polyhop.optimizers.replay.Scored.costs`.
        variants: Copies of the program with other prompts or demos, among which each trial chooses as `VARIANT`.
        freeze: Names or globs (``"search.*"``) of tunables that keep their values.
        ranges: Narrower ranges by name or glob: ``{"rounds": (1, 3), "stop": ("stable",)}``.
        threads: Questions answered at the same time.
        storage: A journal file, from which the same search resumes; other ones begin there anew. None for memory.
        on_trial: Called with all trials so far as each one ends.
        result: The result, after `compile`; if a budget was spent, that of the trials so far.
    """

    metric: Metric
    trials: int = 60
    cost: str | None = None
    variants: Sequence[dspy.Module] = ()
    freeze: Sequence[str] = ()
    ranges: Ranges | None = None
    seed: int = 0
    threads: int = 1
    storage: str | Path | None = None
    on_trial: Callable[[Sequence[TrialRecord]], None] = lambda trials: None
    result: StudyResult | None = None

    def compile(
        self,
        student: dspy.Module,
        *,
        trainset: Sequence[dspy.Example] | None = None,
        teacher: Any = None,
        valset: Sequence[dspy.Example] | None = None,
    ) -> dspy.Module:
        """Run or resume the search on the valset (or the trainset), and return a copy of the student with the best
        values; ``teacher`` is unused.

        Raises:
            PolyhopError: there is nothing to tune or no question, the storage is no journal, the metric fails, or every
                question of a trial fails.
        """
        questions = list(valset if valset is not None else trainset or ())
        if not questions:
            raise PolyhopError("there are no questions to tune on: give compile a valset or a trainset")
        space, done = search_space(student, self.freeze, self.ranges, bool(self.variants)), list[TrialRecord]()
        if self.variants:
            space[VARIANT] = CategoricalDistribution((None, *range(len(self.variants))))
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
            study = optuna.create_study(
                storage=None if self.storage is None else _journal(Path(self.storage)),
                study_name=self._name(student, space, questions),
                directions=[StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE][: 2 if self.cost else 1],
                pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=FEW, reduction_factor=2),
                load_if_exists=True,
            )
            for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):  # cut off by a kill
                study.tell(trial.number, state=TrialState.FAIL)
            for trial in study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])[: self.trials]:
                done.append(TrialRecord(**trial.user_attrs["trial"]))
            try:
                while len(done) < self.trials and self._has_headroom(done):
                    if (record := self._trial(study, student, questions, space, done)) is None:
                        break
                    done.append(record)
                    self.on_trial(done)
            finally:
                if done:
                    best, front = choose(done, self.cost)
                    self.result = StudyResult(
                        trials=[*done], best=best, front=front, cost=self.cost, headroom=self._has_headroom(done)
                    )
        return self.program(student, best.values)

    def program(self, student: dspy.Module, values: Values) -> dspy.Module:
        """A copy of the student, or of a variant, with the values of a trial."""
        variant = values.get(VARIANT)
        twin: dspy.Module = (student if variant is None else self.variants[variant]).deepcopy()
        for name, tunable in tunables(twin).items():
            tunable.value = values.get(name, tunable.value)
        return twin

    def _has_headroom(self, done: Sequence[TrialRecord]) -> bool:
        """Whether more trials are worth their questions."""
        if self.cost is not None or len(done) <= HEADROOM_TRIALS:
            return True
        least = HEADROOM * max(1.0, *done[0].scores.values())
        return any(trial.score >= done[0].score + least for trial in done[1:])

    def _name(self, student: dspy.Module, space: Space, questions: Sequence[dspy.Example]) -> str:
        """Has all that decides what is found, so that another search does not resume this one."""
        texts = [dict(example.items()) for example in questions]
        decides = [_values(student), str(space), texts, named(self.metric), self.cost, self.seed, optuna.__version__]
        decides += [dump(variant) for variant in self.variants]
        text = json.dumps(decides, default=lambda value: type(value).__name__)
        return f"tunables-{blake2b(text.encode(), digest_size=8).hexdigest()}"

    def _trial(
        self,
        study: optuna.Study,
        student: dspy.Module,
        questions: list[dspy.Example],
        space: Space,
        done: Sequence[TrialRecord],
    ) -> TrialRecord | None:
        """Ask the questions with the values of the next trial, and store it; None if all values were tried."""
        drawn = self._drawn(study, student, space, done)
        if drawn is None:
            return None
        (trial, values), before = drawn, done[0].scores if done else {}
        runs, pruned = self._asked(trial, self.program(student, values), questions, before)
        failures = [run.failure for run in runs if run.failure]
        if len(failures) == len(runs):
            raise PolyhopError(
                f"every question of trial {len(done)} ({values}) failed: {failures[0]}; mend it and resume"
            )
        costs = {}
        for name in sorted({name for run in runs for name in run.costs}):
            costs[name] = fmean(run.costs[name] for run in runs if name in run.costs)
        if self.cost and self.cost not in costs:
            raise PolyhopError(f"the program has no cost {self.cost!r}; it has {', '.join(costs)}")
        scores = {run.number: run.score for run in runs}
        before = before or scores
        record = TrialRecord(
            number=len(done),
            values=values,
            score=fmean(before.values()) + fmean(score - before[n] for n, score in scores.items()),
            costs=costs,
            questions=len(runs),
            scores=scores,
            failures=len(failures),
            pruned=pruned,
        )
        trial.set_user_attr("trial", {**record.model_dump(), "scores": scores})
        study.tell(trial, [record.score, costs[self.cost]] if self.cost else record.score)
        return record

    def _drawn(
        self, study: optuna.Study, student: dspy.Module, space: Space, done: Sequence[TrialRecord]
    ) -> tuple[optuna.Trial, Values] | None:
        """A trial with values that were not tried; the first one has those of the program."""
        start = _values(student) | {VARIANT: None}
        if not done:  # a value outside of its range is not drawn
            space = {name: range_ for name, range_ in space.items() if _is_inside(start[name], range_)}
        for draw in range(_DRAWS):
            study.sampler = samplers.TPESampler(seed=_seed(self.seed, len(done), *([draw] if draw else [])))
            if not done:
                study.sampler = samplers.PartialFixedSampler({name: start[name] for name in space}, study.sampler)
            trial = study.ask()
            values = _draw(trial, student, space)
            if all(values != record.values for record in done):
                return trial, values
            study.tell(trial, state=TrialState.FAIL)
        return None

    def _asked(
        self, trial: optuna.Trial, program: dspy.Module, questions: list[dspy.Example], before: Mapping[int, float]
    ) -> tuple[list[Scored], bool]:
        """The runs of a trial, and whether it was stopped; ``before`` are the scores of trial 0, which never is."""
        runs, order = list[Scored](), self._order(len(questions), before)
        with closing(scored_runs(program, questions, self.metric, order, self.threads)) as results:
            for run in results:
                runs.append(run)
                if self.cost is None and before:
                    trial.report(fmean(run.score for run in runs), len(runs))
                    if len(runs) < len(order) and trial.should_prune():
                        return runs, True
        if self.cost is None and not before:  # it takes part
            first = {run.number: run.score for run in runs}
            for many in range(1, len(order) + 1):
                trial.report(fmean(first[n] for n in self._order(len(order), first)[:many]), many)
                trial.should_prune()  # notes it for the others
        return runs, False

    def _order(self, count: int, scores: Mapping[int, float]) -> list[int]:
        """The questions in a random order; those that trial 0 answered below and above its mean in turn."""
        order = list(range(count))
        random.Random(_seed(self.seed, "order")).shuffle(order)
        if not scores:
            return order
        mean = fmean(scores.values())
        halves = [[n for n in order if (scores[n] < mean) is low] for low in (True, False)]
        return [n for pair in zip_longest(*halves) for n in pair if n is not None]


def _journal(path: Path) -> JournalStorage:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        cut_half_line(file)  # of a process that was killed
    lock: Any = FileLock(path.with_name(f".{path.name}.lock"))  # Optuna's would outlive a kill
    try:
        return JournalStorage(JournalFileBackend(str(path), lock))
    except (ValueError, KeyError, AssertionError) as error:
        advice = "delete it to search anew, or name another file"
        raise PolyhopError(f"{path} is not the journal of a search, or damaged ({error}): {advice}") from error


# --- what is searched ------------------------------------------------------------------------------------------------


def search_space(
    program: dspy.Module, freeze: Sequence[str] = (), ranges: Ranges | None = None, may_be_empty: bool = False
) -> dict[str, BaseDistribution]:
    """The tunables that are searched, in the order of the program, and their ranges.

    Left out are those that are frozen, also if they have a range, and those whose usual range (`Tunable.usual`) is a
    single value, such as the weights of the chain retriever.

    Raises:
        PolyhopError: a pattern matches nothing, a range does not fit its tunable, or nothing is left.
    """
    parameters, frozen = tunables(program), matching(program, freeze)
    narrowed = {name: range_ for pattern, range_ in (ranges or {}).items() for name in matching(program, [pattern])}
    space = dict[str, BaseDistribution]()
    for name in (name for name in parameters if name not in frozen):
        range_ = _range(name, parameters[name], narrowed.get(name))
        if not range_.single():
            space[name] = range_
    if not space and not may_be_empty:
        why = "all are frozen or have a single value" if parameters else "it has none (polyhop.tunables)"
        raise PolyhopError(f"the program has no tunables to search: {why}")
    return space


def _range(name: str, tunable: Any, narrower: Sequence[Any] | None) -> BaseDistribution:
    usual = tunable.usual if narrower is None else None
    try:
        for value in narrower or ():
            copy(tunable).value = value
        if tunable.choices:
            return CategoricalDistribution(tuple(dict.fromkeys(narrower or usual or tunable.choices)))
        low, high = narrower or (tunable.low, tunable.high)
        if usual is not None:
            low, high = min(usual[0], tunable.value), max(usual[1], tunable.value)
        return (IntDistribution if type(tunable.low) is int else FloatDistribution)(low, high, log=tunable.log)
    except ValueError as error:
        raise PolyhopError(
            f"the range of {name}, {narrower}, is neither its lowest and highest value nor some of its choices: {error}"
        ) from error


def _is_inside(value: Any, range_: Any) -> bool:
    if isinstance(range_, CategoricalDistribution):
        return value in range_.choices
    return bool(range_.low <= value <= range_.high)


def _draw(trial: optuna.Trial, student: dspy.Module, space: Mapping[str, Any]) -> Values:
    """The values of a trial. A tunable that needs another one is drawn only if that one has a value for which it
    matters."""
    current, needs, drawn = {VARIANT: None, **_values(student)}, conditions_of(student), dict[str, Any]()

    def matters(name: str) -> bool:
        other, wanted = needs.get(name, ("", ()))
        return not other or (matters(other) and value(other) in wanted)

    def value(name: str) -> Any:
        if name in space and name not in drawn and matters(name):
            range_ = space[name]
            if isinstance(range_, CategoricalDistribution):
                drawn[name] = trial.suggest_categorical(name, range_.choices)
            else:
                suggest = trial.suggest_int if isinstance(range_, IntDistribution) else trial.suggest_float
                drawn[name] = suggest(name, range_.low, range_.high, log=range_.log)
        return drawn.get(name, current[name])

    for name in space:
        value(name)
    return {name: drawn[name] for name in space if name in drawn}


def _values(program: dspy.Module) -> Values:
    return {name: tunable.value for name, tunable in tunables(program).items()}


def matching(program: dspy.Module, patterns: Sequence[str]) -> list[str]:
    """The names of the tunables that match names or globs."""
    names, matches = list(tunables(program)), list[str]()
    for pattern in patterns:
        alike = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not alike:
            raise PolyhopError(f"the program has no tunable {pattern!r}; it has {', '.join(names) or 'none'}")
        matches += alike
    return matches


# --- what is chosen --------------------------------------------------------------------------------------------------


def choose(trials: Sequence[TrialRecord], cost: str | None) -> tuple[TrialRecord, list[TrialRecord]]:
    """The best of the complete trials, and the Pareto front.

    Without a cost, the best trial has the highest score, of equal ones the first; but the program stays as it is if it
    is within one standard error of it, since the best of many trials on the same questions is partly luck. With a cost,
    it is the cheapest trial of the front within one standard error of the highest score. The standard error is that of
    the mean paired difference.
    """
    complete = [trial for trial in trials if not trial.pruned]
    highest = max(complete, key=lambda trial: (trial.score, -trial.number))

    def as_good(trial: TrialRecord) -> bool:
        differences = np.array([highest.scores[number] - score for number, score in trial.scores.items()])
        if len(differences) < 2:
            return trial.score == highest.score
        return bool(differences.mean() <= differences.std(ddof=1) / sqrt(len(differences)))

    if cost is None:
        best = complete[0] if complete[0].number == 0 and as_good(complete[0]) else highest
        return best, [best]
    front: list[TrialRecord] = []
    for trial in sorted(complete, key=lambda trial: (trial.costs[cost], -trial.score, trial.number)):
        if not front or trial.score > front[-1].score:
            front.append(trial)
    highest = front[-1]
    return next(filter(as_good, front)), front


def _seed(*parts: object) -> int:
    """A seed in [0, 2**32) that depends on its arguments alone."""
    return int.from_bytes(blake2b("\n".join(map(str, parts)).encode(), digest_size=4).digest())
