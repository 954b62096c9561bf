"""Where a search is stored: in a journal file, in a database, or in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from ...data.errors import PolyhopError
from ...eval.folder import cut_half_line
from .result import TrialRecord
from .sampling import directions, quiet

_TRIAL = "trial"  # the user attribute that holds a trial's record


@contextmanager
def open_study(where: str | Path | None, name: str, cost: bool) -> Iterator[optuna.Study]:
    """A study, which is created if needed, in the journal file or database URL ``where``, or in memory. A journal is
    locked meanwhile. ``cost``: whether there is a second objective.
    """
    lock, storage = None, None
    try:
        with quiet():
            if where is not None and "://" in str(where):
                storage = _database(str(where))
            elif where is not None:
                lock = _lock(Path(where))
                storage = _journal(Path(where))
            study = optuna.create_study(
                storage=storage, study_name=name, directions=directions(cost), load_if_exists=True
            )
        yield study
    except StorageInternalError as error:
        raise PolyhopError(f"the storage of the search failed: {_reason(error)}; the search can be resumed") from error
    finally:
        if lock is not None:
            lock.release()


def attributes(trial: TrialRecord) -> dict[str, Any]:
    """The user attributes of a stored trial."""
    return {_TRIAL: trial.model_dump() | {"scores": trial.scores, "failure": trial.failure}}


def trials_of(study: optuna.Study) -> list[TrialRecord]:
    """The stored trials by number."""
    found: dict[int, TrialRecord] = {}
    for trial in study.get_trials(deepcopy=False):
        record = TrialRecord.model_validate(trial.user_attrs[_TRIAL])
        found.setdefault(record.number, record)
    return [found[number] for number in sorted(found)]


def read_trials(journal: Path) -> list[TrialRecord]:
    """The trials in a journal, also of a running search; nothing is written.

    Raises:
        PolyhopError: the journal is missing or damaged.
    """
    if not journal.is_file():  # Optuna would create it
        raise PolyhopError(f"{journal} does not exist")
    with quiet():
        storage = _journal(journal)
        names = optuna.get_all_study_names(storage)
        return [trial for name in names for trial in trials_of(optuna.load_study(study_name=name, storage=storage))]


def _lock(path: Path) -> FileLock:
    """The lock of a journal, which the system releases when its holder is killed. A line that was cut off by a kill is
    removed."""
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
        with path.open("a+b") as file:
            cut_half_line(file)
    except Timeout:
        raise PolyhopError(f"another process is running the search in {path}") from None
    except OSError as error:
        lock.release()
        raise PolyhopError(f"the search cannot be stored in {path}: {error.strerror}") from error
    return lock


class _Unlocked(JournalFileOpenLock):
    """In place of Optuna's lock file, which would outlive a killed process by 30 s: `_lock` is held already."""

    def __init__(self) -> None: ...

    def acquire(self) -> bool:
        return True

    def release(self) -> None: ...


def _journal(path: Path) -> BaseStorage:
    try:
        return JournalStorage(JournalFileBackend(str(path), lock_obj=_Unlocked()))
    except OSError as error:
        raise PolyhopError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, AssertionError) as error:
        raise PolyhopError(f"{path} is not a journal of a search, or damaged ({error}): name another file") from error


def _database(url: str) -> BaseStorage:
    shown = url.partition("://")[0] + "://..."  # without the password
    try:
        return RDBStorage(url)
    except (ArgumentError, NoSuchModuleError) as error:
        raise PolyhopError(f"{shown} is not a database that SQLAlchemy supports: {error}") from error
    except ImportError as error:
        extra = ": make postgres" if url.startswith("postgresql") else ""
        raise PolyhopError(f"the driver of {shown} is not installed ({error}){extra}") from error
    except (DBAPIError, StorageInternalError) as error:
        raise PolyhopError(f"the database {shown} cannot be opened: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition("\n")[0]
