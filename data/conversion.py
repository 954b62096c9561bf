"""Conversions in processes of their own: a hostile or huge document cannot take the memory or the time of an index.

A process converts one document after another, each within `MEMORY` and `SECONDS`. What may unpack to many times its
size, and what is large, is converted by a copy of the process that ends with the document: it costs itself only.
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
from threading import Thread
from time import perf_counter
from typing import Any, TypeVar

from . import converters
from .converters import Text, Unreadable, convert
from .files import LARGEST_RECORD
from .splitting import Line

MEMORY = 4 << 30  # bytes
SECONDS = 300.0  # for one document
_SMALL = 1 << 12  # bytes of a document that is converted at once: parsers may take a time that is cubic in the size
_LARGE = 1 << 20  # bytes
_PLAIN = frozenset(".txt .text .md .markdown .rst .html .htm .xhtml .csv .tsv .ipynb".split())  # not compressed
_LONGEST_REPLY = 128 << 20  # characters of a document as JSON, in which each line has its headings
_AHEAD = 8  # documents for each process, so that they have work while a slow one is waited for
_TOLD_EVERY = 0.2  # seconds

Job = TypeVar("Job")


class Conversions:
    """Converts documents in several processes, in the order given; a context manager.

    Args:
        on_wait: Called several times a second while a document is waited for, with its job, and the pages that are
            done and their number if it has pages, else zeros.
        seconds: Most that a document may take.

    Attributes:
        processes: How many there are.
    """

    def __init__(
        self, on_wait: Callable[[Any, int, int], None] = lambda job, page, pages: None, seconds: float = SECONDS
    ) -> None:
        self._on_wait, self._seconds = on_wait, seconds
        self.processes = min(4, os.cpu_count() or 1)
        self._idle: SimpleQueue[_Process | None] = SimpleQueue()
        self._all: list[_Process] = []
        for _ in range(self.processes):
            self._idle.put(None)

    def __call__(self, jobs: Iterable[tuple[Job, Path | None]]) -> Iterator[tuple[Job, Text | Unreadable | None]]:
        """Each job with the conversion of its document; None for no document. A few are converted ahead."""
        jobs = iter(jobs)
        with ThreadPoolExecutor(self.processes, thread_name_prefix="polyhop-convert") as pool:

            def submit(count: int) -> None:
                for job, path in islice(jobs, count):
                    pages = [0, 0]
                    waiting.append((job, pages, pool.submit(self._convert, path, pages) if path else None))

            waiting = deque[tuple[Job, list[int], Future[Text | Unreadable] | None]]()
            try:
                submit(_AHEAD * self.processes)
                while waiting:
                    job, pages, result = waiting.popleft()
                    while result and not wait([result], _TOLD_EVERY).done:
                        self._on_wait(job, *pages)
                    yield job, result.result() if result else None
                    submit(1)
            except BaseException:  # perhaps while a document is converted, which nobody waits for any more
                pool.shutdown(wait=False, cancel_futures=True)
                self.__exit__()
                raise

    def __enter__(self) -> Conversions:
        return self

    def __exit__(self, *error: object) -> None:
        while self._all:
            self._all.pop().end()

    def _convert(self, path: Path, pages: list[int]) -> Text | Unreadable:
        if _is_plain(path, _SMALL):
            return _converted(path)
        if not (process := self._idle.get()):
            process = _Process()
            self._all.append(process)
        reply = process.ask(path, self._seconds, pages)
        if isinstance(reply, str):
            process.end()
            reply = {"error": reply}
            self._idle.put(None)
        else:
            self._idle.put(process)
        if "error" in reply:
            return Unreadable(reply["error"])
        return Text(reply["title"], [Line.of(values) for values in reply["lines"]], reply["metadata"])


class _Process:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # with its copies it is a group, which ends at once
        )
        self._replies: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def ask(self, path: Path, seconds: float, pages: list[int]) -> dict[str, Any] | str:
        """The reply; after the failure of the process, what happened. Pages that are done are written to ``pages``."""
        assert self._process.stdin
        end = perf_counter() + seconds
        with suppress(OSError):
            self._process.stdin.write(json.dumps([str(path.absolute()), seconds]) + "\n")
            self._process.stdin.flush()
        while True:
            try:
                reply = self._replies.get(timeout=max(0.0, end - perf_counter()))
            except Empty:
                return f"its conversion took more than {seconds:g} s"
            if not reply.endswith("\n"):
                return "its conversion failed: the process ended"
            if reply.startswith("["):
                pages[:] = json.loads(reply)
            else:
                found: dict[str, Any] = json.loads(reply)
                return found

    def end(self) -> None:
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (AttributeError, OSError):  # Windows; or it has just ended
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
        import resource
    except ImportError:  # Windows: the time is bounded only, and there are no copies
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    converters.on_page = lambda done, pages: _write(json.dumps([done, pages]))
    for line in sys.stdin:
        name, seconds = json.loads(line)
        path = Path(name)
        if not hasattr(os, "fork") or _is_plain(path, _LARGE):
            _reply(path)
            continue
        _import_library(path)
        if not (copy := os.fork()):
            signal.alarm(int(seconds) + 1)  # ends it also if nobody waits any more
            _reply(path)
            os._exit(0)
        if status := os.waitpid(copy, 0)[1]:
            _write(json.dumps({"error": f"its conversion failed (status {os.waitstatus_to_exitcode(status)})"}))


def _is_plain(path: Path, most: int) -> bool:
    """Whether it is not compressed, and not larger; also if it cannot be looked at."""
    try:
        return path.suffix.lower() in _PLAIN and path.stat().st_size <= most
    except OSError:
        return True


def _import_library(path: Path) -> None:
    """Import before the process is copied what each copy would import again."""
    with suppress(ImportError):
        if path.suffix.lower() == ".pdf":
            import pypdf  # noqa: F401
        elif path.suffix.lower() == ".docx":
            import mammoth  # noqa: F401


def _reply(path: Path) -> None:
    text = _converted(path)
    reply = json.dumps({"error": str(text)} if isinstance(text, Unreadable) else text._asdict())
    _write(reply if len(reply) <= _LONGEST_REPLY else json.dumps({"error": _TOO_LARGE}))


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
