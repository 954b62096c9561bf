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
from polyhop.optimizers.report import read_run

from . import tiny

THREADS = 2
_PATIENCE = 900  # seconds; only a run that hangs takes so long


class Folder:
    """The folders of one run of ``tiny.py``."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.run, self.cache, self.log = path / "run", path / "cache", path / "log"
        self.settings = settings
        path.mkdir()

    def start(self) -> subprocess.Popen[bytes]:
        script = Path(tiny.__file__)
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENBLAS_NUM_THREADS": "1"}
        command = [
            sys.executable,
            str(script),
            str(self.run),
            str(self.cache),
            str(self.log),
            json.dumps(self.settings),
        ]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)

    def finish(self) -> None:
        process = self.start()
        _, errors = process.communicate(timeout=_PATIENCE)
        assert process.returncode == 0, errors.decode()[-2000:]

    def kill_at(self, calls: int) -> bool:
        """Kill the process after so many calls of the model; False if it ended before."""
        process, end = self.start(), time.monotonic() + _PATIENCE
        while process.poll() is None and len(self.calls) < calls:
            assert time.monotonic() < end
            time.sleep(0.002)
        killed = process.poll() is None
        if killed:
            process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert killed or process.returncode == 0, errors.decode()[-2000:]
        return killed

    @property
    def calls(self) -> list[str]:
        """The requests that reached the model."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def result(self) -> dict[str, Any]:
        """Verdicts, trials, the best program, and its score on the test questions."""
        found = read_run(self.run)
        assert found.summary
        assert found.summary.test
        studies = [proposal.study for proposal in found.proposals.values() if proposal.study]
        keys = {"n", "stage", "kept", "score", "failures"}
        best = self.run / "best"
        return {
            "stages": [stage.model_dump(include=keys) for stage in found.summary.stages],
            "trials": [trial.model_dump(exclude={"costs"}) for study in studies for trial in study.trials],
            "best": read(best).state,
            "test": found.summary.test.best,
        }


@pytest.mark.slow
def test_kills_change_nothing(tmp_path: Path) -> None:
    kills = 5
    whole, killed = Folder(tmp_path / "whole"), Folder(tmp_path / "killed")
    whole.finish()
    total = len(whole.calls)
    assert max(Counter(whole.calls).values()) == 1  # the cache answers repeated requests
    moments = sorted(random.Random(1).sample(range(1, total), kills))
    assert sum(killed.kill_at(calls) for calls in moments) == kills
    killed.finish()
    assert killed.result == whole.result
    # Only calls in flight, whose replies are not in the cache, are paid twice.
    assert len(killed.calls) - len(set(killed.calls)) <= kills * THREADS
    spent = json.loads((killed.run / "spent.json").read_bytes())["calls"]
    assert 0 <= spent - len(killed.calls) <= kills * THREADS  # a call is recorded before it is made
