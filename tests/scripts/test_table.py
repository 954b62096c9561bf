"""`polyhop table`: a run for each cell, kept and continued; one table for each benchmark."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from .cli import polyhop as run_polyhop

table = partial(run_polyhop, "table", columns=120)


def test_programs_are_rows_and_runs_are_kept(hotpotqa: Path, tmp_path: Path) -> None:
    arguments: list[Any] = ["--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--program", "naive"]
    result = table(*arguments, "--markdown")
    assert result.exit_code == 0, result.output
    heading, _, naive = result.stdout.strip().splitlines()
    assert heading.startswith("| hotpotqa distractor, 3 questions | Evidence P | Evidence R | Evidence F1 | Recall@5 |")
    cells = [cell.strip() for cell in naive.strip("|").split("|")]
    assert cells[:5] == ["naive", "50.0", "100.0", "66.7", "100.0"]  # both contexts, one of them gold

    run = tmp_path / "runs" / "naive-hotpotqa-dev-distractor"
    lines = (run / "predictions.jsonl").read_text()
    again = table(*arguments)
    assert again.exit_code == 0, again.output
    assert (run / "predictions.jsonl").read_text() == lines  # nothing was asked again
    assert "hotpotqa distractor, 3 questions" in again.stdout
