"""An interrupted run resumes, and ends with the results of an uninterrupted one."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from polyhop.eval.folder import RunError, RunManifest, read_records
from polyhop.eval.run import evaluate

from . import small
from .small import Fake, examples, mixed, numbered, read_lines
from .test_run import steady

COUNT = 60


def start(out: Path, seconds: float = 0.02, threads: int = 2) -> subprocess.Popen[str]:
    """A run in its own process; returns right before the first question."""
    command = [sys.executable, small.__file__, str(out), str(COUNT), str(seconds), str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def wait_for_lines(out: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        path = out / "predictions.jsonl"
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)
    raise TimeoutError


def uninterrupted() -> dict[str, Any]:
    return evaluate(Fake(mixed(COUNT)), numbered(COUNT))


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_killed_and_resumed(kills: int, tmp_path: Path) -> None:
    out, chance = tmp_path / "run", random.Random(os.getpid())
    for least in (5, 20, 40)[:kills]:
        process = start(out)
        wait_for_lines(out, least)
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        assert process.wait() == -signal.SIGKILL
    done = {line["n"] for line in read_lines(out)}
    assert 5 <= len(done) < COUNT

    program = Fake(mixed(COUNT))
    summary = evaluate(program, numbered(COUNT), out)

    assert sorted(program.asked) == sorted(f"question {n}" for n in range(COUNT) if n not in done)
    numbers = Counter(json.loads(line)["n"] for line in (out / "predictions.jsonl").read_text().splitlines())
    assert numbers == Counter(range(COUNT))
    assert steady(summary) == steady(uninterrupted()) == steady(json.loads((out / "summary.json").read_text()))


@pytest.mark.parametrize("left", [b'{"n":5,"id":"id-qu', b"{", b'{"n":5,"id":"x"}', b"\xff\xfe" * 100_000])
def test_half_a_line_is_cut_off(tmp_path: Path, left: bytes) -> None:
    out = tmp_path / "run"
    expected = evaluate(Fake(mixed(8)), numbered(8), out)
    predictions = out / "predictions.jsonl"
    lines = predictions.read_bytes().splitlines(keepends=True)
    predictions.write_bytes(b"".join(lines[:5]) + left)
    (out / "summary.json").unlink()
    assert steady(evaluate(Fake(mixed(8)), numbered(8), out)) == steady(expected)
    assert [record.n for record in read_records(out)] == list(range(8))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("no JSON", "line 1 is damaged"),
        *((line, "line 1 is damaged .it is no object, ") for line in ("null", "[]", "{}", "7")),
        ({"n": 99}, "line 1 is damaged .*its n is not"),
        ({"n": -1}, "line 1 is damaged .*its n is not"),
        ({"id": 7}, "line 1 is damaged .*it has no id"),
        ({"scores": {"answer_em": "good"}}, "question 0 is damaged .scores.answer_em"),
        ({"scores": {"answer_em": float("nan")}}, "question 0 is damaged .scores.answer_em"),
        ({"costs": {"tokens": 10**400}}, "question 0 is damaged .costs.tokens"),
        ({"costs": {"tokens": -1}}, "question 0 is damaged .costs.tokens"),
    ],
)
def test_a_record_of_nonsense_is_named(change: dict[str, Any] | str, what: str, tmp_path: Path) -> None:
    evaluate(Fake(), numbered(4), tmp_path / "run")
    predictions = tmp_path / "run" / "predictions.jsonl"
    first, rest = predictions.read_text().split("\n", 1)
    changed = change if isinstance(change, str) else json.dumps(json.loads(first) | change)
    predictions.write_text(changed + "\n" + rest)
    for use in (lambda: evaluate(Fake(), numbered(4), tmp_path / "run"), lambda: list(read_records(tmp_path / "run"))):
        with pytest.raises(RunError, match=f"predictions.jsonl.*{what}.*Delete the line"):
            use()


@pytest.mark.parametrize("damage", ["{}", '{"counts": {"quest', "[" * 100_000, '{"metrics": {"answer_f1": 0.987}}'])
def test_the_summary_of_a_finished_run_is_made_of_its_records(damage: str, tmp_path: Path) -> None:
    expected = evaluate(Fake(mixed(8)), numbered(8), tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    (tmp_path / "run" / "summary.json").write_text(damage)
    program = Fake()
    assert evaluate(program, numbered(8), tmp_path / "run") == expected
    assert not program.asked
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == expected
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize("edit", [{"question": "Who?"}, {"asked": "0" * 16}, {"id": "9"}, {"gold_answers": ["no"]}])
def test_a_record_of_another_question_is_no_result(edit: dict[str, Any], tmp_path: Path) -> None:
    evaluate(Fake(), numbered(4), tmp_path / "run")
    predictions = tmp_path / "run" / "predictions.jsonl"
    first, rest = predictions.read_text().split("\n", 1)
    predictions.write_text(json.dumps(json.loads(first) | edit) + "\n" + rest)
    with pytest.raises(RunError, match="the record of question 0 is not of 'question 0'"):
        evaluate(Fake(), numbered(4), tmp_path / "run")


def test_other_settings_are_refused(tmp_path: Path) -> None:
    first = evaluate(Fake(), numbered(4), tmp_path / "run")
    with pytest.raises(
        RunError, match=r"(?s)other settings:\n  questions.count: 4 before, 5 now\n  .*choose another --out"
    ):
        evaluate(Fake(), numbered(5), tmp_path / "run")
    with pytest.raises(RunError, match=r"timeout: nothing before, 9.0 now"):
        evaluate(Fake(), numbered(4), tmp_path / "run", timeout=9.0)
    for name, value in (("answers", ("Spain",)), ("gold_facts", ()), ("question", "Where?"), ("id", "other")):
        changed = numbered(4)
        changed[0][name] = value
        with pytest.raises(RunError, match=r"questions.hash"):
            evaluate(Fake(), changed, tmp_path / "run")
    # How it runs, and what it is called, is no other setting: a tuned program's folder may have moved.
    named = RunManifest.of(Fake(), numbered(4), name="another")
    assert evaluate(Fake(), numbered(4), tmp_path / "run", threads=3, max_failures=1, manifest=named) == first


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"is not the folder of a run, but contains thesis.tex"):
        evaluate(Fake(), examples("a"), tmp_path)
    assert not (tmp_path / "manifest.json").exists()


def test_two_processes_on_one_run(tmp_path: Path) -> None:
    evaluate(Fake(), examples("a"), tmp_path / "run")
    with FileLock(tmp_path / "run" / ".lock"), pytest.raises(RunError, match="Another process is working on the run"):
        evaluate(Fake(), examples("a"), tmp_path / "run")
    evaluate(Fake(), examples("a"), tmp_path / "run")


def test_a_run_whose_folder_is_gone_stops_at_once(tmp_path: Path) -> None:
    program = Fake({"question 1": lambda: shutil.rmtree(tmp_path / "run")})
    with pytest.raises(RunError, match="cannot be written: No such file"):
        evaluate(program, numbered(20), tmp_path / "run")
    assert program.asked == ["question 0", "question 1"]


def test_a_full_disk_stops_a_run_that_can_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with resource_limit(8_000), pytest.raises(RunError, match="File too large"):
        evaluate(Fake(mixed(COUNT)), numbered(COUNT), out, threads=4)
    assert 3 <= len(list(read_records(out))) < COUNT
    assert steady(evaluate(Fake(mixed(COUNT)), numbered(COUNT), out)) == steady(uninterrupted())


@contextmanager
def resource_limit(size: int) -> Iterator[None]:
    """No file may become larger, in bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
