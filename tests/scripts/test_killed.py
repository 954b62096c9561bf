"""Commands that are killed at random moments: started again, they end as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from polyhop.data.sample import load_sample
from polyhop.eval.run import evaluate

from ..eval.small import Fake, numbered

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


def after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def has_lines(file: Path, count: int) -> Callable[[], bool]:
    return lambda: file.exists() and file.read_bytes().count(b"\n") >= count


def polyhop(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "polyhop.scripts.main", *map(str, arguments)]


def without_seconds(table: str) -> list[str]:
    """The lines without the last column."""
    return [line.rpartition(" | ")[0] for line in table.splitlines()]


def test_a_table(write_hotpotqa: Callable[[int], Path], tmp_path: Path) -> None:
    arguments = ["table", "--on", f"hotpotqa:{write_hotpotqa(60)}", "--program", "naive", "--markdown", "--out"]
    whole, seconds = finished(polyhop(*arguments, tmp_path / "whole"))
    interrupted, chance = polyhop(*arguments, tmp_path / "killed"), random.Random(1)
    assert sum(kill(interrupted, after(chance.uniform(0.1, 0.8) * seconds)) for _ in range(4)) > 0
    assert without_seconds(finished(interrupted)[0]) == without_seconds(whole)
    name = Path("naive-hotpotqa-dev-distractor", "predictions.jsonl")
    assert len((tmp_path / "killed" / name).read_bytes().splitlines()) == 60


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


def test_a_report(tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "page.html"
    evaluate(Fake(), numbered(300), run)
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    arguments = polyhop("report", run, "--out", page)
    _, seconds = finished(arguments)
    whole, chance = page.read_bytes(), random.Random(2)
    kills = 0
    for _ in range(4):
        kills += kill(arguments, after(chance.uniform(0.1, 0.8) * seconds))
        assert page.read_bytes() == whole  # the old page or the new one
    assert kills > 0
    finished(arguments)
    assert page.read_bytes() == whole
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
