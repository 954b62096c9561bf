"""The command itself: help, version, start-up, a full disk, the demo, and what is shown in a terminal meanwhile."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import polyhop
from polyhop.scripts.main import app
from polyhop.scripts.options import COMMANDS
from polyhop.scripts.terminal import new_console

from ..faults.server import Server
from .cli import done

QUESTION = "Where was the director of Stalker born?"


def test_help_lists_the_commands_and_each_has_its_own() -> None:
    listed = done("--help").stdout
    for model in COMMANDS:
        name = model.__name__.lower()
        assert f"\n  {name} " in listed
        assert len(done(name, "--help").stdout.splitlines()[2]) > 20  # what it does


def test_version() -> None:
    assert done("--version").stdout == f"polyhop {polyhop.__version__}\n"


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
def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:  # closing writes once more
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            app(["search", "Who directed Solaris?", "--index", "sample", "--json"])
        assert ended.value.code == 1
    message = capfd.readouterr().err
    assert message.startswith("error: [Errno 28] No space left on device")
    assert message.count("\n") == 1


def test_the_terminal_shows_steps_and_the_output_only_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = StringIO()
    console = Console(file=terminal, force_terminal=True, width=100)
    monkeypatch.setattr("polyhop.scripts.view.new_console", lambda *, err=False: console if err else new_console())
    with Server(latency=0.3) as server:
        profile = tmp_path / "models.toml"
        profile.write_text(f'lm = "openai/m"\n[models."openai/*"]\napi_base = "{server.url}"\napi_key_env = "ANY_KEY"')
        result = done("ask", QUESTION, "--index", "sample", "--lm", profile, ANY_KEY="any")
    assert "passages for “Where was the director of Stalker born?”" in terminal.getvalue()
    assert "asking the planner ..." in terminal.getvalue() or "asking the answerer ..." in terminal.getvalue()
    assert "asking the" not in result.output
    assert "Zavrazhye" in result.output


def test_the_demo_indexes_asks_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chains, _, answers = done("demo").stdout.partition(
        "3. The same questions, answered by a language model: Qwen2.5-Coder-1.5B"
    )
    assert "passages  351" in chains
    assert len(re.findall(r"best guess: |perhaps: |no guess", chains)) == 5
    assert answers.count("stopped:") == " ".join(answers.split()).count("gold is") == 5  # wherever lines break
    assert re.search(r"Chudenice confidence 0\.\d\d, supported right", " ".join(answers.split()))
    assert "→ answered Chudenice" in " ".join(answers.split())
    assert list(tmp_path.iterdir()) == []
