"""Documents converted in processes of their own, with limits of time and memory: one that exceeds them costs no other.

Processes of `concurrent.futures` and of Pebble would import the user's main module again, which scripts without
``if __name__ == "__main__"`` do not survive; these are started with a module of ours, and talk in pickles.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import local
from typing import TypeVar

from .convert import convert
from .html import Text, Unreadable

_MEMORY, _LARGE = 4 << 30, 1 << 20  # bytes of a process; of a document after which it is replaced
# Seconds of the processor for one document, so that it does not depend on what else runs, and more for each megabyte.
# The slowest PDF files that we know take 20.
_COMPUTING, _A_MEGABYTE, _LONGEST = 20.0, 60.0, 300.0
_AHEAD = 8  # documents for each process, so that they have work while a slow one is waited for

Job = TypeVar("Job")
Process = subprocess.Popen[bytes]

_IDLE: list[Process] = []  # that wait for the next documents, and end with this process
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)


def conversions(
    jobs: Iterable[tuple[Job, Path | None]], on_wait: Callable[[Job], None] = lambda job: None
) -> Iterator[tuple[Job, Text | Unreadable | None]]:
    """Convert documents, a few ahead.

    Args:
        jobs: With the path of a document, or None for no document.
        on_wait: Called with a job before its document is waited for, and each second meanwhile.

    Returns:
        Each job with what its document says, in their order.
    """
    threads, jobs, is_done = min(4, os.cpu_count() or 1), iter(jobs), False
    processes, mine = list[Process](), local()
    waiting = deque[tuple[Job, Future[Text | Unreadable] | None]]()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="polyhop-convert")

    def converted(path: Path) -> Text | Unreadable:
        """By the process of this thread."""
        process = getattr(mine, "process", None)
        if process is None or process.poll() is not None:
            process = mine.process = _process()
            processes.append(process)
        assert process.stdin
        assert process.stdout
        size = 0
        with suppress(OSError):  # which the process will tell
            size = path.stat().st_size
        seconds = min(_COMPUTING + _A_MEGABYTE * size / 1e6, _LONGEST)
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            pickle.dump((path.absolute(), seconds), process.stdin)
            process.stdin.flush()
            text: Text | Unreadable = pickle.load(process.stdout)
            if size > _LARGE:  # memory that was in use once is not free for the next one
                process.stdin.close()
                process.wait()
            return text
        process.kill()  # unless it has ended
        is_late = process.wait() == -signal.SIGPROF
        return Unreadable("its conversion took too long" if is_late else "its conversion failed: the process ended")

    def submit(count: int) -> None:
        for job, path in islice(jobs, count):
            waiting.append((job, pool.submit(converted, path) if path else None))

    try:
        submit(_AHEAD * threads)
        while waiting:
            job, future = waiting.popleft()
            on_wait(job)
            while future and not wait([future], timeout=1).done:
                on_wait(job)
            yield job, future.result() if future else None
            submit(1)
        is_done = True
    finally:  # perhaps while a document is converted, which nobody waits for any more
        pool.shutdown(wait=is_done, cancel_futures=True)
        for process in processes:
            if is_done and process.poll() is None:
                _IDLE.append(process)
            else:
                process.kill()
                process.wait()


def _process() -> Process:
    """One that waits, or a new one."""
    with suppress(IndexError):
        while True:
            if (process := _IDLE.pop()).poll() is None:
                return process
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the process that waits
    )


def _serve() -> None:
    """Convert the documents that are named on the standard input, until it ends; a late one ends the process."""
    from resource import RLIMIT_AS, setrlimit

    setrlimit(RLIMIT_AS, (_MEMORY, _MEMORY))
    while True:
        try:
            path, seconds = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, seconds)
        text: Text | Unreadable
        try:
            text = convert(path)
        except Unreadable as error:
            text = error
        signal.setitimer(signal.ITIMER_PROF, 0)
        pickle.dump(text, sys.stdout.buffer)
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
