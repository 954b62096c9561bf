"""`polyhop diagnose`: a run is repeated with better replies, agent by agent."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from .cli import done, of_run, polyhop, records, refused


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("diagnosed") / "prism"
    options = ["--program", "prism", "--retriever", "bm25", "--set", "rounds=1", "--limit", "8", "--seed", "3"]
    done("evaluate", *options, "--out", out)
    return out


def test_every_agent_has_its_costs(run: Path, tmp_path: Path) -> None:
    result = done("diagnose", run, "--json", "--metric", "evidence_f1", "--rollouts", tmp_path / "data")
    found = json.loads(result.stdout)
    rows = records(tmp_path / "data" / "preferences.trl.jsonl")
    assert f"{len(rows)} replies that gain points" in result.stderr
    assert rows
    roles = "analyzer selector selector_without_bridging adder answerer retrieval"
    assert list(found["costs"]) == roles.split()
    assert (found["questions"], found["failed"]) == (8, 0)
    assert set(found["by_hops"]) <= {"1", "2", "3", "4", "unknown"}
    scores = of_run(run)["metrics"]
    for role, costs in found["costs"].items():
        for name, cost in costs.items():
            assert cost is None or cost["low"] <= cost["mean"] <= cost["high"], role
            assert cost is None or cost["mean"] <= 1 - scores[name] + 1e-9, role
    assert found["lm_calls"] > 0


def test_the_report_shows_what_was_found(run: Path, tmp_path: Path) -> None:
    done("diagnose", run, "--metric", "evidence_f1", "--limit", "4")
    done("report", run, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Which agent costs the points" in page
    assert re.search(r'aria-label="selector: Evidence F1 [^"]* to [^"]*"', page)
    (run / "diagnosis.json").write_text("{}")
    assert "diagnosis.json is damaged" in refused("report", run, "--out", tmp_path / "report.html")
    (run / "diagnosis.json").unlink()


def test_single_agents_a_sample_and_another_model(run: Path) -> None:
    result = done("diagnose", run, "--metric", "evidence_f1", "--limit", "4", "--against", "lexical")
    assert "4 questions, " in result.stdout
    assert "retrieval" not in result.stdout  # another model does not search
    result = done("diagnose", run, "--agent", "adder", "--agent", "selector", "--metric", "evidence_f1", "--json")
    assert list(json.loads(result.stdout)["costs"]) == ["selector", "adder"]
    assert "no agent 'chef': the agents are analyzer, selector, " in refused("diagnose", run, "--agent", "chef")


def test_a_budget_ends_with_what_is_known(run: Path) -> None:
    result = done("diagnose", run, "--budget-calls", "30")
    assert "the budget (30 LM calls) is spent after" in result.stderr
    assert polyhop("diagnose", run, "--budget-calls", "1").exit_code == 1


@pytest.mark.parametrize(
    ("part", "name", "what"), [("program", "state_hash", "program (prompts"), ("questions", "hash", "question file")]
)
def test_a_changed_run_is_refused(part: str, name: str, what: str, run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    manifest = of_run(copy, "manifest")
    manifest[part][name] = "0" * 32
    (copy / "manifest.json").write_text(json.dumps(manifest))
    message = refused("diagnose", copy)
    assert f"the {what}" in message
    assert "has changed since" in message
    refused("diagnose", tmp_path)


def test_a_run_names_neither_code_nor_servers_nor_profiles(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.py").write_text("raise SystemExit('executed')")
    (tmp_path / "selector=x.toml").write_text('lm = "lexical"')
    (tmp_path / "copy").mkdir()
    shutil.copy(run / "predictions.jsonl", "copy")
    original = of_run(run, "manifest")

    def diagnosed(**changes: Any) -> str:
        program = {**original["program"], **changes.pop("program", {})}
        (tmp_path / "copy" / "manifest.json").write_text(json.dumps({**original, "program": program, **changes}))
        return refused("diagnose", "copy")

    for program in ("planted:Program", f"planted:Program={tmp_path}"):
        assert "name it with --program" in diagnosed(program={"name": program})
        assert "not the path of a file" in diagnosed(files={"program": program})
    assert "name it with --program" in diagnosed(files={"program": "/planted:Program"})
    for index in ("http://127.0.0.1:9", "http:/127.0.0.1:9", "pyserini:planted"):
        assert "not the path of a file" in diagnosed(files={"index": index})
    for lms in ({"selector": {"model": "x.toml"}}, {"x/selector": {"model": "lexical"}}, {"": {"model": "x.toml"}}):
        assert "name them with --lm" in diagnosed(program={"lms": lms})
    assert "unknown language model 'None'" in diagnosed(program={"lms": {"selector": {"temperature": 1}}})
    assert "is damaged: must be an integer" in diagnosed(program={"tunables": {"rounds": "x"}})
    assert "is damaged: limit must be positive" in diagnosed(questions={**original["questions"], "limit": -3})
