"""The papers in docs: their rows are runs, and published figures stand beside ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from polyhop.scripts.table import Paper

from .cli import polyhop

PAPERS = sorted((Path(__file__).parents[2] / "docs" / "papers").glob("*.toml"))
NAMES = [path.stem for path in PAPERS]


table = partial(polyhop, "table")


@pytest.mark.parametrize("file", PAPERS, ids=NAMES)
def test_rows_are_runs_beside_published_figures(
    file: Path, write_hotpotqa: Callable[[int], Path], tmp_path: Path
) -> None:
    paper = Paper.read(file)
    on = ("--on", f"hotpotqa:{write_hotpotqa(1)}")
    arguments = [file, *on, "--out", tmp_path / "runs", "--retriever", "bm25", "--markdown"]
    result = table(*arguments)
    assert result.exit_code == 0, result.output
    heading, _, *lines = result.stdout.splitlines()
    assert heading.startswith("| hotpotqa distractor, 1 questions: ours (published) | ")
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[: len(paper.rows)]] == [
        row.name for row in paper.rows
    ]
    for row, line in zip(paper.rows, lines, strict=False):
        for figure in row.published.get("hotpotqa", {}).values():
            assert f"({figure})" in line
        assert line.partition(" | ")[2].count(" (") == len(row.published.get("hotpotqa", {}))
    assert "The keyless engine is not a language model" in result.stdout
    assert f"published with {paper.models}" in result.stdout
    runs = {path: path.read_text() for path in (tmp_path / "runs").glob("*/predictions.jsonl")}
    assert len(runs) == sum(bool(row.program) for row in paper.rows)
    manifests = [json.loads((path.parent / "manifest.json").read_text())["program"] for path in runs]
    tuned = {program["name"]: program["tunables"] for program in manifests}
    assert all(tuned[row.name].items() >= row.set.items() for row in paper.rows if row.program)
    assert table(*arguments).stdout == result.stdout
    assert {path: path.read_text() for path in runs} == runs  # nothing was asked again
