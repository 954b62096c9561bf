"""Commands that are killed at random moments: started again, they end as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from polyhop.data.sample import load_sample

pytestmark = pytest.mark.slow


def finished(arguments: list[str]) -> tuple[str, float]:
    """What a command prints, and the seconds that it takes."""
    started = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, time.monotonic() - started


def kill(arguments: list[str], when: Callable[[], bool]) -> bool:
    """Kill a command and the processes that it started at a moment; whether it was still running."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not when():
        time.sleep(0.002)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def has_lines(file: Path, count: int) -> Callable[[], bool]:
    return lambda: file.exists() and file.read_bytes().count(b"\n") >= count


def polyhop(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "polyhop.scripts.main", *map(str, arguments)]


def test_answers(tmp_path: Path) -> None:
    questions = tmp_path / "q.txt"
    questions.write_text("".join(f"{each.question}\n" for each in load_sample()[:30]), "utf-8")
    arguments = ["ask", "--file", str(questions), "--index", "sample", "--out"]
    whole, out = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    finished(polyhop(*arguments, whole))
    interrupted, records = polyhop(*arguments, out), tmp_path / "killed.jsonl.run" / "predictions.jsonl"
    done = b""
    for count in (3, 11, 20):
        assert kill(interrupted, has_lines(records, count))
        found = records.read_bytes()
        assert found.startswith(done)  # nothing is lost
        done = found[: found.rfind(b"\n") + 1]
    finished(interrupted)
    assert answers(out) == answers(whole)  # and nothing is repeated
    assert [id for id, *_ in answers(out)] == [str(n) for n in range(1, 31)]


def answers(file: Path) -> list[tuple[str, str, float, int]]:
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [(each["id"], each["answer"], each["confidence"], each["costs"]["lm_calls"]) for each in lines]
