"""`polyhop export` and `polyhop diff`."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

import dspy

import polyhop
from polyhop.programs import PROGRAMS, Prism

from .cli import done, refused


def test_no_file_that_is_there_is_replaced_unless_that_is_said(tmp_path: Path) -> None:
    file, folder = tmp_path / "notes.md", tmp_path / "prompts"
    file.write_text("mine")
    message = refused("export", "prism", "--out", file)
    assert message == f"error: {file} exists: choose another --out, or add --overwrite\n"
    assert file.read_text() == "mine"
    folder.mkdir()
    (folder / "selector.json").write_text("mine")
    chosen = ("prism", "--format", "messages", "--agent", "selector", "--out", folder)
    assert "selector.json exists" in refused("export", *chosen)
    assert [path.name for path in folder.iterdir()] == ["selector.json"]  # nor is anything written beside it
    done("export", "prism", "--out", file, "--overwrite")
    assert file.read_text("utf-8").startswith("# prism\n")


def test_every_program_and_format() -> None:
    for name, format in zip(PROGRAMS, cycle(("markdown", "messages"))):
        assert "[[ ## question ## ]]" in done("export", name, "--format", format).stdout
    messages = ("polyhop", "--format", "messages", "--adapter", "json")
    one = json.loads(done("export", *messages, "--agent", "planner").stdout)
    assert one == json.loads(done("export", *messages).stdout)["planner"]


def test_a_program_before_and_after_tuning(tmp_path: Path) -> None:
    program = Prism(polyhop.ChainRetriever(), rounds=2)
    instructions = f"{program.selector.signature.instructions} Use [bold]little[/bold] \x1b[31m."
    program.selector.signature = program.selector.signature.with_instructions(instructions)
    program.adder.demos = [dspy.Example(question="Who [x]?", add=["1s1"])]
    tuned = polyhop.save(program, tmp_path / "best")
    assert done("diff", "prism", tuned).stdout.splitlines() == [
        "rounds",
        "  - 3 (1..6)",
        "  + 2 (1..6)",
        "selector",
        "  + Use [bold]little[/bold] [31m.",
        "adder",
        '  + {"question": "Who [x]?", "add": ["1s1"]}',
    ]  # without what controls a terminal
