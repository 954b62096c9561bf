"""Many questions at once: a bounded number of threads, a time limit for each question, and none that is waited for in
vain.

Every task has a thread of its own. A thread costs 0.1 ms, and it can be given up: Python cannot stop a thread, so one
that takes too long is left alone and another takes its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Task(Generic[T]):
    """What one thread does.

    Attributes:
        work: Runs in the thread.
        give_up: Tells ``work`` that nobody waits for it any more.
        timed_out: The result of one that took too long.
    """

    work: Callable[[], T]
    give_up: Callable[[], None]
    timed_out: Callable[[], T]


class Window(Generic[T]):
    """Runs tasks in at most ``threads`` threads, which inherit the context (DSPy's settings) of who starts them.

    Args:
        threads: Tasks that run at the same time.
        timeout: Seconds that a task may take; None for any time.
    """

    def __init__(self, threads: int, timeout: float | None = None) -> None:
        if threads < 1:
            raise ValueError(f"threads must be positive, got {threads}")
        self._threads = threads
        self._timeout = inf if timeout is None else timeout
        self._deadlines: dict[Task[T], float] = {}  # of the running tasks, in the order in which they were started
        self._done: SimpleQueue[tuple[Task[T], T | BaseException, float]] = SimpleQueue()

    @property
    def full(self) -> bool:
        return len(self._deadlines) >= self._threads

    @property
    def busy(self) -> bool:
        return bool(self._deadlines)

    def start(self, task: Task[T]) -> None:
        self._deadlines[task] = monotonic() + self._timeout
        # A daemon: one that hangs must not keep the process from ending.
        threading.Thread(target=copy_context().run, args=(self._run, task), daemon=True).start()

    def _run(self, task: Task[T]) -> None:
        try:
            result: T | BaseException = task.work()
        except BaseException as error:  # noqa: BLE001  # it is raised in the thread that waits
            result = error
        self._done.put((task, result, monotonic()))

    def next(self) -> T:
        """The result of the task that ends next, or runs out of time next.

        Raises:
            BaseException: what the task raised.
        """
        while True:
            first = next(iter(self._deadlines))
            left = max(self._deadlines[first] - monotonic(), 0.0)
            try:
                task, result, ended = self._done.get(timeout=None if left == inf else left)
            except Empty:
                del self._deadlines[first]
                first.give_up()
                return first.timed_out()
            deadline = self._deadlines.pop(task, None)
            if deadline is None:
                continue  # given up before
            if ended > deadline:
                return task.timed_out()
            if isinstance(result, BaseException):
                raise result
            return result

    def finished(self, grace: float) -> Iterator[T]:
        """Close early: the results of what ends within ``grace`` seconds; the rest is given up, and its results with
        it."""
        end = monotonic() + grace
        while self._deadlines:
            try:
                task, result, _ = self._done.get(timeout=max(end - monotonic(), 0.0))
            except Empty:
                break
            if self._deadlines.pop(task, None) is not None and not isinstance(result, BaseException):
                yield result
        for task in self._deadlines:
            task.give_up()
        self._deadlines.clear()
