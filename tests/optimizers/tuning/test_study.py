"""Slots: each is tried once, by one worker, and again by one other if that one dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tuning.alive import Alive
from polyhop.optimizers.tuning.space import Space, Values
from polyhop.optimizers.tuning.storage import open_storage
from polyhop.optimizers.tuning.study import Study, Trial

from .world import Hill

SPACE = Space.of(Hill())
SETTINGS: dict[str, Any] = {"seed": 0, "space": {"width": "0..1"}}


class Worker:
    """One that opens the study anew, as a process does."""

    def __init__(self, where: str | Path, settings: dict[str, Any] = SETTINGS, cost: str | None = None) -> None:
        self.storage: BaseStorage
        self.storage, alive = open_storage(where, grace=1)
        self.study = Study(self.storage, "s", settings, SPACE, cost)
        self.alive: Alive = alive(self.study.id)

    def take(self, slots: int = 3, draw: Callable[..., Values] | None = None) -> tuple[Trial, int] | None:
        return self.study.take(slots, self.alive, draw or self.draw)

    def draw(self, slot: int, earlier: Sequence[Trial]) -> Values:
        return {"width": slot / 10, "rounds": 1 + slot, "style": "plain"}

    def end(self, taken: tuple[Trial, int] | None, score: float = 0.5) -> bool:
        assert taken is not None
        return self.study.end(replace(taken[0], state="complete", scores={0: score}, costs={"calls": 2.0}), taken[1])


@pytest.fixture(params=["study.journal", "sqlite:///{}/study.db"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    name: str = request.param
    return name.format(tmp_path) if "://" in name else str(tmp_path / name)


def test_slots_are_taken_in_turn_and_each_once(where: str) -> None:
    first, second = Worker(where), Worker(where)
    taken = [first.take(), second.take(), first.take()]
    assert [trial.slot for trial, _ in filter(None, taken)] == [0, 1, 2]
    for worker, trial in zip((first, second, first), taken, strict=True):
        assert worker.end(trial)
    assert first.take() is None
    assert second.take() is None
    assert second.take(4) is not None  # the search goes on with more trials
    assert [(trial.slot, trial.state, trial.score) for trial in first.study.trials()][:3] == [
        (slot, "complete", 0.5) for slot in range(3)
    ]


def test_a_draw_sees_the_earlier_slots_and_who_still_runs(where: str) -> None:
    worker, seen = Worker(where), []

    def draw(slot: int, earlier: Sequence[Trial]) -> Values:
        seen.append([(trial.slot, trial.state) for trial in earlier])
        return worker.draw(slot, earlier)

    worker.end(worker.take(draw=draw))
    worker.take(draw=draw)
    worker.take(draw=draw)
    assert seen == [[], [(0, "complete")], [(0, "complete"), (1, "running")]]


def test_of_two_that_take_the_same_slot_the_first_has_it(where: str) -> None:
    """The second draws for slot 0 while the first takes it."""
    first, second = Worker(where), Worker(where)
    taken: list[Any] = []

    def slowly(slot: int, earlier: Sequence[Trial]) -> Values:
        if slot == 0:
            taken.append(first.take())
        return second.draw(slot, earlier)

    found = second.take(draw=slowly)
    assert found is not None
    assert (taken[0][0].slot, found[0].slot) == (0, 1)
    states = [trial.state for trial in second.storage.get_all_trials(second.study.id)]
    assert states == [TrialState.RUNNING, TrialState.FAIL, TrialState.RUNNING]
    assert [(trial.slot, trial.attempts) for trial in first.study.trials()] == [(0, 1), (1, 1)]


def test_what_was_given_up_is_tried_again_with_the_same_values(where: str) -> None:
    worker = Worker(where)
    worker.end(worker.take())
    taken = worker.take()
    assert taken is not None
    worker.study.give_up(taken[1])
    again = Worker(where).take(draw=lambda slot, earlier: pytest.fail("drawn anew"))
    assert again is not None
    assert (again[0].slot, again[0].values, again[0].attempts) == (1, taken[0].values, 2)


def test_the_result_of_a_trial_that_was_given_up_is_refused(where: str) -> None:
    slow, fast = Worker(where), Worker(where)
    taken = slow.take(1)
    assert taken is not None
    fast.study.give_up(taken[1])
    again = fast.take(1)
    assert not slow.end(taken, 0.9)
    assert fast.end(again, 0.4)
    assert [trial.score for trial in slow.study.trials()] == [0.4]


def test_a_dead_worker_has_its_trial_tried_again_by_one_other(where: str) -> None:
    dead, first, second = Worker(where), Worker(where), Worker(where)
    dead.take(2)
    dead.alive.close()  # as when its process is gone: no lock, no heartbeat
    one, two = first.take(2), second.take(2)
    if "://" in where:  # the heart beats for another second
        assert [taken and taken[0].slot for taken in (one, two)] == [1, 0]
    assert sorted((taken[0].slot, taken[0].attempts) for taken in (one, two) if taken) == [(0, 2), (1, 1)]
    assert len(first.storage.get_all_trials(first.study.id)) == 3


def test_a_worker_that_dies_before_its_first_heartbeat_is_noticed(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path}/study.db"
    dead, other = Worker(where), Worker(where)
    dead.alive.hold = lambda trial_id: None  # type: ignore[method-assign]
    dead.take(1)
    taken = other.take(1)
    assert taken is not None
    assert taken[0].attempts == 2


def test_a_failed_trial_is_an_end(where: str) -> None:
    worker = Worker(where)
    taken = worker.take(1)
    assert taken is not None
    assert worker.study.end(replace(taken[0], state="failed", error="no such thing"), taken[1])
    assert worker.take(1) is None
    assert [(trial.state, trial.error) for trial in worker.study.trials()] == [("failed", "no such thing")]


def test_optuna_sees_values_and_scores(where: str) -> None:
    """Whatever reads Optuna's studies, such as its dashboard, can read these."""
    worker = Worker(where, cost="calls")
    worker.end(worker.take(), 0.7)
    (trial,) = worker.storage.get_all_trials(worker.study.id)
    assert trial.params == {"width": 0.0, "rounds": 1, "style": "plain"}
    assert trial.values == [0.7, 2.0]


def test_other_settings_are_another_study(where: str) -> None:
    Worker(where)
    Worker(where)
    with pytest.raises(
        PolyhopError, match="other settings:\n  seed: 0 before, 1 now\n  space.width: 0..1 before, 0..2"
    ):
        Worker(where, {"seed": 1, "space": {"width": "0..2"}})


def test_a_line_that_a_killed_process_has_not_finished_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    worker = Worker(path)
    worker.end(worker.take(2))
    with path.open("ab") as file:
        file.write(b'{"op_code": 8, "trial_id')
    other = Worker(path)
    other.end(other.take(2))
    assert len(Worker(path).study.trials()) == 2


def test_what_is_no_journal_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    path.write_text("once upon a time\nthere was a file\n")
    with pytest.raises(PolyhopError, match="study.journal is no journal of a study, or damaged"):
        Worker(path)
    with pytest.raises(PolyhopError, match="cannot be kept in"):
        Worker(path / "below" / "a file")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("oracle+nothing://host/name", "oracle\\+nothing://... is no database that SQLAlchemy knows"),
        ("sqlite:////no/such/folder/study.db", "the database sqlite://... does not open: unable to open database file"),
        (
            "postgresql+pg8000://me:secret@localhost/x",
            "the driver of postgresql\\+pg8000://... is not installed .*postgres",
        ),
    ],
)
def test_a_database_that_does_not_open_is_an_error_without_its_password(url: str, said: str) -> None:
    with pytest.raises(PolyhopError, match=said) as raised:
        open_storage(url)
    assert "secret" not in str(raised.value)


def test_a_worker_that_dies_while_it_stores_its_result_has_not_tried(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Worker(where), Worker(where)
    taken = first.take()
    assert taken is not None

    def dies(*arguments: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(first.storage, "set_trial_state_values", dies)
        with pytest.raises(SystemExit):
            first.study.end(
                replace(
                    taken[0], state="complete", scores={0: 0.5}, costs={"calls": 2.0}, failures=1, error="a question"
                ),
                taken[1],
            )
    first.study.give_up(taken[1])  # as those who find it dead do
    again = second.take()
    assert again is not None
    assert (again[0].slot, again[0].values, again[0].attempts) == (0, taken[0].values, 2)
