"""Several workers on one search, each in a process of its own."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from copy import copy
from multiprocessing import get_context, parent_process

import dspy

from ...data.errors import PolyhopError
from .run import Progress, Run
from .search import TunableSearch

Make = Callable[[], tuple[dspy.Module, Sequence[dspy.Example]]]

_LOOK = 0.5  # seconds, from one look at the trials of the workers to the next


def tune_in_processes(make: Make, search: TunableSearch, jobs: int) -> dspy.Module:
    """`TunableSearch.compile` with several processes on its storage; sets ``search.outcome`` as well.

    A worker that dies is done without: the others take its trial over, and the same call continues a search whose
    workers have all died. With more than one worker a search is no longer the same each time, since what a sampler
    knows depends on who is faster.

    Args:
        make: Makes the program and the questions; called in every process, since a program with an index cannot be sent
            to another one. It can be pickled (a function of a module, or a `functools.partial` of one) and does all
            that the program needs: a new process knows nothing of ``dspy.configure``.
        search: What to search; its metric can be pickled, and its storage is a file or a database.

    Raises:
        PolyhopError: as `TunableSearch.compile`, and if all workers have died.
    """
    if jobs < 1:
        raise PolyhopError(f"there is at least one process, got {jobs}")
    if search.storage is None:
        raise PolyhopError("processes share a search by its storage: name a file or a database")
    sent = copy(search)
    sent.on_trial, sent.outcome = _say_nothing, None
    try:
        pickle.dumps((make, sent))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PolyhopError(
            f"make and the metric go to other processes, so they are functions of a module: {error}"
        ) from error
    student, questions = make()
    with Run(search, student, questions) as run:
        _oversee(make, sent, jobs, run, search.on_trial)
        search.outcome = run.outcome()
    return search.tuned(student)


def _oversee(make: Make, search: TunableSearch, jobs: int, run: Run, on_trial: Callable[[Progress], None]) -> None:
    told = set(run.ended())
    # Not forked: Java does not survive it. One pool each, for a pool ends all its processes when one dies.
    pools = [ProcessPoolExecutor(1, get_context("spawn"), _serve) for _ in range(jobs)]
    try:
        working = {pool.submit(_work, make, search) for pool in pools}
        dead: BrokenProcessPool | None = None
        while working:
            done, working = wait(working, _LOOK, FIRST_COMPLETED)
            for slot, trial in run.ended().items():
                if slot not in told:
                    told.add(slot)
                    on_trial(run.progress(trial))
            for future in done:
                dead = _death(future) or dead
        if dead and len(run.ended()) < run.trials:
            raise PolyhopError("all workers were ended from outside; the search can be continued") from dead
    except BaseException:
        for pool in pools:
            for process in (getattr(pool, "_processes", None) or {}).values():
                process.terminate()  # what it has measured is in the storage
        raise
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)


def _death(future: Future[None]) -> BrokenProcessPool | None:
    """
    Raises:
        BaseException: what the worker raised.
    """
    try:
        future.result()
    except BrokenProcessPool as error:
        return error
    return None


def _work(make: Make, search: TunableSearch) -> None:
    student, questions = make()
    with Run(search, student, questions) as run:
        run.work()


def _say_nothing(progress: Progress) -> None: ...


def _serve() -> None:
    """How a worker begins: Ctrl-C goes to every process, and the first one ends the others; without it they end."""
    atexit.register(os._exit, 0)  # an abandoned thread may hold the import lock, and Python would wait for it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # what was measured is in the storage
