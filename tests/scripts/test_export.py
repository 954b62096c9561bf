"""`polyhop export`."""

from __future__ import annotations

import json
from functools import partial
from itertools import cycle
from pathlib import Path

import dspy
import pytest

import polyhop
from polyhop.programs import PROGRAMS, PolyHop

from .cli import polyhop as polyhop_command
from .cli import refused

run = partial(polyhop_command, "export")


@pytest.fixture
def artifact(tmp_path: Path) -> str:
    program = PolyHop(polyhop.ChainRetriever())
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))
    program.gatherer.signature = program.gatherer.signature.with_instructions("Keep ```all``` | of it.")
    program.answerer.demos = [dspy.Example(question="Who?", answer="Ann")]
    return str(polyhop.save(program, tmp_path / "best"))


def test_markdown_reads_as_prose(artifact: str, tmp_path: Path) -> None:
    text = run(artifact).stdout
    name = f"polyhop ({'/'.join(tmp_path.parts[-2:])})"
    about = "Answer a question with as few LM calls as possible."
    assert text.startswith(f"# {name}\n\n{about}\n\n## How to use the prompts\n")
    for expected in (
        "## gatherer",
        "Keep ```all``` | of it.",
        "````text",
        "| passages | passages | passages, each sentence to be read with its title; 2 is the id of passage [2]",
        "At each call the program adds exemplars",
        "24 solved questions, of which up to 3 are shown for a question (mode: same complexity)",
        "| rounds | 4 | 1..6 |",
    ):
        assert expected in text
    one = run(artifact, "--agent", "answerer").stdout
    assert "## answerer" in one
    assert "## gatherer" not in one
    run(artifact, "--out", str(tmp_path / "prompts.md"))
    assert (tmp_path / "prompts.md").read_text("utf-8") == text
    run(artifact, "--out", str(tmp_path / "folder"))
    (written,) = (tmp_path / "folder").iterdir()
    assert written.name == f"polyhop-{'-'.join(tmp_path.parts[-2:])}.md"
    assert written.read_text("utf-8") == text


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
