"""`polyhop diff`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dspy
import pytest

import polyhop
from polyhop.optimizers.artifact import Provenance, Score
from polyhop.programs import Prism

from .cli import polyhop as polyhop_command

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
