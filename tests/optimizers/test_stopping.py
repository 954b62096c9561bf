"""A run is stopped from another process, also where SIGINT is ignored, and leaves no trace of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyhop.optimizers.stopping import is_asked_to_stop, request_stop, stoppable

WAIT = 60.0  # seconds


@pytest.fixture
def without_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("without_ctrl_c")
def test_a_request_interrupts_what_the_main_thread_waits_for(tmp_path: Path) -> None:
    def work() -> None:
        with stoppable(tmp_path):
            request_stop(tmp_path)
            threading.Event().wait(WAIT)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not is_asked_to_stop(tmp_path)


def test_an_old_request_stops_no_new_run_and_handlers_are_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    request_stop(tmp_path)
    with stoppable(tmp_path):
        assert not is_asked_to_stop(tmp_path)
        assert signal.getsignal(signal.SIGUSR1) is not before
    assert signal.getsignal(signal.SIGUSR1) is before


def test_another_thread_than_the_main_one_cannot_be_stopped(tmp_path: Path) -> None:
    kept: list[bool] = []

    def work() -> None:
        request_stop(tmp_path)
        with stoppable(tmp_path):
            kept.append(is_asked_to_stop(tmp_path))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert kept == [True]  # the file is not looked at
