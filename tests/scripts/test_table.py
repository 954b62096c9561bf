"""`polyhop table`: a run for each cell, kept and continued, one table for each benchmark; and the papers in docs, whose
published figures stand beside ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyhop.scripts.table import Paper

from .cli import done, of_run

PAPERS = sorted((Path(__file__).parents[2] / "docs" / "papers").glob("*.toml"))


def test_programs_are_rows_and_runs_are_kept(hotpotqa: Path, tmp_path: Path) -> None:
    arguments = ("table", "--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--program", "naive")
    heading, _, naive = done(*arguments, "--markdown").stdout.strip().splitlines()
    assert heading.startswith("| hotpotqa distractor, 3 questions | Evidence P | Evidence R | Evidence F1 | Recall@5 |")
    cells = [cell.strip() for cell in naive.strip("|").split("|")]
    assert cells[:5] == ["naive", "50.0", "100.0", "66.7", "100.0"]  # both contexts, one of them gold
    records = tmp_path / "runs" / "naive-hotpotqa-dev-distractor" / "predictions.jsonl"
    before = records.read_text()
    assert "hotpotqa distractor, 3 questions" in done(*arguments).stdout
    assert records.read_text() == before  # nothing was asked again


@pytest.mark.parametrize("file", PAPERS, ids=[path.stem for path in PAPERS])
def test_rows_of_a_paper_are_runs_beside_published_figures(
    file: Path, write_hotpotqa: Callable[[int], Path], tmp_path: Path
) -> None:
    paper, runs = Paper.read(file), tmp_path / "runs"
    on = ("--on", f"hotpotqa:{write_hotpotqa(1)}")
    printed = done("table", file, *on, "--out", runs, "--retriever", "bm25", "--markdown").stdout
    heading, _, *lines = printed.splitlines()
    assert heading.startswith("| hotpotqa distractor, 1 questions: ours (published) | ")
    for row, line in zip(paper.rows, lines, strict=False):
        name, _, cells = line.removeprefix("| ").partition(" | ")
        published = row.published.get("hotpotqa", {})
        assert name == row.name
        assert all(f"({figure})" in cells for figure in published.values())
        assert cells.count(" (") == len(published)
    assert "The keyless engine is not a language model" in printed
    assert f"published with {paper.models}" in printed
    programs = [of_run(path.parent, "manifest")["program"] for path in runs.glob("*/predictions.jsonl")]
    tunables = {program["name"]: program["tunables"] for program in programs}
    expected = {row.name: row.set for row in paper.rows if row.program}
    assert tunables.keys() == expected.keys()
    assert all(tunables[name].items() >= values.items() for name, values in expected.items())
