"""What `polyhop ask` shows while it waits, in a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from polyhop.scripts.studies.faults.server import Server

ASK = [sys.executable, "-m", "polyhop.scripts.main", "ask", "Where was the director of Stalker born?"]


def test_the_terminal_shows_steps_and_the_output_only_the_answer(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with Server(latency=0.6) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.url, "TERM": "xterm", "COLUMNS": "100"}
        process = subprocess.Popen(
            [*ASK, "--index", "sample", "--lm", "openai/slow"],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # the terminal is closed
                break
        output, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0
    assert "passages for “Where was the director of Stalker born?”" in shown.decode()
    assert "asking the planner ..." in shown.decode() or "asking the answerer ..." in shown.decode()
    assert "asking the" not in output
    assert "Zavrazhye" in output


def test_nothing_is_shown_without_a_terminal() -> None:
    done = subprocess.run([*ASK, "--index", "sample"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
