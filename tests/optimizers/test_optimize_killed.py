"""An optimization that is killed and resumed ends like an uninterrupted one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from polyhop.optimizers.artifact import read

from . import tiny

THREADS = 2
_PATIENCE = 900  # seconds; only a run that hangs takes so long


def calls(path: Path) -> list[str]:
    """The requests of a run that reached the model."""
    return (path / "log").read_text().splitlines() if (path / "log").exists() else []


def run(path: Path, kill_at: int | None = None) -> bool:
    """Run ``tiny.py`` in a folder, and kill it after so many calls of the model; False if it ended before."""
    path.mkdir(exist_ok=True)
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, tiny.__file__, *map(str, (path / "run", path / "cache", path / "log"))]
    with (path / "errors").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and (kill_at is None or len(calls(path)) < kill_at):
        assert time.monotonic() < end
        time.sleep(0.002)
    if killed := process.poll() is None:
        process.send_signal(signal.SIGKILL)
    assert process.wait() == 0 or killed, (path / "errors").read_text()[-2000:]
    return killed


def result(path: Path) -> dict[str, Any]:
    """Verdicts, trials, the best program, and its score on the test questions."""
    summary = json.loads((path / "run" / "summary.json").read_bytes())
    stages = [json.loads(file.read_bytes()) for file in sorted((path / "run").glob("*/stage.json"))]
    trials = [{**trial, "costs": None} for stage in stages if "study" in stage for trial in stage["study"]["trials"]]
    kept = [
        {name: stage.get(name) for name in ("n", "stage", "kept", "score", "failures")} for stage in summary["stages"]
    ]
    return {
        "stages": kept,
        "trials": trials,
        "best": read(path / "run" / "best").state,
        "test": summary["test"]["best"],
    }


@pytest.mark.slow
def test_kills_change_nothing(tmp_path: Path) -> None:
    kills, whole, killed = 5, tmp_path / "whole", tmp_path / "killed"
    run(whole)
    assert max(Counter(calls(whole)).values()) == 1  # the cache answers repeated requests
    moments = sorted(random.Random(1).sample(range(1, len(calls(whole))), kills))
    assert all(run(killed, count) for count in moments)
    run(killed)
    assert result(killed) == result(whole)
    # Only calls in flight, whose replies are not in the cache, are paid twice.
    assert len(calls(killed)) - len(set(calls(killed))) <= kills * THREADS
    spent = json.loads((killed / "run" / "spent.json").read_bytes())["calls"]
    assert 0 <= spent - len(calls(killed)) <= kills * THREADS  # a call is recorded before it is made
