"""`polyhop export`."""

from __future__ import annotations

import json
from functools import partial
from itertools import cycle
from pathlib import Path

from polyhop.programs import PROGRAMS

from .cli import polyhop as polyhop_command
from .cli import refused

run = partial(polyhop_command, "export")


def test_no_file_that_is_there_is_replaced_unless_that_is_said(tmp_path: Path) -> None:
    file, folder = tmp_path / "notes.md", tmp_path / "prompts"
    file.write_text("mine")
    told = refused("export", "prism", "--out", file)
    assert told == f"error: {file} exists: choose another --out, or add --overwrite\n"
    assert file.read_text() == "mine"
    folder.mkdir()
    (folder / "selector.json").write_text("mine")
    chosen = ("prism", "--format", "messages", "--agent", "selector", "--out", str(folder))
    assert "selector.json exists" in run(*chosen).stderr
    assert [path.name for path in folder.iterdir()] == ["selector.json"]  # nor is anything written beside it
    assert run("prism", "--out", str(file), "--overwrite").exit_code == 0
    assert file.read_text("utf-8").startswith("# prism\n")


def test_every_program_and_format() -> None:
    for name, format in zip(PROGRAMS, cycle(("markdown", "messages"))):
        result = run(name, "--format", format)
        assert (result.exit_code, "[[ ## question ## ]]" in result.stdout) == (0, True)
    one = json.loads(run("polyhop", "--format", "messages", "--agent", "planner", "--adapter", "json").stdout)
    assert one == json.loads(run("polyhop", "--format", "messages", "--adapter", "json").stdout)["planner"]
