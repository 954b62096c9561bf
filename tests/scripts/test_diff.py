"""`polyhop diff`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import dspy
import pytest

import polyhop
from polyhop.optimizers.artifact import Provenance, Score
from polyhop.programs import Prism

from .cli import polyhop as polyhop_command
from .cli import refused

run = partial(polyhop_command, "diff")


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    program = Prism(polyhop.ChainRetriever(), rounds=2)
    instructions = program.selector.signature.instructions
    changed = f"{instructions} Use [bold]little[/bold] \x1b[31m."
    program.selector.signature = program.selector.signature.with_instructions(changed)
    program.adder.demos = [dspy.Example(question="Who [x]?", add=["1s1"])]
    known = Provenance(metric="evidence_f1", scores={"val": {"evidence_f1": Score(mean=0.71, low=0.69, high=0.73)}})
    return polyhop.save(program, tmp_path / "runs" / "best", provenance=known)


def test_a_program_before_and_after_tuning(tuned: Path) -> None:
    result = run("prism", str(tuned))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "rounds",
        "  - 3 (1..6)",
        "  + 2 (1..6)",
        "selector",
        "  + Use [bold]little[/bold] [31m.",
        "adder",
        '  + {"question": "Who [x]?", "add": ["1s1"]}',
    ]  # without what controls a terminal


def test_provenance_is_compared(tmp_path: Path) -> None:
    paths = []
    for model, trials in (("openai/small", 20), ("openai/large", 40)):
        program = Prism()
        program.set_lm(polyhop.lm(model))
        known = Provenance(settings={"trials": trials}, spent={"minutes": trials / 30})
        paths.append(str(polyhop.save(program, tmp_path / model, provenance=known)))
    text = run(*paths).stdout
    assert "The same instructions" in text
    assert "lms.selector\n  - openai/small\n  + openai/large\n" in text
    assert "provenance.spent.minutes\n  - 0.6667\n  + 1.333\n" in text
    assert "retriever" not in text  # nor state and hash
    found = json.loads(run(*paths, "--json").stdout)
    assert found["same"]
    assert found["about"]["provenance.settings.trials"] == {"removed": ["20"], "added": ["40"]}


def test_what_is_no_program_is_one_line(tmp_path: Path) -> None:
    assert "unknown program 'nope'" in refused("diff", "prism", "nope")
    assert "is not an artifact: it has no artifact.json" in refused("diff", "prism", tmp_path)
