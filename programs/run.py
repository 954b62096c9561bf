"""The run of a program on one question. Its parts share it instead of passing it on:

    search(query)                 # searches the question's own passages, and is in the trace
    record(Selected(1, kept))     # a further step of the trace

`Program.__call__` opens a run; `together` opens a branch of it in each thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

import dspy

from ..data.passages import Hit, Passage
from ..data.pool import PassagePool
from .trace import Parallel, Trace, TraceStep

T = TypeVar("T")

Pool: TypeAlias = Sequence[Passage] | PassagePool | None
"""A question's own passages, if it has some."""

PROMPT_TOKENS = 6_000
"""The default budget of a call: with a reply and the error of the estimate less than 8,000."""

ABSTAIN_BELOW = 0.1
"""The default of the least confidence: only what an agent does not believe itself is no answer."""


@dataclass
class Run:
    """What the parts of a program share while it answers one question."""

    question: str = ""
    pool: Pool = None
    prompt_tokens: int = PROMPT_TOKENS  # of one call
    abstain_below: float = 0.0  # with a lower confidence the answer is "unknown"
    trace: Trace = field(default_factory=Trace)
    seen: list[Hit] = field(default_factory=list)  # the hits of all searches, in order


_RUN: ContextVar[Run | None] = ContextVar("run", default=None)


def current() -> Run:
    """The run of this question; outside of programs a new one, which nobody reads."""
    return _RUN.get() or Run()


def record(step: TraceStep) -> None:
    """Add a step to the trace of the current run."""
    current().trace.add(step)


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """Inside, `current` is this run."""
    token = _RUN.set(run)
    try:
        yield run
    finally:
        _RUN.reset(token)


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks in parallel threads; returns their results in the order of the tasks.

    What a task records becomes a branch of one `Parallel` step, also if a task fails; a single task runs in this thread
    and without a branch. Threads use the caller's DSPy settings, and DSPy's trace of predictor calls keeps the order of
    the tasks.

    Raises:
        BaseException: the error of the first task that failed, once all are done.
    """
    if len(tasks) < 2:
        return [task() for task in tasks]
    run, recorded = current(), dspy.settings.trace
    trace = run.trace
    branches = [replace(run, trace=Trace(branch=(*trace.branch, n)), seen=[]) for n in range(1, len(tasks) + 1)]
    records: list[list[object]] = [[] for _ in tasks]

    def act(n: int) -> T:
        # DSPy's streams take messages only from the thread that `dspy.streamify` has started.
        with running(branches[n]), dspy.context(trace=None if recorded is None else records[n], send_stream=None):
            return tasks[n]()

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(copy_context().run, act, n) for n in range(len(tasks))]
    trace.add(Parallel(tuple(branch.trace for branch in branches)))
    for branch in branches:
        run.seen += branch.seen
    if recorded is not None:
        for each in records:
            recorded.extend(each)
    return [future.result() for future in futures]
