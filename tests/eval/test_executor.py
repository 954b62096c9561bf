"""What ends late has failed, however late it is looked at."""

from __future__ import annotations

import time

from polyhop.eval.executor import Job, Window


def task(seconds: float) -> Job[str]:
    def work() -> str:
        time.sleep(seconds)
        return "answer"

    return Job(work=work, timed_out=lambda: "timeout", abandon=lambda: None)


def test_a_late_result_is_a_timeout_even_if_it_waits_to_be_read() -> None:
    window: Window[str] = Window(2, timeout=0.1)
    window.start(task(0.3))
    window.start(task(0.0))
    time.sleep(0.6)  # both have ended by now
    assert sorted([window.next(), window.next()]) == ["answer", "timeout"]
    assert not window.busy
