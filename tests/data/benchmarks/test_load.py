"""Questions are loaded from files: what is good comes through, what is bad is reported, once and with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.benchmarks import load_questions
from polyhop.data.errors import DataError, Problem

from . import records as r

Load = Callable[..., list[Any]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Writes records to a file, or takes a file's content, and loads it."""

    def load(dataset: str, content: Any, name: str = "dev.jsonl", **options: Any) -> list[Any]:
        text = content if isinstance(content, str) else r.lines(content)
        return list(load_questions(dataset, r.write(tmp_path / name, text), **options))

    return load


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"question": f"What is {number}?", "answer": [str(number)]} for number in range(count)]


def test_limit_takes_the_first_and_reads_no_further(load: Load) -> None:
    content = r.lines(numbered(3)) + "broken\n"
    problems: list[Problem] = []
    assert [q.answers for q in load("nq", content, limit=2, on_problem=problems.append)] == [("0",), ("1",)]
    assert not problems
    assert len(load("nq", content, limit=9)) == 3
    drawn, all_ids = ([q.id for q in load("nq", numbered(50), limit=limit, seed=1)] for limit in (10, 50))
    assert [id for id in all_ids if id in drawn] == drawn != all_ids[:10]


def test_malformed_records_are_left_out_and_reported(load: Load) -> None:
    records = [r.HOTPOTQA, r.without(r.HOTPOTQA, "answer"), 7, {**r.HOTPOTQA, "_id": "h2"}, r.HOTPOTQA]
    long = [{**r.HOTPOTQA, "_id": "h3", "question": "?" * 20_001}, {**r.HOTPOTQA, "_id": "h" * 513}]
    problems: list[Problem] = []
    questions = load("hotpotqa", r.lines(records + long) + "{\n", on_problem=problems.append)
    assert [q.id for q in questions] == ["h1", "h2"]
    assert [problem.where for problem in problems] == [f"dev.jsonl:{n}" for n in (2, 3, 5, 6, 7, 8)]
    assert problems[0].reason == "answer is missing"
    assert problems[2].reason == "an earlier question has the same id 'h1'"
    for bad in records[1:3]:
        with pytest.raises(DataError, match=r"^dev\.json:record 2: "):
            load("hotpotqa", json.dumps([r.HOTPOTQA, bad]), "dev.json", strict=True)


@pytest.mark.parametrize("asked", ["hotpotqa", "nq", "own", "squad"])
def test_another_benchmarks_file_is_told(load: Load, asked: str) -> None:
    shared = {("nq", "triviaqa"), ("own", "nq")}  # both are {id, question, golden_answers}, or {question, answer}
    for given, record in r.FIRST_RECORDS.items():
        if asked == given or (asked, given) in shared:
            assert load(asked, [record])
            continue
        # All questions look like the user's own, damaged ones too.
        message = "No question can be read as " if given == "own" else r"dev\.jsonl:1 looks like .*, not like "
        with pytest.raises(DataError, match=message):
            load(asked, [record])


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        ("quad", {}),
        ("nq", {"split": "train"}),
        ("nq", {"setting": "closed"}),
        ("sample", {}),
        ("sample", {"source": None, "split": "all"}),
        ("nq", {"source": "none"}),
    ],
)
def test_what_is_asked_for_is_checked_at_once(tmp_path: Path, dataset: str, options: dict[str, Any]) -> None:
    path = r.write(tmp_path / "dev.jsonl", r.lines([r.NQ]))
    with pytest.raises(DataError):
        load_questions(dataset, options.pop("source", path), **options)
