"""Stopping a run of `polyhop optimize` from another process, by a file in its folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import Any

_STOP = ".stop"  # is removed when a run starts and when it ends
_EVERY = 0.5  # seconds between two looks at the file


def request_stop(run: Path) -> None:
    """Ask a running run to stop as Ctrl-C does."""
    (run / _STOP).touch()


def is_asked_to_stop(run: Path) -> bool:
    return (run / _STOP).exists()


@contextmanager
def stoppable(run: Path) -> Iterator[None]:
    """Inside, `request_stop` raises `KeyboardInterrupt` in the main thread.

    It is raised as by Ctrl-C, but also where SIGINT is ignored, as under nohup. In another thread than the main one,
    where Python delivers no signals, the file is not looked at.
    """
    if current_thread() is not main_thread():
        yield
        return
    main, ended = main_thread().ident, Event()
    assert main is not None

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not ended.is_set():
            ended.set()
            raise KeyboardInterrupt

    def watch() -> None:
        while not ended.wait(_EVERY):
            if is_asked_to_stop(run):
                signal.pthread_kill(main, signal.SIGUSR1)  # interrupts what the main thread waits for
                return

    (run / _STOP).unlink(missing_ok=True)
    before: Any = signal.signal(signal.SIGUSR1, interrupt)
    watcher = Thread(target=watch, name="stop", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()  # sends no signal afterwards
        signal.signal(signal.SIGUSR1, before)
        (run / _STOP).unlink(missing_ok=True)
