"""A search as its storage knows it: who tries what, and what came of it.

A search has *slots*, from 0, the defaults, to the number of its trials less one. A slot is taken by making a trial that
says so; of several that take the same slot the first one has it, for storages number trials one after the other. So
workers anywhere share a search without a lock. A trial whose worker dies is failed, and its slot is taken again, with
the same values. A trial that has ended is never changed, so nothing is lost and nothing counts twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from ...data.errors import PolyhopError
from ...eval.folder import differences
from .alive import WORKER, Alive
from .sampler import quiet
from .space import Space, Values

State = Literal["complete", "pruned", "failed", "running"]

_SLOT, _ATTEMPT, _RESULT = "slot", "attempt", "result"  # attributes of a trial
_SETTINGS = "settings"  # of the study
_WAIT = 0.2  # seconds, until it is looked again whether the others have finished or died


@dataclass(frozen=True)
class Trial:
    """What was tried in a slot, and what came of it.

    Attributes:
        slot: 0 is the defaults.
        values: Of the tunables that are searched.
        scores: By the number of the question; of a pruned trial those that were asked.
        costs: Means over the questions that were asked.
        failures: Questions that failed, which count 0.
        error: Why the trial failed, or why the first question did.
        attempts: How often it was begun: more than once if a worker was stopped.
    """

    slot: int
    state: State
    values: Values
    scores: Mapping[int, float]
    costs: Mapping[str, float]
    failures: int = 0
    error: str | None = None
    attempts: int = 1

    @property
    def score(self) -> float:
        """The mean over the questions that were asked; NaN if none was."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else float("nan")


class Study:
    """A search in its storage, shared by all its workers.

    Args:
        settings: What the search is; JSON.
        cost: The cost that is the second objective, if there is one.

    Raises:
        PolyhopError: there is a search of this name with other settings.
    """

    def __init__(
        self, storage: BaseStorage, name: str, settings: Mapping[str, Any], space: Space, cost: str | None
    ) -> None:
        self._storage, self._space, self._cost = storage, space, cost
        directions = [StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE][: 2 if cost else 1]
        with quiet():
            try:
                self.id = storage.create_new_study(directions, name)
            except DuplicatedStudyError:
                self.id = storage.get_study_id_from_name(name)
        if _SETTINGS not in storage.get_study_user_attrs(self.id):
            storage.set_study_user_attr(self.id, _SETTINGS, dict(settings))
        if different := differences(storage.get_study_user_attrs(self.id)[_SETTINGS], settings):
            raise PolyhopError(
                f"the study {name!r} was started with other settings:\n  "
                + "\n  ".join(different)
                + "\nstart it with the settings it had, or name another study or storage"
            )

    def trials(self) -> list[Trial]:
        """One for each slot that was ever taken; one whose worker was stopped is running until it is retried."""
        return _trials(self._board())

    def take(
        self, slots: int, alive: Alive, draw: Callable[[int, Sequence[Trial]], Values]
    ) -> tuple[Trial, int] | None:
        """The next trial for a worker, with its number in the storage; None when every slot has ended, whoever had it.

        Waits for other workers, whose trials may be left over. A trial that is tried again has the values it had.
        """
        while True:
            self._bury(alive)
            board = self._board()
            free = [slot for slot in range(slots) if slot not in board or _is_free(board[slot][-1])]
            if free:
                if taken := self._take(free[0], board, alive, draw):
                    return taken
            elif all(board[slot][-1].state.is_finished() for slot in range(slots)):
                return None
            else:
                time.sleep(_WAIT)

    def end(self, trial: Trial, id: int) -> bool:
        """Store what came of a trial; False if it was given up before, and somebody else tries it."""
        result = {
            "scores": {str(number): score for number, score in trial.scores.items()},
            "costs": dict(trial.costs),
            "failures": trial.failures,
            "error": trial.error,
            "state": trial.state,  # a worker may die before the storage knows
        }
        results = [trial.score, *([trial.costs[self._cost]] if self._cost else [])]
        try:
            self._storage.set_trial_user_attr(id, _RESULT, result)
            if trial.state == "failed":
                self._storage.set_trial_state_values(id, TrialState.FAIL)
            else:
                state = TrialState.COMPLETE if trial.state == "complete" else TrialState.PRUNED
                self._storage.set_trial_state_values(id, state, results)
        except UpdateFinishedTrialError:
            return False
        return True

    def give_up(self, id: int) -> None:
        """Leave a trial to whoever comes next."""
        with suppress(UpdateFinishedTrialError):
            self._storage.set_trial_state_values(id, TrialState.FAIL)

    # --- slots -------------------------------------------------------------------------------------------------------

    def _board(self) -> dict[int, list[FrozenTrial]]:
        """The attempts at each slot."""
        return _board(self._storage, self.id)

    def _take(
        self,
        slot: int,
        board: Mapping[int, list[FrozenTrial]],
        alive: Alive,
        draw: Callable[[int, Sequence[Trial]], Values],
    ) -> tuple[Trial, int] | None:
        before = board.get(slot, [])
        earlier = [_trial(other, board[other]) for other in sorted(board) if other < slot]
        values = _values(before[-1]) if before else draw(slot, earlier)
        inside = self._space.inside(values)
        id = self._storage.create_new_trial(
            self.id,
            create_trial(
                state=TrialState.RUNNING,
                params=inside,
                distributions={name: self._space.distributions[name] for name in inside},
                user_attrs={_SLOT: slot, _ATTEMPT: len(before), "values": values, WORKER: alive.worker},
            ),
        )
        alive.hold(id)
        attempts = self._board()[slot]
        if attempts[-1]._trial_id == id:
            return _trial(slot, attempts), id
        self.give_up(id)
        return None

    def _bury(self, alive: Alive) -> None:
        """Fail the trials whose workers are dead."""
        running = [
            trial
            for trial in self._storage.get_all_trials(self.id, deepcopy=False, states=(TrialState.RUNNING,))
            if WORKER in trial.user_attrs
        ]
        for trial in alive.dead(running):
            self.give_up(trial._trial_id)


def trials_in(storage: BaseStorage) -> list[Trial]:
    """What every study of a storage has tried, as `Study.trials` has it; nothing is written."""
    return [trial for study in storage.get_all_studies() for trial in _trials(_board(storage, study._study_id))]


def _board(storage: BaseStorage, id: int) -> dict[int, list[FrozenTrial]]:
    board: dict[int, list[FrozenTrial]] = {}
    for trial in storage.get_all_trials(id, deepcopy=False):
        slot, attempt = trial.user_attrs.get(_SLOT), trial.user_attrs.get(_ATTEMPT)
        if slot is not None and attempt == len(board.setdefault(slot, [])):
            board[slot].append(trial)  # a later one for the same attempt was too late
    return board


def _trials(board: Mapping[int, list[FrozenTrial]]) -> list[Trial]:
    return [_trial(slot, board[slot]) for slot in sorted(board)]


def _is_free(trial: FrozenTrial) -> bool:
    """Whether an attempt was given up; one that failed by itself says so."""
    return trial.state == TrialState.FAIL and trial.user_attrs.get(_RESULT, {}).get("state") != "failed"


def _values(trial: FrozenTrial) -> Values:
    return dict(trial.user_attrs["values"])


_STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
}


def _trial(slot: int, attempts: Sequence[FrozenTrial]) -> Trial:
    last = attempts[-1]
    state: State = _STATES.get(last.state, "running" if _is_free(last) else "failed")
    result = last.user_attrs.get(_RESULT, {}) if state != "running" else {}
    return Trial(
        slot,
        state,
        _values(last),
        {int(number): score for number, score in result.get("scores", {}).items()},
        result.get("costs", {}),
        result.get("failures", 0),
        result.get("error"),
        len(attempts),
    )
