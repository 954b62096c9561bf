"""Conversions in processes of their own: a hostile or huge document cannot take the memory or the time of an index.

A process converts one document after another, each within `MEMORY`, `SECONDS`, and the time of the processor that its
size allows. It ends with a document that takes longer or lets it grow large, which costs that document only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import Any, TypeVar

from .converters import TOO_LARGE, Text, Unreadable, convert
from .splitting import Line

MEMORY = 4 << 30  # bytes
SECONDS = 300.0  # for one document
# Of the processor, so that it does not depend on what else runs. The slowest PDF files that we know take 20 a megabyte;
# without such a limit a small bomb keeps all others waiting for `SECONDS`.
_COMPUTING, _COMPUTING_A_MB = 30.0, 60.0
_SMALL = 1 << 12  # bytes of a document that is converted at once: parsers may take a time that is cubic in the size
_GROWN = 1 << (20 if sys.platform == "linux" else 30)  # 1 GB, in the units of `ru_maxrss`
_PLAIN = frozenset(".txt .text .md .markdown .rst .html .htm .xhtml .csv .tsv .ipynb".split())  # not compressed
_LONGEST_REPLY = 128 << 20  # characters of a document as JSON, in which each line has its headings
_AHEAD = 8  # documents for each process, so that they have work while a slow one is waited for
_TOLD_EVERY = 0.2  # seconds

Job = TypeVar("Job")


def conversions(
    jobs: Iterable[tuple[Job, Path | None]],
    on_wait: Callable[[Job], None] = lambda job: None,
    seconds: float = SECONDS,
) -> Iterator[tuple[Job, Text | Unreadable | None]]:
    """Convert documents in several processes: each job with what its document says, in their order.

    Args:
        jobs: With the path of a document, or None for no document. A few are converted ahead.
        on_wait: Called with a job several times a second while its document is waited for.
        seconds: Most that a document may take.
    """
    threads, jobs = min(4, os.cpu_count() or 1), iter(jobs)
    started, idle = list[_Process](), list[_Process]()
    waiting = deque[tuple[Job, Future[Text | Unreadable] | None]]()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="polyhop-convert")

    def converted(path: Path) -> Text | Unreadable:
        if _is_small(path):
            return _converted(path)
        try:
            process = idle.pop()
        except IndexError:
            started.append(process := _Process())
        reply = process.ask(path, seconds)
        if reply.get("is_last", True):
            process.end()
        else:
            idle.append(process)
        if "error" in reply:
            return Unreadable(reply["error"])
        return Text(reply["title"], [Line.of(values) for values in reply["lines"]], reply["metadata"])

    def submit(count: int) -> None:
        for job, path in islice(jobs, count):
            waiting.append((job, pool.submit(converted, path) if path else None))

    try:
        submit(_AHEAD * threads)
        while waiting:
            job, result = waiting.popleft()
            while result and not wait([result], _TOLD_EVERY).done:
                on_wait(job)
            yield job, result.result() if result else None
            submit(1)
    finally:  # perhaps while a document is converted, which nobody waits for any more
        pool.shutdown(wait=False, cancel_futures=True)
        while started:
            started.pop().end()


class _Process:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for the process that waits
        )

    def ask(self, path: Path, seconds: float) -> dict[str, Any]:
        """The reply, or what happened to the process."""
        assert self._process.stdin
        assert self._process.stdout
        start, reply, end = monotonic(), "", Timer(seconds, self._process.kill)
        size = path.stat().st_size if path.exists() else 0
        computing = min(seconds, _COMPUTING + _COMPUTING_A_MB * size / 1e6)
        end.start()
        with suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps([str(path.absolute()), computing]) + "\n")
            self._process.stdin.flush()
            reply = self._process.stdout.readline()
        end.cancel()
        is_late = monotonic() - start >= seconds  # perhaps it is killed after its reply
        if reply.endswith("\n"):
            return {**json.loads(reply), **({"is_last": True} if is_late else {})}
        if is_late:
            return {"error": f"its conversion took more than {seconds:g} s"}
        self._process.kill()
        if self._process.wait() == -getattr(signal, "SIGPROF", 0):
            return {"error": f"its conversion took more than {computing:.0f} s of computing, much for its size"}
        return {"error": "its conversion failed: the process ended"}

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, AttributeError, ValueError):
                pipe.close()  # type: ignore[union-attr]


def _serve() -> None:
    """Convert the documents whose paths are read from the standard input."""
    try:
        from resource import RLIMIT_AS, RUSAGE_SELF, getrusage, setrlimit
    except ImportError:  # Windows: the time is bounded only
        _convert_each(lambda: 0)
    else:
        setrlimit(RLIMIT_AS, (MEMORY, MEMORY))
        _convert_each(lambda: getrusage(RUSAGE_SELF).ru_maxrss)


def _convert_each(peak: Callable[[], int]) -> None:
    computes, limit = getattr(signal, "ITIMER_PROF", 0), getattr(signal, "setitimer", lambda timer, seconds: None)
    before = peak()  # perhaps that of the process that started this one
    for line in sys.stdin:
        name, seconds = json.loads(line)
        limit(computes, seconds)  # ends the process, also if nobody waits any more
        text = _converted(Path(name))
        limit(computes, 0)
        given = {"error": str(text)} if isinstance(text, Unreadable) else text._asdict()
        reply = json.dumps({**given, "is_last": peak() > before + _GROWN})
        print(reply if len(reply) <= _LONGEST_REPLY else json.dumps({"error": TOO_LARGE}), flush=True)


def _is_small(path: Path) -> bool:
    """Whether it is not compressed, and small; also if it cannot be looked at."""
    try:
        return path.suffix.lower() in _PLAIN and path.stat().st_size <= _SMALL
    except OSError:
        return True


def _converted(path: Path) -> Text | Unreadable:
    try:
        return convert(path)
    except Unreadable as error:
        return error


if __name__ == "__main__":
    _serve()
