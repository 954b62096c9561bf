"""`polyhop reproduce`: every row of a paper is a run; published figures stand beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyhop.eval.metrics import COSTS, METRICS
from polyhop.programs import PROGRAMS
from polyhop.scripts.main import app
from polyhop.scripts.papers import PAPERS

from ..faults.server import Server


def reproduce(*arguments: Any, **environment: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "160", **environment})


@pytest.mark.parametrize("name", PAPERS)
def test_rows_are_runs_beside_published_figures(name: str, hotpotqa: Path, tmp_path: Path) -> None:
    paper = PAPERS[name]
    arguments = [name, "--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--retriever", "bm25", "--markdown"]
    result = reproduce(*arguments)
    assert result.exit_code == 0, result.output
    heading, _, *lines = result.stdout.splitlines()
    assert heading.startswith("| hotpotqa, 3 questions: ours (published) | ")
    shown = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    assert shown == [row.name for row in paper.rows]
    for row, line in zip(paper.rows, lines, strict=False):
        for figure in row.published.get("hotpotqa", {}).values():
            assert f"({figure})" in line
    assert "The embedded engine is not a language model" in result.stdout
    assert f"published with {paper.models}" in result.stdout

    runs = {run: (run / "predictions.jsonl").read_text() for run in (tmp_path / "runs").iterdir() if run.is_dir()}
    assert len(runs) == len(paper.rows)
    assert reproduce(*arguments).stdout == result.stdout
    assert {run: (run / "predictions.jsonl").read_text() for run in runs} == runs  # nothing was asked again


@pytest.mark.parametrize("paper", PAPERS.values(), ids=list(PAPERS))
def test_metrics_and_figures_are_known(paper: Any) -> None:
    known = {*METRICS, *COSTS}
    assert set(paper.metrics) <= known
    for row in paper.rows:
        assert row.program in PROGRAMS
        assert set(row.published) <= set(paper.datasets)
        assert {metric for figures in row.published.values() for metric in figures} <= set(paper.metrics)


def test_a_model_that_costs_is_confirmed_first(hotpotqa: Path, tmp_path: Path) -> None:
    with Server([]) as server:  # the embedded engine behind HTTP
        profile = tmp_path / "server.toml"
        profile.write_text(
            f'lm = "openai/served"\n[models."openai/*"]\napi_base = "{server.url}"\napi_key_env = "SERVED"\n'
        )
        arguments = ["kair", "--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--lm", profile]
        result = reproduce(*arguments, "--dry-run", SERVED="key")
        assert result.exit_code == 0, result.output
        assert "Expected cost" in result.stdout
        assert not (tmp_path / "runs").exists()
        result = reproduce(*arguments, SERVED="key")
        assert result.exit_code == 1
        assert "LM calls: confirm with --yes, or use --limit" in result.stderr
        result = reproduce(*arguments, "--budget-calls", "1", "--yes", SERVED="key")
        assert result.exit_code == 0, result.output  # what was asked for the estimate is in the cache
        assert "Models: here openai/served; published with GPT-4o-mini" in result.stdout
        assert "embedded engine" not in result.stdout


def test_what_a_paper_cannot_search_is_said(hotpotqa: Path, tmp_path: Path) -> None:
    result = reproduce("par_rag", "--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs")
    assert result.exit_code == 1
    assert "needs an --index with vectors" in result.stderr
    result = reproduce("prisma", "--out", tmp_path)
    assert result.exit_code == 2
    assert "'prisma' is none of prism, kair, par_rag, c3po" in result.stderr
