"""Runs as columns: which belong together, what they are called, and what one knows that another does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyhop.eval.folder import RunError
from polyhop.eval.report.browser import Chunks, index_of
from polyhop.eval.report.runs import Group, count_questions, read_groups

from .lines import evidence, failed, line, searched, wrong


def write(folder: Path, lines: list[dict[str, Any]], hash: str = "same", name: str = "mine", count: int = 2) -> Path:
    folder.mkdir(parents=True)
    asked = {"count": count, "hash": hash, "source": "dev.json.gz", "setting": "open"}
    manifest = {
        "schema": 1,
        "dataset": "hotpotqa",
        "questions": asked,
        "program": {"name": name, "class": "Mine", "state_hash": ""},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "predictions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def read(*paths: Path) -> list[Group]:
    with Chunks() as chunks:
        return read_groups(paths, chunks)


def test_columns(tmp_path: Path) -> None:
    (group,) = read(write(tmp_path / "a", [failed(1), line(0)]))
    (run,) = group.runs
    assert not run.finished
    assert (run.done, run.total, run.numbers) == (2, 2, [0, 1])
    assert run.columns["answer_em"].tolist() == [1.0, 0.0]
    assert [each.name for each in run.outcomes] == ["correct", "failed"]
    assert run.answers == ["Blue River", ""]
    assert [column.tolist() for column in run.stated()] == [[0.9], [True]]
    assert run.mean("answer_em") == 0.5
    assert run.mean("fact_f1") is None
    assert run.interval("fact_f1") is None


def test_what_belongs_together(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "x" / "one", [line()]),
        write(tmp_path / "y" / "one", [line()], name="other"),
        write(tmp_path / "z", [line()], hash="another"),
        write(tmp_path / "w", [line()], hash="third", name="w"),
    ]
    groups = read(*paths)
    assert count_questions(paths) == 8
    assert [[run.name for run in group.runs] for group in groups] == [["mine", "other"], ["mine"], ["w"]]
    titles = [group.title for group in groups]
    assert titles[0] == "hotpotqa · open · dev"
    assert titles[1:] == [f"{titles[0]} · 2 questions", f"{titles[0]} · 2"]


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    folders = [write(tmp_path / "x" / "one", [line()]), write(tmp_path / "x" / "two", [line()])]
    assert [run.name for run in read(*folders)[0].runs] == ["one", "two"]
    folders.append(write(tmp_path / "y" / "two", [line()]))
    assert [run.name for run in read(*folders)[0].runs] == [str(folder) for folder in folders]


def test_a_run_that_found_a_passage_names_it_for_those_that_missed_it(tmp_path: Path) -> None:
    found = write(tmp_path / "found", [line()])
    missed = wrong(trace=[searched("a")], ranking=["a"], evidence=evidence("a"))
    groups = read(found, write(tmp_path / "missed", [missed]))
    assert index_of(groups)["groups"][0]["titles"] == {"b": "B"}
    assert index_of(read(found))["groups"][0]["titles"] == {}


def test_runs_whose_questions_are_not_the_same_after_all(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", [line(0)]), write(tmp_path / "b", [line(0, id="other")])]
    with pytest.raises(RunError, match="its id is 'other' here and 'q0' in another run"):
        read(*paths)


def test_unfinished_runs_have_holes(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", [line(3), line(1)], count=4), write(tmp_path / "b", [line(0), line(3)], count=4)]
    index = index_of(read(*paths))["groups"][0]
    assert index["id"] == ["q0", "q1", "q3"]
    assert [run["at"] for run in index["runs"]] == [[1, 2], [0, 2]]
