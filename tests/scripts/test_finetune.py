"""`polyhop finetune`: the model of some agents is trained on what went well in a run."""

from __future__ import annotations

from pathlib import Path

import dspy
import pytest
from dspy.clients.provider import Provider
from typer.testing import CliRunner, Result

from polyhop.scripts.main import app

from ..faults.server import Server
from ..optimizers.school import School


def polyhop(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def test_agents_of_a_run_are_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    school = School()
    monkeypatch.setattr(dspy.LM, "infer_provider", lambda lm: school if lm.model.startswith("openai/") else Provider())
    run = tmp_path / "run"
    with Server() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        models = ["--lm", "proxy=openai/small"]
        assert polyhop("evaluate", "--program", "c3po", *models, "--limit", "4", "--out", run).exit_code == 0
        asked = server.requests
        result = polyhop("finetune", run, "--agent", "proxy")
        assert result.exit_code == 0, result.output
        assert result.stdout == "--lm proxy=openai/trained\n"
        assert server.requests == asked  # replies come from the cache
        question = ("Who wrote the novel that the film Solaris is based on?", "--index", "sample", "--program", "c3po")
        assert polyhop("ask", *question, *result.stdout.split()).exit_code == 0
        assert server.requests > asked
    ((model, lessons, *_),) = school.lessons
    assert model == "openai/small"
    assert 0 < len(lessons) <= asked
    assert polyhop("finetune", run).exit_code == 2  # no agent
    result = polyhop("finetune", run, "--agent", "answerer")
    assert result.exit_code == 1
    assert "lexical cannot be trained" in result.stderr

    def refuse(**given: object) -> str:
        raise ConnectionError("no such job")

    monkeypatch.setattr(school, "finetune", refuse)
    result = polyhop("finetune", run, "--agent", "proxy")
    assert result.exit_code == 1
    assert "the training failed: no such job" in result.stderr
