"""Which workers live: a trial whose worker is dead is tried again, by whoever notices first.

Being wrong about it costs work and nothing else: the result of a trial that was given up is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Protocol
from uuid import uuid4

import optuna
from filelock import FileLock, Timeout
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial

WORKER, BEATS = "worker", "beats"  # attributes of a trial


class Alive(Protocol):
    """A worker's sign of life, and how it sees that of the others.

    Attributes:
        worker: Its name; no two workers ever have the same.
    """

    worker: str

    def hold(self, trial_id: int) -> None:
        """This worker has begun a trial."""

    def dead(self, running: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Those of the running trials whose workers are dead."""

    def close(self) -> None:
        """This worker ends."""


class Alone:
    """For a study in the memory of a process: whoever sees it lives."""

    def __init__(self) -> None:
        self.worker = uuid4().hex

    def hold(self, trial_id: int) -> None: ...

    def dead(self, running: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        return []

    def close(self) -> None: ...


class Locks:
    """A worker holds a locked file in a folder; the system unlocks it when the worker dies, however that comes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self.worker = folder, uuid4().hex
        self._lock = FileLock(self._path(self.worker))
        self._lock.acquire()

    def hold(self, trial_id: int) -> None: ...

    def dead(self, running: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        workers = {trial.user_attrs[WORKER] for trial in running} - {self.worker}
        gone = {worker for worker in workers if self._is_dead(worker)}
        return [trial for trial in running if trial.user_attrs[WORKER] in gone]

    def close(self) -> None:
        self._lock.release()
        self._path(self.worker).unlink(missing_ok=True)

    def _is_dead(self, worker: str) -> bool:
        path = self._path(worker)
        if not path.exists():
            return True  # it was there, locked, before the worker's first trial
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        lock.release()
        path.unlink(missing_ok=True)
        return True

    def _path(self, worker: str) -> Path:
        return self._folder / f"{worker}.lock"


class Heartbeats:
    """A worker notes in the database, by the database's clock, that its trial is alive.

    Args:
        grace: Seconds without a heartbeat after which a trial counts as dead.
    """

    def __init__(self, storage: optuna.storages.RDBStorage, study_id: int, grace: int) -> None:
        self._storage, self._study_id, self._grace = storage, study_id, grace
        self.worker = uuid4().hex
        self._trial_id: int | None = None
        self._closed = Event()
        self._thread = Thread(target=self._beat, daemon=True)
        self._thread.start()

    def hold(self, trial_id: int) -> None:
        self._storage.record_heartbeat(trial_id)
        self._storage.set_trial_user_attr(trial_id, BEATS, True)
        self._trial_id = trial_id

    def dead(self, running: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        stale = set(self._storage._get_stale_trial_ids(self._study_id))  # optuna has no public name for it
        # One that was killed before its first heartbeat has no time in the database but the start by its own clock.
        long_ago = datetime.now() - timedelta(seconds=self._grace)
        return [
            trial
            for trial in running
            if trial._trial_id in stale
            or (BEATS not in trial.user_attrs and trial.datetime_start and trial.datetime_start < long_ago)
        ]

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._closed.wait(self._grace / 4):
            if (trial_id := self._trial_id) is not None:
                with suppress(StorageInternalError):  # the database may be back at the next beat
                    self._storage.record_heartbeat(trial_id)
