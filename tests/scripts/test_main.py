"""The command itself: help, version, start-up, a full disk, the demo, and what is shown in a terminal meanwhile."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import polyhop
from polyhop.scripts.options import COMMANDS

from ..faults.server import Server
from .cli import polyhop as run

POLYHOP = [sys.executable, "-m", "polyhop.scripts.main"]
NAMES = [model.__name__.lower() for model in COMMANDS]
QUESTION = "Where was the director of Stalker born?"


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.stdout for name in NAMES)


def test_every_command_has_help() -> None:
    for name in NAMES:
        result = run(name, "--help")
        assert (result.exit_code, "--help" in result.stdout) == (0, True)
        assert len(result.stdout.splitlines()[2]) > 20  # what it does


def test_version() -> None:
    assert run("--version").stdout == f"polyhop {polyhop.__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['polyhop', '--help']\n"
        "from polyhop.scripts.main import main\n"
        "heavy = {'dspy', 'jnius', 'numpy', 'datasets', 'fastapi', 'mcp', 'mlflow', 'starlette', 'rich.table'}\n"
        "try: main()\n"
        "except SystemExit: print(heavy & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "set()"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    command = [*POLYHOP, "search", "Who directed Solaris?", "--index", "sample", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: [Errno 28] No space left on device")
    assert done.stderr.count("\n") == 1


def test_the_terminal_shows_steps_and_the_output_only_the_answer(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with Server(latency=0.6) as server:
        profile = tmp_path / "models.toml"
        profile.write_text(f'lm = "openai/m"\n[models."openai/*"]\napi_base = "{server.url}"\napi_key_env = "ANY_KEY"')
        process = subprocess.Popen(
            [*POLYHOP, "ask", QUESTION, "--index", "sample", "--lm", str(profile)],
            env={**os.environ, "ANY_KEY": "any", "TERM": "xterm", "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
        )
        os.close(theirs)
        shown = b""
        try:
            while read := os.read(ours, 65536):
                shown += read
        except OSError:  # the terminal is closed
            pass
        output, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0, shown
    assert "passages for “Where was the director of Stalker born?”".encode() in shown
    assert b"asking the planner ..." in shown or b"asking the answerer ..." in shown
    assert "asking the" not in output
    assert "Zavrazhye" in output


def test_the_demo_indexes_asks_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run("demo")
    assert result.exit_code == 0, result.output
    assert "passages  351" in result.stdout
    assert " ".join(result.stdout.split()).count("gold is") == 5  # wherever lines break
    assert result.stdout.count("stopped:") == 5
    assert list(tmp_path.iterdir()) == []
