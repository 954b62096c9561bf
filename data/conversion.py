"""Conversions in processes of their own: a hostile or huge document cannot take the memory or the time of an index.

A process converts one document after another, within `MEMORY` and `SECONDS`; then it is ended and replaced. Small
documents without compression are converted at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from .converters import Text, Unreadable, convert
from .files import LARGEST_RECORD
from .splitting import Line

MEMORY = 4 << 30  # bytes
SECONDS = 300.0  # for one document
_SMALL = 1 << 12  # bytes of a document that is converted at once: parsers may take a time that is cubic in the size
_LONGEST_REPLY = 128 << 20  # characters of a document as JSON, in which each line has its headings


class Conversions:
    """Converts documents in several processes, in the order given; a context manager."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._count = min(4, os.cpu_count() or 1)
        self._idle: SimpleQueue[_Process | None] = SimpleQueue()
        for _ in range(self._count):
            self._idle.put(None)

    def __call__(self, paths: Iterable[Path | None]) -> Iterator[Text | Unreadable | None]:
        """What each document says, or why it cannot be read; None for None. A few are converted ahead."""
        paths = iter(paths)
        with ThreadPoolExecutor(self._count, thread_name_prefix="polyhop-convert") as pool:
            waiting = deque(pool.submit(self._convert, path) for path in islice(paths, 2 * self._count))
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(self._convert, path) for path in islice(paths, 1))

    def __enter__(self) -> Conversions:
        return self

    def __exit__(self, *error: object) -> None:
        while not self._idle.empty():
            if process := self._idle.get():
                process.end()

    def _convert(self, path: Path | None) -> Text | Unreadable | None:
        if path is None:
            return None
        try:
            if path.suffix.lower() not in (".pdf", ".docx") and path.stat().st_size <= _SMALL:
                return _converted(path)
        except OSError as error:
            return Unreadable(str(error.strerror))
        process = self._idle.get() or _Process()
        reply = process.ask(path, self._seconds)
        self._idle.put(None if reply is None else process)
        if reply is None:
            process.end()
            return Unreadable(f"its conversion failed, or took more than {self._seconds:g} s or {MEMORY >> 30} GB")
        if "error" in reply:
            return Unreadable(reply["error"])
        return Text(reply["title"], [Line.of(values) for values in reply["lines"]], reply["metadata"])


class _Process:
    def __init__(self) -> None:
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._replies: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def ask(self, path: Path, seconds: float) -> dict[str, Any] | None:
        """The reply; None if the process has ended, or did not reply in time."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(str(path.absolute())) + "\n")
            self._process.stdin.flush()
            reply = self._replies.get(timeout=seconds)
        except (OSError, Empty):
            return None
        return json.loads(reply) if reply.endswith("\n") else None

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put("")


def _serve() -> None:
    """Convert the documents whose paths are read from the standard input."""
    try:
        import resource
    except ImportError:  # Windows: the time is bounded only
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        text = _converted(Path(json.loads(line)))
        reply = json.dumps({"error": str(text)} if isinstance(text, Unreadable) else text._asdict())
        if len(reply) > _LONGEST_REPLY:
            reply = json.dumps({"error": _TOO_LARGE})
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
