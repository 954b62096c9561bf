"""A worker of a search: takes a trial, measures it, stores what came of it, until all are done."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.metadata import version
from math import isnan
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import dspy

from ...data.errors import PolyhopError
from ...engines.models import explain
from ...eval.settings import ProgramSettings
from ...programs.tunable import tunables
from ..measure import Measured, measure
from .outcome import Outcome, choose, importances, within
from .pruning import Pruning
from .questions import fingerprint
from .sampler import Seen, make_sampler, number
from .space import Space, Values
from .storage import open_storage, trouble
from .study import State, Study, Trial

if TYPE_CHECKING:
    from .search import TunableSearch


@dataclass(frozen=True)
class Progress:
    """A trial has ended.

    Attributes:
        score: The mean over the questions; None if it failed.
        cost: The mean cost, if the search has one.
        best: The highest score of a complete trial within the limits so far; None if there is none.
        done: How many trials have ended by now, also before a search was taken up again.
        trials: How many there are to be.
    """

    slot: int
    state: State
    score: float | None
    cost: float | None
    best: float | None
    done: int
    trials: int


class Run:
    """A search over one storage, on behalf of one worker; use it in a ``with`` block.

    Raises:
        PolyhopError: see `TunableSearch.compile`.
    """

    def __init__(self, search: TunableSearch, student: dspy.Module, questions: Sequence[dspy.Example]) -> None:
        if not questions:
            raise PolyhopError("there are no questions to tune on: give compile a valset or a trainset")
        if search.trials < 1:
            raise PolyhopError(f"a search has at least one trial, got {search.trials}")
        self._search, self._student, self._questions = search, student, questions
        self._space = Space.of(student, search.freeze, search.ranges)
        self._at_most = dict(search.at_most or {})
        self._sampler = make_sampler(
            search.sampler,
            self._space,
            search.seed,
            objectives=2 if search.cost else 1,
            limits=bool(self._at_most),
            points=search.points,
        )
        self.trials = search.trials
        if search.sampler == "grid":
            self.trials = min(
                self.trials, 1 + sum(values != self._space.defaults for values in self._space.grid(search.points))
            )
        self.settings = self._describe()
        with ExitStack() as stack:
            stack.enter_context(trouble())
            where = search.storage
            if where is not None and "://" not in str(where):
                where = str(where).replace("{study}", _hash(self.settings))
            storage, alive = open_storage(where, search.grace)
            self._study = Study(storage, search.study, self.settings, self._space, search.cost)
            self._alive = alive(self._study.id)

    def work(self) -> None:
        """Take trials and measure them until all have ended, whoever has had them."""
        with trouble():
            while taken := self._study.take(self.trials, self._alive, self._draw):
                trial, id = taken
                try:
                    ended = self._measured(trial)
                except BaseException:
                    self._study.give_up(id)  # to be tried again when the search is continued
                    raise
                if self._study.end(ended, id):
                    self._search.on_trial(self.progress(ended))

    def outcome(self) -> Outcome:
        """What the trials so far come to.

        Raises:
            PolyhopError: none of them is fit to be chosen.
        """
        with trouble():
            trials = self._study.trials()[: self.trials]
        best, front = choose(trials, self._search.cost, self._at_most)
        told = [self._seen(trial) for trial in trials if trial.scores]
        return Outcome(self.settings, trials, best, front, importances(told, self._space))

    def ended(self) -> dict[int, Trial]:
        """The trials that have ended, by slot."""
        with trouble():
            return {trial.slot: trial for trial in _ended(self._study.trials())}

    def progress(self, trial: Trial) -> Progress:
        ended = self.ended().values()
        best = max((other.score for other in ended if self._may_win(other)), default=None)
        cost = trial.costs.get(self._search.cost) if self._search.cost else None
        score = trial.score if trial.scores else None
        return Progress(trial.slot, trial.state, score, cost, best, len(ended), self.trials)

    # --- one trial ---------------------------------------------------------------------------------------------------

    def _draw(self, slot: int, earlier: Sequence[Trial]) -> Values:
        if slot == 0:
            return self._space.defaults
        return self._sampler(slot, [self._seen(trial) for trial in earlier if trial.state != "failed"])

    def _seen(self, trial: Trial) -> Seen:
        if trial.state == "running":
            return Seen(trial.values, None)
        results = (trial.score, *((trial.costs[self._search.cost],) if self._search.cost else ()))
        return Seen(trial.values, results, {name: trial.costs[name] - limit for name, limit in self._at_most.items()})

    def _measured(self, trial: Trial) -> Trial:
        """
        Raises:
            PolyhopError: every question fails, the metric fails, or a cost that is asked for is not known.
        """
        search = self._search
        try:
            program = with_values(self._student, trial.values)
        except (PolyhopError, ValueError) as error:
            return replace(trial, state="failed", error=explain(error))
        order = list(range(len(self._questions)))
        random.Random(number(search.seed, trial.slot, "order")).shuffle(order)
        pruning = Pruning(order, self._rival(trial))
        measured = measure(
            program, self._questions, search.metric, threads=search.threads, order=order, on_score=pruning.goes_on
        ).only(pruning.asked)
        self._check(trial, measured)
        return replace(
            trial,
            state="pruned" if pruning.stopped else "complete",
            scores=measured.scores,
            costs={
                name: measured.cost(name)
                for name in sorted({name for each in measured.costs.values() for name in each})
            },
            failures=len(measured.failures),
            error=next(iter(measured.failures.values()), None),
        )

    def _rival(self, trial: Trial) -> Trial | None:
        """The trial that this one is held against; None if it is to be measured whatever it comes to."""
        if trial.slot == 0 or not self._search.prune or self._search.cost:
            return None
        before = [other for other in self.ended().values() if self._may_win(other)]
        return max(before, key=lambda other: (other.score, -other.slot), default=None)

    def _may_win(self, trial: Trial) -> bool:
        return trial.state == "complete" and within(trial, self._at_most)

    def _check(self, trial: Trial, measured: Measured) -> None:
        if len(measured.failures) == len(measured.scores):
            raise PolyhopError(
                f"every question of trial {trial.slot} ({_shown(trial.values)}) fails: "
                f"{next(iter(measured.failures.values()))}; the search can be continued when this is put right"
            )
        for name in (*self._at_most, *([self._search.cost] if self._search.cost else [])):
            if isnan(measured.cost(name)):
                known = sorted({name for each in measured.costs.values() for name in each})
                raise PolyhopError(f"the program has no cost {name!r}; it has {', '.join(known)}")

    # --- what it is --------------------------------------------------------------------------------------------------

    def _describe(self) -> dict[str, Any]:
        """The settings that make it this search; with more trials, threads or workers it is the same."""
        search = self._search
        described = {
            "schema": 2,
            "program": ProgramSettings.of(self._student).model_dump(by_alias=True, exclude={"name"}),
            "space": self._space.describe(),
            "questions": {"count": len(self._questions), "hash": fingerprint(self._questions)},
            "metric": str(
                getattr(search.metric, "name", None) or getattr(search.metric, "__name__", type(search.metric).__name__)
            ),
            "sampler": search.sampler,
            "points": search.points if search.sampler == "grid" else None,
            "cost": search.cost,
            "at_most": self._at_most,
            "prune": search.prune and not search.cost,
            "seed": search.seed,
            "versions": {package: version(package) for package in ("polyhop", "dspy", "optuna", "cmaes")},
        }
        plain: dict[str, Any] = json.loads(json.dumps(described))
        return plain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alive.close()


def with_values(student: dspy.Module, values: Values) -> dspy.Module:
    """A copy of a program with other values of its tunables."""
    program: dspy.Module = student.deepcopy()
    for name, tunable in tunables(program).items():
        if name in values:
            tunable.value = values[name]
    return program


def _ended(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.state != "running"]


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )


def _hash(settings: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=8).hexdigest()
