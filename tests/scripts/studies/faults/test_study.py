"""Runs over an endpoint that misbehaves lose nothing, hang nowhere, and score nothing wrong; and no key gets out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from polyhop.engines import endpoint
from polyhop.engines.endpoint import Limits
from polyhop.eval.records import read_summary
from polyhop.scripts.studies.faults.faults import FAULTS, drip, slow
from polyhop.scripts.studies.faults.schedule import Always, Every, First, Longer, Share
from polyhop.scripts.studies.faults.server import Server
from polyhop.scripts.studies.faults.study import CASES, Case, Row, Study, cases_named

pytestmark = pytest.mark.slow

KEY = "planted-0123456789-key"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_FIRST_WAIT", 0.02)


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(6, threads=6, limits=Limits(timeout=60.0, retries=8, patience=30.0))


def sound(row: Row) -> Row:
    assert (row.lost, row.hung, row.wrong) == (0, 0, 0)
    assert row.answered + sum(row.failed.values()) == row.questions
    return row


@pytest.mark.parametrize("name", ["429-bare", "500", "reset-in-body", "truncated", "empty", "null", "latin-1"])
def test_what_passes_costs_requests_and_no_question(study: Study, name: str) -> None:
    row = sound(study.run(Case(name, "at first", ((First(), FAULTS[name]),))))
    assert row.answered == 6
    assert row.injected > 20
    assert list(row.done.values()) == [row.injected]


@pytest.mark.parametrize("fault", [slow(3.0), drip(0.1), FAULTS["hang"]], ids=lambda fault: str(fault.name))
def test_what_never_comes_is_asked_for_again(fault: object) -> None:
    study = Study(6, threads=6, limits=Limits(timeout=1.0, retries=8, patience=30.0))
    row = sound(study.run(Case("late", "at times", ((Every(12), fault),))))  # type: ignore[arg-type]
    assert row.answered == 6
    assert list(row.done) == ["repeated after timeout"]
    assert row.done["repeated after timeout"] >= row.injected >= 2  # a busy machine may be late by itself


@pytest.mark.parametrize("name", ["context-openai", "context-vllm", "context-llama"])
def test_small_contexts_are_read_in_part(study: Study, name: str) -> None:
    row = sound(study.run(Case(name, "long prompts", ((Longer(5_000), FAULTS[name]),), differs="read less")))
    assert row.answered == 6
    assert row.done == {"prompt shortened": row.injected}
    assert row.injected >= 6


@pytest.mark.parametrize(
    ("name", "cause", "requests"),
    [
        ("401-echo", "model", 1),
        ("429-absurd", "model", 1),
        ("filter", "refused", 1),
        ("refusal", "refused", 1),
        ("1mb-braces", "reply", 1),
        ("1mb-in-field", "reply", 1),
        ("length", "reply", 1),
        ("empty", "reply", 3),
        ("prose", "reply", 2),
    ],
)
def test_what_lasts_is_a_failure_with_its_cause(
    study: Study, tmp_path: Path, name: str, cause: str, requests: int
) -> None:
    row = sound(study.run(Case(name, "always", ((Always(), FAULTS[name]),)), tmp_path / "run"))
    assert row.failed == {cause: 6}
    assert row.requests == 6 * requests
    summary = read_summary(tmp_path / "run")
    assert summary["counts"] == {"questions": 6, "answered": 0, "failed": 6, "skipped": 0, "gold_not_found": 0}
    assert summary["metrics"]["answer_f1"] == 0
    assert {failure["cause"] for failure in summary["failures"]} == {cause}
    assert all(len(failure["message"]) < 500 for failure in summary["failures"])


def test_an_answer_that_differs_is_wrong_unless_it_is_said_why(study: Study) -> None:
    less = ((Longer(5_000), FAULTS["context-openai"]),)
    row = study.run(Case("context", "long prompts", less))
    explained = study.run(Case("context", "long prompts", less, differs="read less"))
    assert (row.wrong, row.other, row.sound) == (explained.other, explained.wrong, False)
    assert explained.sound
    assert not replace(explained, lost=1).sound
    assert not replace(explained, hung=1).sound


def test_every_fault_is_in_the_table() -> None:
    named = {fault.name for case in CASES for _, fault in case.faults}
    assert named == set(FAULTS)
    assert [case.name for case in cases_named(["dies", "429"])] == ["429", "dies"]
    assert len(cases_named(["mixed"])) == 4


# --- keys ------------------------------------------------------------------------------------------------------------

PROFILE = """
lm = "openai/behind-http"
[models."openai/*"]
api_base = "{url}"
timeout = 2
retries = 1
patience = 2
{more}
"""


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MADE_UP_SECRET"])
def test_no_key_gets_out(tmp_path: Path, variable: str) -> None:
    """Whatever the server does, the key that it is asked with is in no file, on no screen and in no report."""
    more = "" if variable == "OPENAI_API_KEY" else f'api_key_env = "{variable}"'
    names = ("401-echo", "500", "reset-in-body", "truncated", "filter-400-azure", "refusal", "prose", "429-quota")
    faults = tuple((Share(0.1, seed), FAULTS[name]) for seed, name in enumerate(names))
    with Server(((First(), FAULTS["401-echo"]),) if more else faults) as server:
        (tmp_path / "models.toml").write_text(PROFILE.format(url=server.url, more=more), encoding="utf-8")
        command = ["evaluate", "--dataset", "sample", "--limit", "8", "--lm", "models.toml", "--out", "run"]
        environment = {**os.environ, variable: KEY, "DSPY_CACHEDIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-m", "polyhop.scripts.main", *command, "--threads", "4"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
        )
    assert server.injected["401-echo"] > 0, done.stderr
    assert (tmp_path / "run" / "summary.json").exists(), done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_bytes())
    assert any("Incorrect API key" in failure["message"] for failure in summary["failures"])
    written = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for where, text in {**written, "stdout": done.stdout, "stderr": done.stderr}.items():
        assert KEY.encode() not in text, where
