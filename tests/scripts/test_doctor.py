"""`polyhop doctor` as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyhop.data.lucene.index import build_index
from polyhop.scripts.main import app
from polyhop.scripts.studies.faults.faults import FAULTS

from .studies.faults.listening import Listening


def test_every_finding_is_in_the_json() -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"]) == (0, True), result.output
    by_name = {each["check"]: each for each in report["checks"]}
    assert {"python", "packages", "memory", "java", "model lexical", "extra dense"} <= by_name.keys()
    assert "Lucene 9." in by_name["java"]["found"]
    assert all(each.keys() == {"check", "status", "found", "fix"} for each in report["checks"])


def test_everything_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process of its own: nothing private on any of its streams, and it ends although a model hangs."""
    corpus, index, key = tmp_path / "corpus.jsonl", tmp_path / "ix", "sk-planted-0123456789-never-shown"
    corpus.write_text('{"title": "Rome", "text": "Rome is in Italy."}\n{"title": "Paris", "text": "In France."}\n')
    build_index([corpus], index)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    command = [sys.executable, "-m", "polyhop.scripts.main", "doctor", "--index", str(index), "--lm", "openai/a-model"]
    with Listening(FAULTS["hang"].act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        done = subprocess.run([*command, "--seconds", "10"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "is intact: 2 passages" in done.stdout
    assert "no answer in 10 s" in done.stdout
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {key}"]  # it was the model that took the time
    assert key not in done.stdout
    assert "127.0.0.1" not in done.stdout
