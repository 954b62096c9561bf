"""The study of deviations: a row for the default, for each published value, for BM25, and for all."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from polyhop.programs import C3PO
from polyhop.scripts.studies.deviations import app


def test_each_published_value_has_a_row(hotpotqa: Path) -> None:
    result = CliRunner().invoke(app, ["--on", f"hotpotqa:{hotpotqa}", "--program", "c3po", "--limit", "2"])
    assert result.exit_code == 0, result.output
    heading, _, *rows = result.stdout.strip().splitlines()
    assert heading.startswith("| hotpotqa distractor, 2 questions | Evidence P |")
    names = [row.split(" | ")[0].strip("| `").partition("=")[0] for row in rows]
    assert names == ["c3po", *C3PO.paper_values, "with BM25", "all of them"]
    assert all(row.count(" | ") == heading.count(" | ") for row in rows)
