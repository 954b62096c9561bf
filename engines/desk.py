"""What worker processes share with the process that started them: gates, budgets, replies and indexes.

These objects stay where they are. `Desk.dumps` leaves them out of what is sent to a worker, and `loads` puts objects in
their place that call them. So limits and budgets hold for all workers together.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import cloudpickle
import dspy
from dspy.clients.cache import Cache
from filelock import FileLock

from ..data.errors import PolyhopError
from ..data.lucene.bm25 import OpenIndex
from .budget import Budget
from .limits import RateLimit

Call = Callable[[int, str, tuple[Any, ...], dict[str, Any]], Any]
"""Calls a method of a shared object, by its number."""

_REPLIES, _INDEXES = 0, 1
_CHUNK = 8 << 20  # bytes of a file that are sent at a time


class Desk:
    """The shared objects of this process. Thread-safe."""

    def __init__(self) -> None:
        self._indexes: set[Path] = set()
        self._objects: list[Any] = [_Replies(), _Indexes(self._indexes)]
        self._slots: Counter[tuple[int, int]] = Counter()  # by worker and gate
        self._lost: set[int] = set()
        self._lock = Lock()

    def dumps(self, value: Any) -> bytes:
        """Pickle a value without the shared objects in it."""
        file = io.BytesIO()
        _Pickler(file, self).dump(value)
        return file.getvalue()

    def uses(self, index: Path) -> None:
        """Workers need an index, which is copied to where it is missing."""
        self._indexes.add(index.absolute())

    def number(self, shared: Any) -> int:
        """The number of a shared object."""
        found = next((n for n, each in enumerate(self._objects) if each is shared), None)
        if found is None:
            found = len(self._objects)
            self._objects.append(shared)
        return found

    def call(self, worker: int, number: int, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a method for a worker."""
        shared = self._objects[number]
        if not isinstance(shared, RateLimit):
            return getattr(shared, method)(*arguments, **named)
        if method == "leave" and not self._count(worker, number, -1):
            return None  # given back when the worker was lost
        result = getattr(shared, method)(*arguments, **named)
        if method == "enter" and result[0] and not self._count(worker, number, 1):
            shared.leave()
        return result

    def _count(self, worker: int, number: int, change: int) -> bool:
        """Count a slot of a worker; False if the worker is lost."""
        with self._lock:
            if worker not in self._lost:
                self._slots[worker, number] += change
            return worker not in self._lost

    def lost(self, worker: int) -> None:
        """A worker has ended: its requests are no longer under way."""
        with self._lock:
            self._lost.add(worker)
            held = {number: count for (each, number), count in self._slots.items() if each == worker}
        for number, count in held.items():
            for _ in range(count):
                self._objects[number].leave()


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, desk: Desk) -> None:
        super().__init__(file)
        self._desk = desk

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, RateLimit):
            return "limit", self._desk.number(value), value.limits
        if isinstance(value, Budget):
            return "budget", self._desk.number(value), value.usd
        if isinstance(value, OpenIndex):
            self._desk.uses(value.path)
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, call: Call) -> None:
        super().__init__(io.BytesIO(content))
        self._call = call
        self._made: dict[int, Any] = {}

    def persistent_load(self, pid: Any) -> Any:
        kind, number, settings = pid
        if number not in self._made:
            made = self._made[number] = RateLimit(settings) if kind == "limit" else Budget(usd=settings)
            made.shared = _Remote(number, self._call)
        return self._made[number]


def loads(content: bytes, call: Call) -> Any:
    """Unpickle a value in a worker. ``call`` reaches the shared objects."""
    return _Unpickler(content, call).load()


def fetch_indexes(call: Call) -> None:
    """In a worker process: copy the indexes that this machine does not have from the process that started it.

    Raises:
        PolyhopError: this machine cannot store one.
    """
    driver = _Remote(_INDEXES, call)
    for path in driver.paths():
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(path.with_name(f"{path.name}.lock")):  # one worker of this machine copies it
                    if not path.exists():
                        _copy(driver, path)
        except OSError as error:
            raise PolyhopError(
                f"the index {path} is missing on {gethostname()} and cannot be copied there: {error.strerror}"
            ) from error


def _copy(driver: Any, path: Path) -> None:
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.") as folder:
        part = Path(folder) / path.name
        for name, size in driver.files(path):
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            with (part / name).open("wb") as file:
                for start in range(0, size, _CHUNK):
                    file.write(driver.read(path, name, start))
        part.rename(path)


class _Indexes:
    """The files of indexes, for workers on other machines."""

    def __init__(self, paths: set[Path]) -> None:
        self._paths = paths

    def paths(self) -> list[Path]:
        return sorted(self._paths)

    def files(self, index: Path) -> list[tuple[str, int]]:
        files = [file for file in index.rglob("*") if file.is_file() and file.name != "write.lock"]
        return [(str(file.relative_to(index)), file.stat().st_size) for file in files]

    def read(self, index: Path, name: str, start: int) -> bytes:
        with (index / name).open("rb") as file:
            file.seek(start)
            return file.read(_CHUNK)


def share_cache(call: Call) -> None:
    """In a worker process: use the cache of replies of the process that started it."""
    dspy.cache = _SharedCache(_Remote(_REPLIES, call))


class _Remote:
    """A shared object, in a worker."""

    def __init__(self, number: int, call: Call) -> None:
        self._number, self._call = number, call

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *arguments, **named: self._call(self._number, method, arguments, named)


class _Replies:
    """The cache of this process, for workers."""

    def get(self, request: dict[str, Any], ignored: list[str] | None) -> Any:
        return dspy.cache.get(request, ignored)

    def put(self, request: dict[str, Any], reply: Any, ignored: list[str] | None) -> None:
        dspy.cache.put(request, reply, ignored)


class _SharedCache(Cache):
    """In a worker: its own memory in front of the cache of the process that started it."""

    def __init__(self, driver: Any) -> None:
        super().__init__(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=None)
        self._driver = driver

    def get(self, request: dict[str, Any], ignored_args_for_cache_key: list[str] | None = None) -> Any:
        found = super().get(request, ignored_args_for_cache_key)
        return self._driver.get(request, ignored_args_for_cache_key) if found is None else found

    def put(
        self,
        request: dict[str, Any],
        value: Any,
        ignored_args_for_cache_key: list[str] | None = None,
        enable_memory_cache: bool = True,
    ) -> None:
        super().put(request, value, ignored_args_for_cache_key, enable_memory_cache)
        self._driver.put(request, value, ignored_args_for_cache_key)
