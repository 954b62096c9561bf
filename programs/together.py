"""Side by side: several agents, judges or branches of a plan at once, each with a trace of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import dspy

from .trace import Parallel, Trace

T = TypeVar("T")


def together(trace: Trace, tasks: Sequence[Callable[[Trace], T]]) -> list[T]:
    """Run tasks at the same time, in threads, and return their results in the order of the tasks.

    Every task records its steps in the trace that it is given; the branches become one `Parallel` step of ``trace``,
    also when a task fails. A single task runs in this thread and records in ``trace`` itself. DSPy's settings (model,
    adapter, usage) are those of the caller; what DSPy records for teleprompters is put in the order of the tasks.

    Raises:
        BaseException: what the first task that failed raised, when all tasks are done.
    """
    if len(tasks) < 2:
        return [task(trace) for task in tasks]
    branches = [Trace() for _ in tasks]
    recorded = dspy.settings.trace
    records: list[list[object]] = [[] for _ in tasks]

    def run(n: int) -> T:
        with dspy.context(trace=None if recorded is None else records[n]):
            return tasks[n](branches[n])

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(copy_context().run, run, n) for n in range(len(tasks))]
    trace.add(Parallel(tuple(branches)))
    if recorded is not None:
        for record in records:
            recorded.extend(record)
    return [future.result() for future in futures]
