"""`polyhop doctor`: a whole machine, broken ones, and models that answer, refuse and hang; no key on any stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from polyhop.data.lucene.index import build_index
from polyhop.scripts import doctor

from ..faults.exchange import Exchange
from ..faults.faults import FAULTS
from ..faults.listening import Listening, fails, says
from .cli import polyhop

KEY, SPEC = "sk-planted-0123456789-never-shown", "openai/some-model"
FIELDS = '[[ ## sub_questions ## ]]\n["Who directed Solaris?", "Where was #1 born?"]\n\n[[ ## completed ## ]]'


def run(*arguments: Any) -> Result:
    return polyhop("doctor", *arguments)


def test_everything_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing private on any stream, and it ends although a model hangs."""
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "ix"
    lines = [("Rome", "Rome is in Italy."), ("Paris", "In France."), ("Paris", "In Texas.")]
    corpus.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in lines))
    build_index([corpus], index)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("POLYHOP_INDEX", str(index))
    monkeypatch.setattr(doctor, "_SECONDS", 1.0)
    with Listening(FAULTS["hang"].act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        done = run("--json", "--lm", "openai/a-model")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    found = {each["check"]: (each["status"], each["found"]) for each in report["checks"]}
    assert [found[name][0] for name in ("packages", "java", "index", "retriever")] == ["ok"] * 4
    assert "is sound: 3 passages" in found["index"][1]
    assert "; 2 share their title with others, 2 are called 'Paris'" in found["documents"][1]
    assert found["ties"][1].startswith("0% of the documents link to others, 0% are linked by others, ")
    assert found["retriever"][1] == "chain, because 67% of the documents are tied by links or names"
    assert found["model openai/a-model"][0] == "failed"
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {KEY}"]  # it was the model that took the time
    assert KEY not in done.output


@pytest.mark.parametrize(
    ("act", "status", "told"),
    [
        (says(FIELDS, 7_000, 7), "ok", "answers in the expected fields ("),
        (says("Cats!", 70, 7), "failed", "does not have the expected fields"),
        (FAULTS["401-echo"].act, "failed", "Incorrect API key provided: ***"),
        (fails(500), "failed", "some-model"),
    ],
)
def test_a_model_is_asked_once_and_its_key_is_not_told(
    act: Callable[[Exchange], None], status: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Listening(act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        result = run("--lm", SPEC)
    line = next(line for line in result.stdout.splitlines() if f"model {SPEC}" in line)
    assert line.startswith(status)
    assert told in line
    assert result.exit_code == (status == "failed")
    assert ("-> set its key" in result.stdout) == (status == "failed")
    assert KEY not in result.stdout + result.stderr
