"""The papers in docs: their rows are runs, published figures stand beside ours, and missing files are named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from polyhop.eval.metrics import COSTS, METRICS
from polyhop.programs import new_program, tunables
from polyhop.scripts.table import Paper

from ..faults.server import Server
from .cli import polyhop

PAPERS = sorted((Path(__file__).parents[2] / "docs" / "papers").glob("*.toml"))
NAMES = [path.stem for path in PAPERS]


table = partial(polyhop, "table")


@pytest.fixture
def benchmarks(tmp_path: Path, write_hotpotqa: Callable[[int], Path]) -> Path:
    """A folder with one dataset: a question and its corpus."""
    hotpotqa = write_hotpotqa(1)
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "hotpotqa_dev_distractor.json").write_bytes(hotpotqa.read_bytes())
    contexts = json.loads(hotpotqa.read_text())[0]["context"]
    records = "".join(json.dumps({"title": title, "sentences": sentences}) + "\n" for title, sentences in contexts)
    (folder / "hotpotqa_corpus.jsonl.gz").write_bytes(gzip.compress(records.encode()))
    return folder


@pytest.mark.parametrize("file", PAPERS, ids=NAMES)
def test_a_paper_is_rows_of_known_programs_tunables_and_metrics(file: Path) -> None:
    paper, known = Paper.read(file), {*METRICS, *COSTS}
    assert set(paper.metrics) <= known
    for row in paper.rows:
        assert row.program or row.published
        assert row.set.keys() <= (tunables(new_program(row.program)).keys() if row.program else set())
        assert row.published.keys() <= paper.datasets.keys()
        assert {metric for figures in row.published.values() for metric in figures} <= set(paper.metrics)


@pytest.mark.parametrize("file", PAPERS, ids=NAMES)
def test_rows_are_runs_beside_published_figures(file: Path, benchmarks: Path, tmp_path: Path) -> None:
    paper = Paper.read(file)
    arguments = [file, "--out", tmp_path / "runs", "--retriever", "bm25", "--markdown"]
    result = table(*arguments, POLYHOP_BENCHMARKS=str(benchmarks))
    assert result.exit_code == 0, result.output
    heading, _, *lines = result.stdout.splitlines()
    setting = "open" if paper.datasets["hotpotqa"].corpus else "distractor"
    assert heading.startswith(f"| hotpotqa {setting}, 1 questions: ours (published) | ")
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[: len(paper.rows)]] == [
        r.name for r in paper.rows
    ]
    for row, line in zip(paper.rows, lines, strict=False):
        for figure in row.published.get("hotpotqa", {}).values():
            assert f"({figure})" in line
        assert line.partition(" | ")[2].count(" (") == len(row.published.get("hotpotqa", {}))
    assert "The embedded engine is not a language model" in result.stdout
    assert f"published with {paper.models}" in result.stdout
    for name in paper.datasets.keys() - {"hotpotqa"}:
        assert f"lacks {name}: {paper.datasets[name].source}" in result.stderr
    runs = {file: file.read_text() for file in (tmp_path / "runs").glob("*/predictions.jsonl")}
    assert len(runs) == sum(bool(row.program) for row in paper.rows)
    manifests = [json.loads((file.parent / "manifest.json").read_text())["program"] for file in runs]
    tuned = {program["name"]: program["tunables"] for program in manifests}
    assert all(tuned[row.name].items() >= row.set.items() for row in paper.rows if row.program)
    assert table(*arguments, "--benchmarks", benchmarks).stdout == result.stdout
    assert {file: file.read_text() for file in runs} == runs  # nothing was asked again


@pytest.mark.parametrize("file", PAPERS, ids=NAMES)
def test_files_that_are_missing_are_named_with_their_addresses(file: Path, tmp_path: Path) -> None:
    result = table(file, "--out", tmp_path / "runs")
    assert result.exit_code == 1
    for name, files in Paper.read(file).datasets.items():
        assert f"{name}: {files.source}" in result.stderr
        assert "https://" in files.source
    assert not (tmp_path / "runs").exists()


def test_an_open_setting_needs_its_corpus(benchmarks: Path, tmp_path: Path) -> None:
    (benchmarks / "hotpotqa_corpus.jsonl.gz").unlink()
    result = table(PAPERS[NAMES.index("kair")], "--out", tmp_path / "runs", "--benchmarks", benchmarks)
    assert result.exit_code == 1
    assert "  hotpotqa: hotpot_dev_fullwiki_v1.json and the abstracts of Wikipedia" in result.stderr


def test_a_language_model_is_named_and_paid_from_one_budget(
    benchmarks: Path, write_hotpotqa: Callable[[int], Path], tmp_path: Path
) -> None:
    (benchmarks / "hotpotqa_dev_distractor.json").write_bytes(write_hotpotqa(2).read_bytes())
    with Server([]) as server:  # the embedded engine behind HTTP
        profile = tmp_path / "server.toml"
        profile.write_text(
            f'lm = "openai/served"\n[models."openai/*"]\napi_base = "{server.url}"\napi_key_env = "SERVED"\n'
        )
        arguments = [PAPERS[NAMES.index("prism")], "--out", tmp_path / "runs", "--benchmarks", benchmarks]
        arguments += ["--lm", profile, "--limit", 1]
        result = table(*arguments, "--budget-calls", 2, SERVED="key")
        assert (result.exit_code, server.requests) == (1, 2)
        assert "is spent" in result.stderr
        result = table(*arguments, SERVED="key")
        assert result.exit_code == 0, result.output
        assert "hotpotqa distractor, 1 questions: ours (published)" in result.stdout
        assert "Models: here openai/served; published with GPT-4o" in result.stdout
        assert "embedded engine" not in result.stdout


def test_datasets_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets  # with pandas: a second that only this test needs

    context = {"title": ["A", "B"], "sentences": [["A is a mill."], ["B is a weir."]]}
    record = {"id": "q", "question": "What is A?", "answer": "a mill", "type": "bridge", "level": "easy"}
    facts = {"title": ["A"], "sent_id": [0]}
    made = datasets.Dataset.from_list([{**record, "context": context, "supporting_facts": facts}])
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: made)
    on = ("--on", "hotpotqa:hub:some/hotpot:fullwiki")
    result = table(*on, "--program", "naive", "--out", tmp_path / "runs", "--markdown")
    assert result.exit_code == 0, result.output
    assert "hotpotqa distractor, 1 questions" in result.stdout
