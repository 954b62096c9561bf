"""What `polyhop ask` shows while it waits, in a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..faults.server import Server

ASK = [sys.executable, "-m", "polyhop.scripts.main", "ask", "Where was the director of Stalker born?"]


def ask_in_a_terminal(url: str, folder: Path, *options: str, on_shown: Callable[[str], None]) -> tuple[str, str]:
    """What the terminal showed, and the output."""
    profile = folder / "models.toml"
    profile.write_text(f'lm = "openai/slow"\n[models."openai/*"]\napi_base = "{url}"\napi_key_env = "ANY_KEY"')
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ASK, "--index", "sample", "--lm", str(profile), *options],
        env={**os.environ, "ANY_KEY": "any", "TERM": "xterm", "COLUMNS": "100"},
        cwd=folder,
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
        on_shown(shown.decode(errors="replace"))
    output, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode(), output


def test_the_terminal_shows_steps_and_the_output_only_the_answer(tmp_path: Path) -> None:
    with Server(latency=0.6) as server:
        shown, output = ask_in_a_terminal(server.url, tmp_path, on_shown=lambda shown: None)
    assert "passages for “Where was the director of Stalker born?”" in shown
    assert "asking the planner ..." in shown or "asking the answerer ..." in shown
    assert "asking the" not in output
    assert "Zavrazhye" in output


def test_nothing_is_shown_without_a_terminal() -> None:
    done = subprocess.run([*ASK, "--index", "sample"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
