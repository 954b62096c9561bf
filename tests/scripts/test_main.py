"""The command itself: help, version, start-up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import polyhop
from polyhop.scripts.main import app


def test_help_lists_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("ask", "index", "evaluate", "demo", "doctor"):
        assert f"\n  {command} " in result.stdout


@pytest.mark.parametrize("command", ["ask", "index", "evaluate", "demo", "doctor"])
def test_every_command_has_help(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"polyhop {polyhop.__version__}\n"


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
    command = [
        sys.executable,
        "-m",
        "polyhop.scripts.main",
        "ask",
        "Who directed Solaris?",
        "--index",
        "sample",
        "--json",
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: No space left on device")
    assert done.stderr.count("\n") == 1
