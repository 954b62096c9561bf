"""Runs over an endpoint that misbehaves lose nothing, hang nowhere, and score nothing wrong; and no key gets out.

Each row is a run over the sample, compared with the same run over a sound endpoint. A question is *lost* if it has no
record, *hung* if it used up its time limit, and *wrong* if it was answered or scored differently although its agents
read the same text and could read the judge's verdict.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import dspy
import pytest

from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.limits import LimitedLM, Limits, RateLimit
from polyhop.eval.folder import RunRecord, read_records
from polyhop.eval.run import evaluate
from polyhop.programs import new_program

from .faults import FAULTS, Fault, dies, drip, slow
from .schedule import Always, During, Every, First, Longer, Schedule, Share
from .server import Server

Faults = tuple[tuple[Schedule, Fault], ...]

QUESTIONS = int(os.environ.get("POLYHOP_FAULT_QUESTIONS", "8"))
TIME_LIMIT = 60.0  # seconds per question
SOUND = "none"
MIXED = ("500", "429-bare", "reset-in-body", "truncated", "empty", "prose", "refusal", "1mb-braces", "length")


class Row(NamedTuple):
    faults: Faults
    timeout: float = 30.0
    passes: bool = True  # every question is answered, and as without faults
    program: str = "polyhop"
    calls: int | None = None  # the budget that interrupts the run, before it resumes without one


def some(name: str, share: float = 0.2, passes: bool = True) -> Row:
    return Row(((Share(share), FAULTS[name]),), passes=passes)


MIX = (
    *((Share(0.01, seed), FAULTS[name]) for seed, name in enumerate(MIXED)),
    (Share(0.005, 98), slow(5.0)),
    (Every(250), dies(1.0)),
)
TRANSIENT = (
    "429-bare 500 502 reset reset-in-body truncated empty null latin-1 prose-around-json bom no-usage "
    "usage-as-text unknown-fields"
).split()
LASTING = ("429-absurd 429-quota 401-echo filter-400-azure refusal filter 1mb 1mb-in-field 1mb-braces").split()
TABLE = {
    **{name: some(name) for name in TRANSIENT},
    **{name: some(name, 0.02, passes=False) for name in LASTING},
    **{name: Row(((During(0.2, 1.2), FAULTS[name]),)) for name in ("429", "429-date", "503")},
    **{
        name: Row(((Longer(5_000), FAULTS[name]),), passes=False)  # the agents read less
        for name in ("context-vllm", "context-llama")
    },
    **{name: some(name, passes=False) for name in ("prose", "lone-surrogate", "utf-16", "length")},
    **{fault.name: Row(((Share(0.05), fault),), timeout=1.0) for fault in (slow(5.0), FAULTS["hang"], drip(0.3))},
    "dies": Row(((Every(100), dies(2.0)),)),
    **{f"mixed {program}": Row(MIX, 2.0, False, program) for program in ("polyhop", "prism", "kair")},
    "mixed resumed": Row(MIX, 2.0, False, calls=60),
}
OTHER_TEXT = {"context-vllm", "context-llama", "lone-surrogate", "utf-16", "length"}


_sleep = time.sleep


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """DSPy's waits before it repeats a request are short."""
    monkeypatch.setattr(time, "sleep", lambda seconds: _sleep(min(seconds, 0.05)))


def run(row: Row, out: Path) -> tuple[dict[int, RunRecord], Server]:
    with Server(row.faults) as server:
        lm = dspy.LM("openai/behind-http", api_base=server.url, api_key="none", cache=False)
        limited = LimitedLM(lm, RateLimit(Limits(timeout=row.timeout, retries=8)))
        if row.calls:
            with suppress(BudgetSpent):
                ask(row.program, Budget(calls=row.calls).meter(limited), out)
        ask(row.program, limited, out)
        return {record.n: record for record in read_records(out)}, server


def ask(name: str, lm: dspy.LM, out: Path) -> None:
    program = new_program(name, PassagePool(sample_passages()))
    program.set_lm(lm)
    questions = [*load_sample("dev"), *load_sample("test")][:QUESTIONS]
    evaluate(program, questions, out, threads=8, timeout=TIME_LIMIT)


@cache
def sound(program: str) -> dict[int, RunRecord]:
    with TemporaryDirectory() as folder:
        return run(Row((), program=program), Path(folder) / "run")[0]


def result(record: RunRecord) -> tuple[object, ...]:
    """What must not depend on faults."""
    return record.answer, record.confidence, record.evidence, record.ranking, record.scores


def misjudged(record: RunRecord) -> bool:
    return any(step["step"] == "judged" and step["invalid"] and not step["score"] for step in record.trace)


def test_every_fault_is_in_the_table() -> None:
    assert {fault.name for row in TABLE.values() for _, fault in row.faults} == set(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_nothing_is_lost_or_hangs_or_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: _sleep(min(seconds, 0.5)))  # longer than a server is away
    row = TABLE[name]
    expected, (records, server) = sound(row.program), run(row, tmp_path / "run")
    answered = [record for record in records.values() if not record.error]
    failed = Counter(record.error.cause for record in records.values() if record.error)
    print(f"{name}: {server.injected.total()} hits, {len(answered)} of {QUESTIONS} answered, {dict(failed)}")
    assert records.keys() == expected.keys()  # none is lost
    assert not [record.n for record in records.values() if record.costs["seconds"] >= TIME_LIMIT]  # none hangs
    different = [record for record in answered if result(record) != result(expected[record.n])]
    assert name in OTHER_TEXT or all(map(misjudged, different))  # none is wrong
    if row.passes:
        assert len(answered) == QUESTIONS


@pytest.mark.parametrize("name", ["429-bare", "500", "reset-in-body", "truncated", "empty"])
def test_what_passes_costs_requests_and_no_question(name: str, tmp_path: Path) -> None:
    records, server = run(Row(((First(), FAULTS[name]),), program="naive"), tmp_path / "run")
    assert {n: result(record) for n, record in records.items()} == {
        n: result(record) for n, record in sound("naive").items()
    }
    assert server.injected[name] == QUESTIONS
    done = sum((Counter(record.incidents) for record in records.values()), Counter())
    assert list(done.values()) == [QUESTIONS], done


@pytest.mark.parametrize(
    ("name", "cause", "requests"),
    [
        ("401-echo", "model", 1),
        ("refusal", "refused", 1),
        ("1mb-braces", "reply", 1),
        ("prose", "reply", 2),
        ("empty", "reply", 9),
    ],
)
def test_what_lasts_is_a_failure_with_its_cause(tmp_path: Path, name: str, cause: str, requests: int) -> None:
    records, server = run(Row(((Always(), FAULTS[name]),), program="naive"), tmp_path / "run")
    assert {record.error.cause for record in records.values() if record.error} == {cause}
    assert server.requests == QUESTIONS * requests
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["counts"]["failed"], summary["metrics"]["answer_f1"]) == (QUESTIONS, 0)
    assert all(len(failure["message"]) < 500 for failure in summary["failures"])


def test_a_reply_that_is_cut_in_its_last_field_keeps_the_others(tmp_path: Path) -> None:
    records, server = run(Row(((Always(), FAULTS["length"]),), program="naive"), tmp_path / "run")
    assert server.requests == QUESTIONS
    for n, record in records.items():
        expected = sound("naive")[n]
        assert (record.guess or record.answer) == (expected.guess or expected.answer)
        assert (record.confidence, record.incidents) in [(0.5, {"reply cut": 1}), (0.0, {"reply cut": 1})]
