"""How a process ends that may have given up threads.

A request or a question that takes too long is left alone in its thread. When the process ends, Python stops such a
thread wherever it is. One that was importing keeps the import lock, and whatever imports while the interpreter is taken
apart, as LiteLLM's clients do, waits for it for ever. So a process of ours is not taken apart at its end; and one that
is not ours waits at its end for an import that takes seconds.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

importing = threading.RLock()
"""Held by who imports for seconds in a thread that may be given up."""

atexit.register(importing.acquire)


@contextmanager
def at_once() -> Iterator[None]:
    """Around all that a process does. What is registered with `atexit` meanwhile is still done in the end, and the exit
    status is what was asked for: Python itself forgets it after a Ctrl-C that came amid an ``exec`` or ``eval``."""
    status = 0
    atexit.register(lambda: leave(status))  # what is registered after it is called before it
    try:
        yield
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    except BaseException:
        status = 1
        raise


def leave(status: int = 0) -> None:
    """End the process here."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(status)
