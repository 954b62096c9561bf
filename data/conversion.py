"""Conversions in processes of their own: a hostile or huge document cannot take the memory or the time of an index.

A process converts one document after another, each within `MEMORY` and `SECONDS`. It ends with a document that takes
longer or lets it grow large, which costs that document only.
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
from queue import Empty, SimpleQueue
from threading import Thread, local
from time import perf_counter
from typing import Any, TypeVar

from . import converters
from .converters import Text, Unreadable, convert
from .files import LARGEST_RECORD
from .splitting import Line

MEMORY = 4 << 30  # bytes
SECONDS = 300.0  # for one document
_SMALL = 1 << 12  # bytes of a document that is converted at once: parsers may take a time that is cubic in the size
_GROWN = 1 << (20 if sys.platform == "linux" else 30)  # 1 GB, in the units of `ru_maxrss`
_PLAIN = frozenset(".txt .text .md .markdown .rst .html .htm .xhtml .csv .tsv .ipynb".split())  # not compressed
_LONGEST_REPLY = 128 << 20  # characters of a document as JSON, in which each line has its headings
_AHEAD = 8  # documents for each process, so that they have work while a slow one is waited for
_TOLD_EVERY = 0.2  # seconds

Job = TypeVar("Job")


def conversions(
    jobs: Iterable[tuple[Job, Path | None]],
    on_wait: Callable[[Job, int, int], None] = lambda job, page, pages: None,
    seconds: float = SECONDS,
) -> Iterator[tuple[Job, Text | Unreadable | None]]:
    """Convert documents in several processes: each job with what its document says, in their order.

    Args:
        jobs: With the path of a document, or None for no document. A few are converted ahead.
        on_wait: Called several times a second while a document is waited for, with its job, and the pages that are
            done and their number if it has pages, else zeros.
        seconds: Most that a document may take.
    """
    threads, jobs = min(4, os.cpu_count() or 1), iter(jobs)
    own, processes = local(), list[_Process]()  # of each thread
    waiting = deque[tuple[Job, list[int], Future[Text | Unreadable] | None]]()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="polyhop-convert")

    def convert_one(path: Path, pages: list[int]) -> Text | Unreadable:
        if _is_small(path):
            return _converted(path)
        if not (process := getattr(own, "process", None)):
            process = own.process = _Process()
            processes.append(process)
        reply = process.ask(path, seconds, pages)
        if reply.get("is_last", True):
            process.end()
            own.process = None
        if "error" in reply:
            return Unreadable(reply["error"])
        return Text(reply["title"], [Line.of(values) for values in reply["lines"]], reply["metadata"])

    def submit(count: int) -> None:
        for job, path in islice(jobs, count):
            pages = [0, 0]
            waiting.append((job, pages, pool.submit(convert_one, path, pages) if path else None))

    try:
        submit(_AHEAD * threads)
        while waiting:
            job, pages, result = waiting.popleft()
            while result and not wait([result], _TOLD_EVERY).done:
                on_wait(job, *pages)
            yield job, result.result() if result else None
            submit(1)
    finally:  # perhaps while a document is converted, which nobody waits for any more
        pool.shutdown(wait=False, cancel_futures=True)
        while processes:
            processes.pop().end()


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
        self._replies: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def ask(self, path: Path, seconds: float, pages: list[int]) -> dict[str, Any]:
        """The reply, or what happened to the process. Pages that are done are written to ``pages``."""
        assert self._process.stdin
        end = perf_counter() + seconds
        with suppress(OSError):
            self._process.stdin.write(json.dumps([str(path.absolute()), seconds]) + "\n")
            self._process.stdin.flush()
        while True:
            try:
                reply = self._replies.get(timeout=max(0.0, end - perf_counter()))
            except Empty:
                return {"error": f"its conversion took more than {seconds:g} s"}
            if not reply.endswith("\n"):
                return {"error": "its conversion failed: the process ended"}
            if reply.startswith("["):
                pages[:] = json.loads(reply)
            else:
                found: dict[str, Any] = json.loads(reply)
                return found

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put("")


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
    alarm = getattr(signal, "alarm", lambda seconds: None)
    before = peak()  # perhaps that of the process that started this one
    converters.on_page = lambda done, pages: _write(json.dumps([done, pages]))
    for line in sys.stdin:
        name, seconds = json.loads(line)
        alarm(int(seconds) + 1)  # ends the process also if nobody waits any more
        text = _converted(Path(name))
        alarm(0)
        given = {"error": str(text)} if isinstance(text, Unreadable) else text._asdict()
        reply = json.dumps({**given, "is_last": peak() > before + _GROWN})
        _write(reply if len(reply) <= _LONGEST_REPLY else json.dumps({"error": _TOO_LARGE}))


def _is_small(path: Path) -> bool:
    """Whether it is not compressed, and small; also if it cannot be looked at."""
    try:
        return path.suffix.lower() in _PLAIN and path.stat().st_size <= _SMALL
    except OSError:
        return True


def _write(reply: str) -> None:
    sys.stdout.write(reply + "\n")
    sys.stdout.flush()


_TOO_LARGE = f"its text is larger than {LARGEST_RECORD >> 20} MB: split it"


def _converted(path: Path) -> Text | Unreadable:
    """What a document says, or why it cannot be read, whatever a library makes of a damaged or hostile one."""
    try:
        text = convert(path)
        large = sum(len(each.text) for each in text.lines) > LARGEST_RECORD
        return Unreadable(_TOO_LARGE) if large else text
    except Unreadable as error:
        return error
    except (MemoryError, RecursionError) as error:
        return Unreadable(f"too large or nested too deep ({type(error).__name__})")
    except Exception as error:  # noqa: BLE001  # of a library
        return Unreadable(f"damaged ({type(error).__name__}: {str(error)[:100]})")


if __name__ == "__main__":
    _serve()
