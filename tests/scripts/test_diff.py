"""`polyhop diff`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from typer.testing import CliRunner

import polyhop
from polyhop.optimizers.artifact import Provenance, Score
from polyhop.programs import Prism
from polyhop.scripts.main import app


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["diff", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    program = Prism(polyhop.ChainRetriever(), rounds=2)
    instructions = program.selector.signature.instructions
    changed = f"{instructions} [bold]useless[/bold] \x1b[31m"
    program.selector.signature = program.selector.signature.with_instructions(changed)
    program.adder.demos = [dspy.Example(question="Who [x]?", add=["1s1"])]
    known = Provenance(metric="evidence_f1", scores={"val": {"evidence_f1": Score(mean=0.71, low=0.69, high=0.73)}})
    return polyhop.save(program, tmp_path / "runs" / "best", provenance=known)


def test_a_program_before_and_after_tuning(tuned: Path) -> None:
    result = run("prism", str(tuned))
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "{+ [bold]useless[/bold] [31m+}" in text or "{+[bold]useless[/bold] [31m+}" in text
    assert '+ {"question": "Who [x]?", "add": ["1s1"]}' in text
    assert "│ rounds │ 3 │ 2 │ 1..6 │" in text
    assert f"┃ prism ┃ prism ({tuned.parts[-3]}/runs) ┃" in text
    assert "search.chain" not in text
    assert "\x1b" not in result.stdout


def test_provenance_is_compared(tmp_path: Path) -> None:
    paths = []
    for model, trials in (("openai/small", 20), ("openai/large", 40)):
        program = Prism()
        program.set_lm(polyhop.lm(model))
        known = Provenance(settings={"trials": trials}, spent={"minutes": trials / 30})
        paths.append(str(polyhop.save(program, tmp_path / model, provenance=known)))
    text = " ".join(run(*paths).stdout.split())
    assert "The same instructions" in text
    assert "│ lms.selector │ openai/small │ openai/large │" in text
    assert "│ provenance.settings.trials │ 20 │ 40 │" in text
    assert "│ provenance.spent.minutes │ 0.6667 │ 1.333 │" in text
    found = json.loads(run(*paths, "--json").stdout)
    assert found["same"]
    assert found["about"]["lms.selector"] == ["openai/small", "openai/large"]


def test_a_program_of_somebodys_own_and_other_programs(tmp_path: Path) -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.agent = dspy.Predict("question -> answer")

    path = str(polyhop.save(Own(), tmp_path / "own"))
    text = " ".join(run(path, "prism").stdout.split())
    assert "own: agent" in text
    assert "analyzer, selector" in text


@pytest.mark.parametrize("wrong", ["nope", "nope.json"])
def test_what_is_no_program_is_one_line(wrong: str, tmp_path: Path) -> None:
    result = run("prism", wrong)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    (tmp_path / "empty").mkdir()
    assert "is not an artifact: it has no manifest.json" in run("prism", str(tmp_path / "empty")).stderr
