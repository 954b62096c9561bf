"""The run of a program on one question. Its parts share it instead of passing it on:

    search(query)                 # searches the question's own passages, and is in the trace
    record(Selected(1, kept))     # a further step of the trace

`Program.__call__` opens a run; `together` opens a branch of it in each thread. Awaited programs run `in_thread`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import anyio
import dspy
from anyio import from_thread, to_thread

from ..data.passages import Hit, Passage
from ..data.pool import PassagePool
from .trace import Parallel, Trace, TraceStep

T = TypeVar("T")
Pool: TypeAlias = Sequence[Passage] | PassagePool | None
"""A question's own passages, if it has some."""

PROMPT_TOKENS = 6_000
"""The default budget of a call: with a reply and the error of the estimate less than 8,000."""

ABSTAIN_BELOW = 0.5
"""The default of the least confidence: an answer that is more likely wrong than right is shown as a guess."""


@dataclass
class Run:
    """What the parts of a program share while it answers one question."""

    question: str = ""
    pool: Pool = None
    prompt_tokens: int = PROMPT_TOKENS  # of one call
    abstain_below: float = 0.0  # with a lower confidence the answer is "unknown"
    trace: Trace = field(default_factory=Trace)
    seen: list[Hit] = field(default_factory=list)  # the hits of all searches, in order

    @property
    def passages(self) -> dict[str, Passage]:
        """The passages seen, by id, in the order in which searches found them."""
        return {hit.passage.id: hit.passage for hit in self.seen}


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
    path = run.trace.branch
    branches = [replace(run, trace=Trace(branch=(*path, n)), seen=[]) for n in range(1, len(tasks) + 1)]
    records: list[list[object]] = [[] for _ in tasks]
    outcomes: list[Future[T]] = [Future() for _ in tasks]

    def act(n: int) -> None:
        with running(branches[n]), dspy.context(trace=None if recorded is None else records[n]):
            try:
                outcomes[n].set_result(tasks[n]())
            except BaseException as error:  # noqa: BLE001  # raised once all are done
                outcomes[n].set_exception(error)

    async def act_all() -> None:
        async with anyio.create_task_group() as group:
            for n in range(len(tasks)):
                group.start_soon(partial(to_thread.run_sync, act, n, limiter=anyio.CapacityLimiter(1)))

    try:
        from_thread.run(act_all)  # in threads that streams and cancellation reach
    except anyio.NoEventLoopError:  # nobody awaits it
        with ThreadPoolExecutor(len(tasks)) as pool:
            for n in range(len(tasks)):
                pool.submit(copy_context().run, act, n)
    run.trace.add(Parallel(tuple(branch.trace for branch in branches)))
    run.seen += [hit for branch in branches for hit in branch.seen]
    if recorded is not None:
        recorded.extend(call for calls in records for call in calls)
    return [outcome.result() for outcome in outcomes]


async def in_thread(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What a call returns, in a thread: like `dspy.asyncify`, but without a limit on how many run at a time, and if the
    task is cancelled, the call ends before its next agent or search."""
    scope = anyio.CancelScope()
    try:
        with scope:
            work = partial(call, *args, **kwargs)
            result = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    finally:
        scope.cancel()
    return result
