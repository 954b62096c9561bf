"""The search for better tunables, as a DSPy teleprompter.

    search = TunableSearch(metric=metrics.evidence_f1, trials=60, cost="lm_calls", storage="runs/x/study.journal")
    tuned = search.compile(program, valset=questions)
    search.result.best.values, search.result.front, search.result.importances

One driver draws the values of a trial, has the questions answered with them, in threads or in worker processes, and
stores the trial in one step when it has ended. So the same search over the same storage resumes after a kill: values
are a function of the seed and earlier trials, and the trial that was cut off is drawn and measured again. Trials may
run at the same time: then each is drawn without the results of some before it, and they are stored in their order.
Threads and processes share the questions, and do not change the result.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, is_dataclass
from hashlib import blake2b
from importlib.metadata import version
from math import isnan
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import dspy
import numpy as np
from dspy.teleprompt import Teleprompter
from optuna.trial import FrozenTrial, TrialState, create_trial

from ...data.errors import PolyhopError
from ...engines.budget import BudgetSpent
from ...engines.replies import explain
from ...eval.folder import differences
from ...eval.settings import ProgramSettings
from ...eval.workers import Workers
from ..measure import Metric, measure, named
from .result import StudyResult, StudySettings, TrialRecord, choose, importances, score_of, shown, within
from .sampling import derived_seed, make_sampler
from .space import Ranges, SearchSpace, Values, with_values
from .storage import attributes, open_study, trials_of
from .workers import Asked, Draw, TrialPool

STORAGE = "runs/tuning/{study}.journal"
"""The default storage of a search; ``{study}`` is replaced by a hash of its settings."""

_PRUNE_FIRST, _PRUNE_EVERY = 20, 10  # questions before the first test, and between two
_PRUNE_LEVEL = 0.05  # low, since a trial is tested many times

_STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


@dataclass(frozen=True)
class TrialProgress:
    """A trial has ended, with its mean score and cost. ``best`` is the highest score of a complete trial within the
    limits; ``done`` counts the trials of ``trials`` that have ended, also before the search was resumed.
    """

    number: int
    state: Literal["complete", "pruned", "failed"]
    score: float | None
    cost: float | None
    best: float | None
    done: int
    trials: int


@dataclass
class TunableSearch(Teleprompter):
    """Optuna over the tunables (`polyhop.tunables`) of any DSPy program.

    Attributes:
        metric: A DSPy metric to maximize.
        trials: How many, including the first one, which is the program as it is. A search can be resumed with more.
        sampler: ``tpe``, ``cmaes``, ``random`` or ``grid`` (which ends with the last point of the grid).
        cost: A cost to minimize as well, one of `polyhop.optimizers.measure.Measured.costs`. Without a polyhop trace,
            ``lm_calls`` and tokens count only what DSPy's cache did not answer.
        at_most: Limits of costs, as means over the questions; a program beyond them is never chosen.
        freeze: Names or globs (``"search.*"``) of tunables that keep their values.
        ranges: Narrower ranges by name or glob: ``{"rounds": (1, 3), "stop": ("stable",)}``.
        start: Values that the first trials after the program's own have, as of an earlier search
            (`StudyResult.leading`). Tunables that are not named, or not with a value in range, keep the program's.
        prune: Stop a trial that is worse than the best one on the questions so far (Wilcoxon test, every 10 questions,
            which each trial answers in an order of its own); without effect if there is a cost. A pruned trial is never
            chosen, but its mean so far informs the sampler.
        parallel_trials: Trials that may run at the same time in workers. A trial is drawn without the results of the
            ``parallel_trials - 1`` before it, so that the result depends on this number, but not on the workers.
        points: Grid points per number.
        threads: Questions answered at the same time, in this process.
        executor: Worker processes that answer the questions, such as `polyhop.eval.workers.Processes`; None for this
            process. With workers, program, questions and metric must pickle.
        storage: The path of a journal file, a database URL (``sqlite:///study.db``,
            ``postgresql+psycopg://user@host/name``), or None for memory.
        study: The name of the search in its storage, which may hold several.
        on_trial: Called as each trial ends.
        result: The result, after `compile`; if a budget was spent, that of the trials so far.
    """

    metric: Metric
    trials: int = 60
    sampler: str = "tpe"
    cost: str | None = None
    at_most: Mapping[str, float] | None = None
    freeze: Sequence[str] = ()
    ranges: Ranges | None = None
    start: Sequence[Values] = ()
    prune: bool = True
    parallel_trials: int = 1
    points: int = 5
    seed: int = 0
    threads: int = 1
    executor: Workers | None = None
    storage: str | Path | None = STORAGE
    study: str = "tunables"
    on_trial: Callable[[TrialProgress], None] = lambda progress: None
    result: StudyResult | None = None

    def compile(
        self,
        student: dspy.Module,
        *,
        trainset: Sequence[dspy.Example] | None = None,
        teacher: Any = None,
        valset: Sequence[dspy.Example] | None = None,
    ) -> dspy.Module:
        """Run or resume the search, and return a copy of the student with the best values.

        Args:
            trainset: The questions, if there is no valset.
            teacher: Unused.
            valset: The questions that trials are measured on.

        Raises:
            PolyhopError: there is nothing to tune or no question, a setting is wrong, the storage holds another search
                or fails, the metric fails, every question of a trial fails, or no trial is within the limits.
        """
        questions = list(valset if valset is not None else trainset or ())
        with _Driver(self, student, questions) as driver:
            try:
                driver.run()
            except BudgetSpent:
                with suppress(PolyhopError):
                    self.result = driver.result()
                raise
            self.result = driver.result()
        return self.tuned(student)

    def tuned(self, student: dspy.Module) -> dspy.Module:
        """A copy of the student with the best values."""
        if self.result is None:
            raise PolyhopError("call compile first: the search has no result yet")
        return with_values(student, self.result.best.values)


class _Driver:
    """Draws trials, has them measured and stores them; use it in a ``with`` block."""

    def __init__(self, search: TunableSearch, student: dspy.Module, questions: Sequence[dspy.Example]) -> None:
        if not questions:
            raise PolyhopError("there are no questions to tune on: give compile a valset or a trainset")
        for name in ("trials", "threads", "parallel_trials"):
            if getattr(search, name) < 1:
                raise PolyhopError(f"{name} must be at least 1, got {getattr(search, name)}")
        self._search, self._student, self._questions = search, student, questions
        self._space = SearchSpace.of(student, search.freeze, search.ranges)
        self._at_most = dict(search.at_most or {})
        self._sampler = make_sampler(
            search.sampler,
            self._space,
            search.seed,
            cost=search.cost is not None,
            limits=bool(self._at_most),
            points=search.points,
        )
        self._start = self._space.starts(search.start)
        self._trials = search.trials
        if search.sampler == "grid":
            others = sum(values != self._space.defaults for values in self._space.grid(search.points))
            self._trials = min(search.trials, len(self._start) + others)
        self._settings = self._describe()
        self._pruners: dict[int, _Pruner] = {}  # of trials that were drawn and have not ended
        self._ended: dict[int, TrialRecord] = {}  # that wait for those before them

    def __enter__(self) -> Self:
        search, where = self._search, self._search.storage
        if where is not None and "://" not in str(where):
            hashed = blake2b(self._settings.model_dump_json().encode(), digest_size=8).hexdigest()
            where = str(where).replace("{study}", hashed)
        with ExitStack() as stack:
            self._study = stack.enter_context(open_study(where, search.study, search.cost is not None))
            before, settings = self._study.user_attrs.get("settings"), self._settings.model_dump(mode="json")
            if before is None:
                self._study.set_user_attr("settings", settings)
            elif changed := differences(before, settings):
                lines = "\n  ".join(changed)
                raise PolyhopError(
                    f"the study {search.study!r} was started with other settings:\n  {lines}\n"
                    "use the same settings, or name another study or storage"
                )
            self._records = trials_of(self._study)[: self._trials]
            self._ask = self._in_this_process
            if search.executor is not None and len(self._records) < self._trials:
                pool = TrialPool(self._student, self._questions, search.metric, search.executor)
                self._ask = stack.enter_context(pool).trials
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def run(self) -> None:
        """Run the trials that are missing."""
        for trial in self._ask(self._draw):
            self._end(self._record(trial))

    def result(self) -> StudyResult:
        best, front = choose(self._records, self._search.cost, self._at_most)
        shares = importances(self._scored(self._records), self._search.cost is not None)
        return StudyResult(settings=self._settings, trials=self._records, best=best, front=front, importances=shares)

    def _scored(self, records: Sequence[TrialRecord]) -> list[FrozenTrial]:
        """The trials with a score, for samplers; pruned ones count as complete with their mean so far."""
        known = [record for record in records if record.state != "failed" and self._space.covers(record.values)]
        return [self._frozen(record, TrialState.COMPLETE) for record in known]

    def _frozen(self, record: TrialRecord, state: TrialState) -> FrozenTrial:
        """A trial as Optuna has it."""
        cost, params = self._search.cost, self._space.active(self._space.inside(record.values))
        failed = record.state == "failed"
        return create_trial(
            state=state,
            values=None if failed else [score_of(record), *([record.costs[cost]] if cost else [])],
            params=params,
            distributions={name: self._space.distributions[name] for name in params},
            constraints={} if failed else {name: record.costs[name] - most for name, most in self._at_most.items()},
            user_attrs=attributes(record),
        )

    # --- one trial ---------------------------------------------------------------------------------------------------

    def _draw(self) -> Asked | None:
        """The next trial; None if there is none, or none before another one has ended."""
        parallel = self._search.parallel_trials
        while (number := len(self._records) + len(self._ended) + len(self._pruners)) < self._trials:
            if number >= len(self._records) + parallel:
                break
            known = self._records[: max(0, number - parallel + 1)]
            drawn = number - len(self._start) + 1
            values = self._start[number] if drawn < 1 else self._sampler(drawn, self._scored(known))
            try:
                with_values(self._student, values)
            except (PolyhopError, ValueError) as error:
                self._end(TrialRecord(number=number, state="failed", values=values, error=explain(error)))
                continue
            order = list(range(len(self._questions)))
            random.Random(derived_seed(self._search.seed, number, "order")).shuffle(order)
            self._pruners[number] = pruner = _Pruner(order, self._rival(known))
            return Asked(number, values, order, pruner.on_score)
        return None

    def _end(self, record: TrialRecord) -> None:
        """A trial has ended: store it, after those before it."""
        self._ended[record.number] = record
        while following := self._ended.pop(len(self._records), None):
            self._study.add_trial(self._frozen(following, _STATES[following.state]))
            self._records.append(following)
            best = max((score_of(other) for other in self._records if self._eligible(other)), default=None)
            cost, done = following.costs.get(self._search.cost or ""), len(self._records)
            score, state = following.score, following.state
            self._search.on_trial(TrialProgress(following.number, state, score, cost, best, done, self._trials))

    def _record(self, trial: Asked) -> TrialRecord:
        number, pruner = trial.number, self._pruners.pop(trial.number)
        measured = trial.measured.only(pruner.answered)
        failure = next(iter(measured.failures.values()), None)
        if len(measured.failures) == len(measured.scores):
            raise PolyhopError(
                f"every question of trial {number} ({shown(trial.values)}) failed: {failure}; fix the cause and resume "
                "the search"
            )
        known = sorted({name for costs in measured.costs.values() for name in costs})
        for name in (*self._at_most, *([self._search.cost] if self._search.cost else [])):
            if isnan(measured.cost(name)):
                raise PolyhopError(f"the program has no cost {name!r}; it has {', '.join(known)}")
        return TrialRecord(
            number=number,
            state="pruned" if pruner.pruned else "complete",
            values=trial.values,
            score=sum(measured.scores.values()) / len(measured.scores),
            costs={name: measured.cost(name) for name in known},
            questions=len(measured.scores),
            failures=len(measured.failures),
            scores=measured.scores,
            failure=failure,
        )

    def _in_this_process(self, draw: Draw) -> Iterator[Asked]:
        search = self._search
        while trial := draw():
            program, order, on_score = with_values(self._student, trial.values), trial.order, trial.on_score
            found = measure(
                program, self._questions, search.metric, threads=search.threads, order=order, on_score=on_score
            )
            trial.measured.update(found)
            yield trial

    def _rival(self, known: Sequence[TrialRecord]) -> TrialRecord | None:
        """The trial that prunes one; None if it is measured in full."""
        if not self._search.prune or self._search.cost:
            return None
        return max(filter(self._eligible, known), key=score_of, default=None)

    def _eligible(self, trial: TrialRecord) -> bool:
        return trial.state == "complete" and within(trial, self._at_most)

    def _describe(self) -> StudySettings:
        search = self._search
        return StudySettings(
            program=ProgramSettings.of(self._student).model_dump(mode="json", by_alias=True, exclude={"name"}),
            space=self._space.describe(),
            start=self._start[1:],
            questions={"count": len(self._questions), "hash": _hash(self._questions)},
            metric=named(search.metric),
            sampler=search.sampler,
            points=search.points if search.sampler == "grid" else None,
            cost=search.cost,
            at_most=self._at_most,
            prune=search.prune and not search.cost,
            parallel_trials=search.parallel_trials,
            seed=search.seed,
            versions={package: version(package) for package in ("polyhop", "dspy", "optuna", "cmaes")},
        )


class _Pruner:
    """Decides question by question whether a trial is pruned, with the test of Optuna's ``WilcoxonPruner``.

    Questions count (``answered``) in the trial's order, whichever is answered first, so that threads do not change the
    outcome.
    """

    def __init__(self, order: Sequence[int], rival: TrialRecord | None) -> None:
        self._order, self._rival = order, rival
        self._scores: dict[int, float] = {}
        self.pruned = False
        self.answered: list[int] = []

    def on_score(self, number: int, score: float) -> bool:
        """Take the score of a question; returns whether to continue."""
        self._scores[number] = score
        while len(self.answered) < len(self._order) and self._order[len(self.answered)] in self._scores:
            self.answered.append(self._order[len(self.answered)])
            count = len(self.answered)
            if _PRUNE_FIRST <= count < len(self._order) and count % _PRUNE_EVERY == 0 and self._is_worse():
                self.pruned = True
                return False
        return True

    def _is_worse(self) -> bool:
        from scipy.stats import wilcoxon

        if self._rival is None:
            return False
        scores = [self._scores[number] for number in self.answered]
        if np.mean(scores) >= score_of(self._rival):
            return False
        lead = np.array(scores) - [self._rival.scores[number] for number in self.answered]
        return bool(wilcoxon(lead, alternative="less", zero_method="zsplit").pvalue < _PRUNE_LEVEL)


def _hash(questions: Sequence[dspy.Example]) -> str:
    """A hash of all fields of some examples, in their order; the same in every process."""
    digest = blake2b(digest_size=16)
    for example in questions:
        digest.update(json.dumps(dict(example.items()), default=_plain, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return value.model_dump() if hasattr(value, "model_dump") else type(value).__qualname__
