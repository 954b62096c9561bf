"""Where a study is kept: in a journal file, in a database, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from filelock import FileLock
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from ...data.errors import PolyhopError
from ...eval.folder import cut_half_line
from .alive import Alive, Alone, Heartbeats, Locks
from .sampler import quiet

GRACE = 60
"""Seconds without a sign of life after which a worker on a database counts as dead."""


def open_storage(where: str | Path | None, grace: int = GRACE) -> tuple[BaseStorage, Callable[[int], Alive]]:
    """Optuna's storage, and what makes the sign of life of a worker on one of its studies, by its number.

    Args:
        where: The path of a journal file, the URL of a database as SQLAlchemy has it, or None for memory.

    Raises:
        PolyhopError: it cannot be opened.
    """
    if where is None:
        return InMemoryStorage(), lambda study: Alone()
    if "://" in str(where):
        database = _database(str(where), grace)
        return database, lambda study: Heartbeats(database, study, grace)
    path = Path(where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        journal = JournalStorage(JournalFileBackend(str(path), lock_obj=_JournalLock(path)))
    except OSError as error:
        raise PolyhopError(f"the study cannot be kept in {path}: {error.strerror}") from error
    except (ValueError, KeyError) as error:
        raise PolyhopError(f"{path} is no journal of a study, or damaged ({error}): name another file") from error
    return journal, lambda study: Locks(path.with_name(f"{path.name}.workers"))


def read_journal(path: Path) -> BaseStorage:
    """A journal to be read, also while a search writes to it: nothing is locked, made or changed.

    Raises:
        PolyhopError: there is none, or it is damaged.
    """
    try:
        path.open("rb").close()  # optuna would make one
        return JournalStorage(JournalFileBackend(str(path), lock_obj=_NoLock()))
    except OSError as error:
        raise PolyhopError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, AssertionError) as error:
        raise PolyhopError(f"{path} is no journal of a study, or damaged ({error})") from error


def _database(url: str, grace: int) -> RDBStorage:
    told = url.partition("://")[0] + "://..."  # without the password
    connect = {"timeout": 60} if url.startswith("sqlite") else {}  # seconds that a writer waits for another
    for attempt in (1, 2, 3):
        try:
            with quiet():
                return RDBStorage(
                    url,
                    engine_kwargs={"connect_args": connect},
                    heartbeat_interval=max(1, grace // 4),
                    grace_period=grace,
                )
        except (ArgumentError, NoSuchModuleError) as error:
            raise PolyhopError(f"{told} is no database that SQLAlchemy knows: {error}") from error
        except ImportError as error:
            extra = ": pip install 'polyhop[postgres]'" if url.startswith("postgresql") else ""
            raise PolyhopError(f"the driver of {told} is not installed ({error}){extra}") from error
        except (DBAPIError, optuna.exceptions.StorageInternalError) as error:
            # Two workers that come first make the tables at the same time, and one of them fails.
            if attempt == 3:
                raise PolyhopError(f"the database {told} does not open: {_reason(error)}") from error
    raise AssertionError("unreachable")


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition("\n")[0]


class _JournalLock(JournalFileOpenLock):
    """The system's lock, which is gone when its holder is killed (optuna's own then holds up everyone for 30 s); and
    the half line that a killed holder leaves behind is cut off before it spoils the next one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))

    def acquire(self) -> bool:
        self._lock.acquire()
        with self._path.open("r+b") as file:
            cut_half_line(file)
        return True

    def release(self) -> None:
        self._lock.release()


class _NoLock(JournalFileOpenLock):
    """For reading, which needs none; whoever writes is refused."""

    def __init__(self) -> None: ...

    def acquire(self) -> bool:
        raise PolyhopError("this journal is only read")

    def release(self) -> None: ...


@contextmanager
def trouble() -> Iterator[None]:
    """What goes wrong with a storage on the way, in one line.

    Raises:
        PolyhopError: instead of the storage's own error.
    """
    try:
        yield
    except optuna.exceptions.StorageInternalError as error:
        raise PolyhopError(f"the study's storage fails: {_reason(error)}; the search can be continued") from error
