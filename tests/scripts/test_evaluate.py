"""`polyhop evaluate` on the sample."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyhop.scripts.main import app


def evaluate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["evaluate", *arguments], env={"COLUMNS": "100"})


def test_programs_stand_side_by_side() -> None:
    result = evaluate("--program", "naive", "--program", "direct", "--limit", "3")
    assert result.exit_code == 0, result.output
    assert "sample, dev: 3 questions" in result.stdout
    for heading in (
        "naive",
        "direct",
        "evidence F1 (passages)",
        "fact F1",
        "Recall@5",
        "answer EM",
        "LM calls",
        "failed",
    ):
        assert heading in result.stdout


def test_json_is_one_object_and_the_same_every_time() -> None:
    first, second = (json.loads(evaluate("--limit", "4", "--json").stdout)["programs"] for _ in range(2))
    assert list(first) == ["prism", "naive"]
    for program in ("prism", "naive"):
        assert first[program]["questions"] == 4
        assert first[program] | {"seconds": 0} == second[program] | {"seconds": 0}


def test_threads_change_no_score() -> None:
    one, many = (
        json.loads(evaluate("--limit", "8", "--threads", threads, "--program", "prism", "--json").stdout)["programs"]
        for threads in ("1", "4")
    )
    assert one["prism"] | {"seconds": 0} == many["prism"] | {"seconds": 0}


def test_failures_are_shown_with_their_cause(parrot: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.models.language_model", lambda spec: parrot("Cats!"))
    result = evaluate("--program", "naive", "--limit", "2")
    assert result.exit_code == 1
    assert "naive: 2 failed: the model's reply to AnswerFromPassages" in result.stderr
    assert "error: every question failed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--dataset", "hotpotqa"], 1, "no dataset 'hotpotqa'"),
        (["--program", "nope"], 1, "no program 'nope'"),
        (["--split", "all"], 2, "'all' is not one of"),
        (["--limit", "0"], 2, "--limit"),
    ],
)
def test_wrong_arguments(arguments: list[str], status: int, message: str) -> None:
    result = evaluate(*arguments)
    assert result.exit_code == status
    assert message in result.stderr
