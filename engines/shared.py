"""One budget and one set of limits for the workers of a Ray: both stay in an actor, which the workers call.

`dumps` leaves these objects out of what is sent to a worker, and `loads` puts objects in their place that call the
actor.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any

import cloudpickle

from .budget import Budget
from .limits import RateLimit

Call = Callable[..., Any]
"""Calls a method of a shared object: its number, the method, the arguments."""


class Shared:
    """The actor: it holds the objects, on the machine of the driver. Thread-safe."""

    def __init__(self, objects: bytes) -> None:
        self._objects: list[Any] = cloudpickle.loads(objects)
        self._under_way: Counter[tuple[int, int]] = Counter()  # requests, by worker and limit
        self._lock = Lock()

    def call(self, worker: int, number: int, method: str, *arguments: Any, **named: Any) -> tuple[Any, Any]:
        """The result and the error of a method; an error that is no `Exception` would end the actor."""
        try:
            result = getattr(self._objects[number], method)(*arguments, **named)
        except BaseException as error:  # noqa: BLE001  # raised in the worker
            return None, error
        with self._lock:
            self._under_way[worker, number] += (method == "enter" and result[0]) - (method == "leave")
        return result, None

    def lost(self, worker: int) -> None:
        """A worker has ended: its requests are no longer under way."""
        with self._lock:
            left = [number for (each, number), count in self._under_way.items() if each == worker for _ in range(count)]
        for number in left:
            self._objects[number].leave()


def dumps(value: Any) -> tuple[bytes, bytes]:
    """A value without the shared objects in it, and these objects, both pickled."""
    file, objects = io.BytesIO(), list[Any]()

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, each: Any) -> Any:
            if not isinstance(each, Budget | RateLimit):
                return None
            if each not in objects:
                objects.append(each)
            return objects.index(each), type(each), each.usd if isinstance(each, Budget) else each.limits

    Pickler(file).dump(value)
    for each in objects:
        if isinstance(each, Budget):
            each.keep_in_file()
    return file.getvalue(), cloudpickle.dumps(objects)


def loads(content: bytes, call: Call) -> Any:
    """In a worker: the value, whose shared objects are reached by ``call``."""
    made: dict[int, Any] = {}

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            number, kind, setting = pid
            if number not in made:
                made[number] = kind(usd=setting) if kind is Budget else kind(setting)
                methods = ("pay", "correct", "enter", "leave", "hold", "closed")
                made[number].shared = SimpleNamespace(**{name: partial(call, number, name) for name in methods})
            return made[number]

    return Unpickler(io.BytesIO(content)).load()
