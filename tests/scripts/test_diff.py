"""`polyhop diff`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from typer.testing import CliRunner

import polyhop
from polyhop.eval.statistics import Interval
from polyhop.optimizers.artifact import Provenance
from polyhop.programs import Prism
from polyhop.scripts.main import app


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["diff", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    program = Prism(polyhop.ChainRetriever(), rounds=2)
    instructions = program.selector.signature.instructions
    changed = instructions.replace("definitely irrelevant", "[bold]useless[/bold] \x1b[31m")
    program.selector.signature = program.selector.signature.with_instructions(changed)
    program.adder.demos = [dspy.Example(question="Who [x]?", add=["1s1"])]
    known = Provenance(metric="evidence_f1", scores={"val": {"evidence_f1": Interval(0.71, 0.69, 0.73)}})
    return polyhop.save(program, tmp_path / "runs" / "best", provenance=known)


def test_a_program_before_and_after_tuning(tuned: Path) -> None:
    result = run("prism", str(tuned))
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "remove what is [-definitely irrelevant.-] {+[bold]useless[/bold] [31m.+}" in text
    assert '+ demo {"question": "Who [x]?", "add": ["1s1"]}' in text
    assert "│ rounds │ 3 │ 2 │ 1..6 │" in text
    assert "│ val Evidence F1 (passages) │ │ 71.0 (69.0 to 73.0) │" in text
    assert f"┃ prism ┃ prism ({tuned.parts[-3]}/runs) ┃" in text
    assert "search.chain" not in text
    assert "\x1b" not in result.stdout


def test_the_usual_scores_are_shown(tmp_path: Path) -> None:
    names = ("answer_em", "passage_mrr", "token_f1", "seconds_p95", "lm_calls", "own_metric")
    scores = {"test": {name: Interval(1 / 3, 0.25, 0.5) for name in names}}
    paths = []
    for model, trials in (("openai/small", 20), ("openai/large", 40)):
        program = Prism()
        program.set_lm(polyhop.lm(model))
        settings = {"trials": trials, "stages": ["tunables"]}
        known = Provenance(metric="own_metric", scores=scores, settings=settings, spent={"minutes": trials / 30})
        paths.append(str(polyhop.save(program, tmp_path / model, provenance=known)))
    text = " ".join(run(*paths).stdout.split())
    assert "│ test Answer EM │ 33.3 (25.0 to 50.0) │ 33.3 (25.0 to 50.0) │" in text
    assert "│ test LM calls │ 0.33 (0.25 to 0.50) │" in text
    assert "│ test Own metric │ 0.33 (0.25 to 0.50) │" in text  # tuned for it
    assert "│ and 3 more: --json │" in text
    assert not any(name in text for name in ("mrr", "token_f1", "seconds"))
    assert "│ model of analyzer, selector, adder, answerer │ openai/small │ openai/large │" in text
    assert "│ setting trials │ 20 │ 40 │" in text
    assert "│ spent minutes │ 0.6667 │ 1.333 │" in text
    assert "stages" not in text
    found = json.loads(run(*paths, "--json").stdout)
    assert list(found["scores"]) == [f"test {name}" for name in names]


def test_a_program_of_somebodys_own_and_other_programs(tmp_path: Path) -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.agent = dspy.Predict("question -> answer")

    path = str(polyhop.save(Own(), tmp_path / "own"))
    text = " ".join(run(path, "prism").stdout.split())
    assert "own: agent agent" in text
    assert "Only in prism: agent analyzer, agent selector" in text


@pytest.mark.parametrize("wrong", ["nope", "nope.json"])
def test_what_is_no_program_is_one_line(wrong: str, tmp_path: Path) -> None:
    result = run("prism", wrong)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    (tmp_path / "empty").mkdir()
    assert "is not an artifact: it has no manifest.json" in run("prism", str(tmp_path / "empty")).stderr
