"""`polyhop doctor` as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from polyhop.data.lucene.index import build_index

from ..faults.faults import FAULTS
from ..faults.listening import Listening


def test_everything_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process of its own: nothing private on any of its streams, and it ends although a model hangs."""
    corpus, index, key = tmp_path / "corpus.jsonl", tmp_path / "ix", "sk-planted-0123456789-never-shown"
    corpus.write_text('{"title": "Rome", "text": "Rome is in Italy."}\n{"title": "Paris", "text": "In France."}\n')
    build_index([corpus], index)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    command = [sys.executable, "-m", "polyhop.scripts.main", "doctor", "--json", "--lm", "openai/a-model"]
    command += ["--index", str(index), "--seconds", "10"]
    with Listening(FAULTS["hang"].act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    assert not report["ok"]
    assert all(each.keys() == {"check", "status", "found", "fix"} for each in report["checks"])
    found = {each["check"]: each["found"] for each in report["checks"]}
    assert {"python", "packages"} <= found.keys()
    assert "Lucene 9." in found["java"]
    assert "is intact: 2 passages" in done.stdout
    assert "no answer in 10 s" in found["model openai/a-model"]
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {key}"]  # it was the model that took the time
    assert key not in done.stdout
    assert "127.0.0.1" not in done.stdout
