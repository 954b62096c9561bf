"""`polyhop optimize`: an optimization from the command line."""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from polyhop.eval.folder import read_manifest

from .cli import done, of_run, polyhop, refused

QUICK = "--program naive --retriever bm25 --stages tunables --trials 2 --metric evidence_f1 --limit 12".split()
run = partial(polyhop, "optimize")


def test_a_run_and_its_best_program(tmp_path: Path) -> None:
    out = tmp_path / "run"
    printed = done("optimize", "--out", out, *QUICK).stdout
    assert "evidence_f1 on the validation questions" in printed
    assert "test questions: evidence_f1" in printed
    summary = of_run(out)
    assert [line["stage"] for line in summary["stages"]] == ["start", "tunables"]
    again = json.loads(done("optimize", "--out", out, *QUICK, "--json").stdout)
    assert {**again, "spent": 0} == {**summary, "spent": 0}
    assert read_manifest(out / "test" / "0-start").dataset == "sample"  # for 'polyhop compare' with other runs
    done("ask", "Who directed Solaris?", "--index", "sample", "--program", out / "best", "--json")
    for split, warned in (("train", True), ("dev", False)):  # it was tuned on train, and tested on dev
        scored = done("evaluate", "--program", out / "best", "--split", split, "--limit", "2", "--seed", "1")
        assert ("was tuned on" in scored.stderr) == warned, scored.stderr


def test_a_budget_that_cannot_be_enough(tmp_path: Path) -> None:
    spent = run("--out", tmp_path / "run", *QUICK, "--budget-calls", "3")
    assert spent.exit_code == 1
    assert "the budget (3 LM calls) cannot pay for the program on 5 validation questions" in spent.stderr
    assert of_run(tmp_path / "run", "spent")["calls"] == 3
    done("optimize", "--out", tmp_path / "run", *QUICK, "--budget-calls", "1000")  # resumes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "hotpotqa"], "name the training questions: --dataset hotpotqa --train FILE"),
        (["--metric", "beauty"], "no metric 'beauty': choose from answer_em"),
        (["--range", "rounds"], "neither NAME=LOW..HIGH nor NAME=A,B nor NAME=all"),
        (["--stages", "tunables", "--freeze", "beauty"], "the program has no tunable 'beauty'"),
        (["--stages", "prompts", "--optimizer", "gepa"], "lexical cannot write instructions"),
        (["--program", "magic"], "unknown program 'magic'"),
        (["--dataset", "sample", "--train", "mine.jsonl"], "the sample has its own questions: name the --dataset"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(tmp_path: Path, arguments: list[str], message: str) -> None:
    wrong = run("--out", tmp_path / "run", *arguments)
    assert wrong.exit_code in (1, 2)
    assert message in wrong.stderr
    assert not (tmp_path / "run").exists()


def test_a_manifest_of_others_chooses_no_code_and_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')")
    (tmp_path / "evil.toml").write_text('[models."openai/*"]\napi_base = "http://127.0.0.1:9/v1"')
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "manifest.json"
    code = ("evil.py:x", "evil:x", "hub:evil.py:x", "evil:x=best")
    names = ("program", "metric", "train", "val", "test", "retriever")
    for name, value in [
        *product(names, code),
        ("lm", "evil.toml"),
        ("prompt_lm", "evil.toml"),
        ("cluster", "auto"),
        ("index", "pyserini:x"),
    ]:
        config.write_text(json.dumps({"settings": {name: [value] if name == "lm" else value}}))
        message = refused("optimize", "--out", tmp_path / "run", "--config", config)
        assert f"names {value}: give it as an option, --{name.replace('_', '-')}" in message
