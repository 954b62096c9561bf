"""Silence, for as long as it is asked for, and patience."""

from __future__ import annotations

import logging
import time
from threading import Lock

import pytest
from dspy.teleprompt import bootstrap
from dspy.utils.parallelizer import ParallelExecutor

from polyhop.optimizers.prompts.quiet import quiet


def test_dspy_is_quiet_inside_and_as_it_was_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    before, bar = logging.getLogger("dspy").level, bootstrap.tqdm
    with quiet():
        with quiet():
            pass
        bootstrap.print("loud")
        list(bootstrap.tqdm.tqdm(range(3)))
        logging.getLogger("dspy.teleprompt").error("loud")
        assert "".join(capfd.readouterr()) == ""
    assert not hasattr(bootstrap, "print")
    assert logging.getLogger("dspy").level == before
    assert bootstrap.tqdm is bar


def test_what_takes_long_is_not_asked_twice() -> None:
    calls, lock = [], Lock()

    def slow(item: int) -> tuple[int, float]:
        with lock:
            calls.append(item)
        time.sleep(1.3)
        return item, 1.0

    def run() -> None:
        calls.clear()
        ParallelExecutor(num_threads=3, timeout=0.1, disable_progress_bar=True).execute(slow, [1])

    run()
    assert len(calls) == 2  # as DSPy has it after two minutes
    with quiet():
        run()
    assert len(calls) == 1
