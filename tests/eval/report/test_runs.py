"""Runs as a report shows them: outcomes, which belong together, what one knows that another does not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from polyhop.eval.folder import RunError, RunRecord
from polyhop.eval.report.runs import Details, Group, Outcome, outcome, read_groups


def line(n: int = 0, **changes: Any) -> dict[str, Any]:
    """A correct answer to a question with two gold passages, which one search found and one selection kept."""
    made = {
        "n": n,
        "id": f"q{n}",
        "question": "Which river flows through the town?",
        "hops": 2,
        "kind": "bridge",
        "gold_answers": ["Blue River"],
        "gold": ["a", "b"],
        "gold_not_found": False,
        "answer": "Blue River",
        "evidence": evidence("a", "b"),
        "ranking": ["a", "b", "c"],
        "confidence": 0.9,
        "stop_reason": "stable",
        "trace": [searched("a", "b", "c"), selected(1, "a", "b")],
        "scores": {"answer_em": 1.0, "answer_f1": 1.0, "joint_f1": 1.0, "evidence_f1": 1.0},
        "costs": {"lm_calls": 2, "lm_calls_critical_path": 2, "searches": 1, "seconds": 0.1},
        "official": None,
    }
    return {**made, **changes}


def wrong(**changes: Any) -> dict[str, Any]:
    scores = {"answer_em": 0.0, "answer_f1": 0.0, "joint_f1": 0.0, "evidence_f1": 1.0}
    return line(**{"answer": "Red River", "scores": scores, **changes})


def failed(n: int = 0, message: str = "no luck") -> dict[str, Any]:
    made = wrong(n=n, answer=None, evidence=[], ranking=[])
    for part in ("confidence", "stop_reason", "trace"):
        del made[part]
    return {**made, "error": {"cause": "model", "type": "LMError", "message": message}}


def evidence(*ids: str) -> list[dict[str, Any]]:
    return [{"passage_id": id, "title": id.upper(), "sentence": 0, "text": f"About {id}."} for id in ids]


def searched(*ids: str) -> dict[str, Any]:
    return {"step": "searched", "query": "which river", "found": [[id, id.upper(), 1.0] for id in ids], "offset": 0}


def selected(round: int, *ids: str) -> dict[str, Any]:
    return {"step": "selected", "round": round, "kept": [[id, 0] for id in ids], "invalid": [], "flagged": []}


def parallel(*branches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"step": "parallel", "branches": [list(branch) for branch in branches]}


def record(line: Mapping[str, Any]) -> RunRecord:
    return RunRecord.model_validate(line)


IN_BRANCHES = [searched("a"), parallel([searched("c")], [parallel([searched("b")])])]

CASES = {
    "right": (line(), Outcome.correct),
    "right by luck: nothing was found": (line(trace=[], evidence=[], ranking=[]), Outcome.correct),
    "all gold in the evidence, and wrong": (wrong(), Outcome.reading),
    "all found, one not kept": (wrong(evidence=evidence("a", "c")), Outcome.selection),
    "all found, nothing kept": (wrong(evidence=[]), Outcome.selection),
    "found in branches": (wrong(trace=IN_BRANCHES, ranking=[], evidence=[]), Outcome.selection),
    "no trace, but named": (wrong(trace=[], ranking=["b"], evidence=evidence("a")), Outcome.selection),
    "found as parts of a document": (
        wrong(trace=[searched("a#1", "b")], ranking=[], evidence=[], documents={"a#1": "a"}),
        Outcome.selection,
    ),
    "one never found": (
        wrong(trace=[searched("a", "c")], ranking=["a", "c"], evidence=evidence("a")),
        Outcome.retrieval,
    ),
    "no search at all": (wrong(trace=[], ranking=[], evidence=[]), Outcome.retrieval),
    "unknown, with all the evidence": (wrong(answer="unknown"), Outcome.abstained),
    "unknown, and that is right": (line(answer="unknown", gold_answers=["unknown"]), Outcome.correct),
    "no gold passages, wrong": (wrong(gold=[]), Outcome.wrong),
    "no gold passages, right": (line(gold=[]), Outcome.correct),
    "no gold passages, unknown": (wrong(gold=[], answer="unknown"), Outcome.abstained),
    "failed": (failed(), Outcome.failed),
}


@pytest.mark.parametrize("case", CASES)
def test_outcomes(case: str) -> None:
    made, expected = CASES[case]
    assert outcome(record(made)) is expected


def write(folder: Path, lines: list[dict[str, Any]], hash: str = "same", name: str = "mine", count: int = 2) -> Path:
    folder.mkdir(parents=True)
    asked = {"count": count, "hash": hash, "source": "dev.json.gz", "setting": "open"}
    program = {"name": name, "class": "Mine", "state_hash": ""}
    manifest = {"schema": 1, "dataset": "hotpotqa", "questions": asked, "program": program}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def read(*paths: Path) -> list[Group]:
    return read_groups(paths, Details())


def test_columns(tmp_path: Path) -> None:
    lines = [failed(1), line(0), wrong(n=2, answer="unknown"), wrong(n=3)]
    (group,) = read(write(tmp_path / "a", lines, count=5))
    (run,) = group.runs
    assert (run.done, run.questions, run.finished, [record.n for record in run.records]) == (4, 5, False, [0, 1, 2, 3])
    (columns,) = group.index()["runs"]
    assert columns["em"] == [1.0, 0.0, 0.0, 0.0]
    assert columns["answer"] == ["Blue River", "", "unknown", "Red River"]
    assert columns["dollars"] is None
    assert run.mean("answer_em") == 0.25
    assert run.mean("fact_f1") is None
    assert run.calibration_error == pytest.approx(0.4)  # of two answers: 90% stated, 50% right
    assert group.versus is None


def test_what_belongs_together(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "x" / "one", [line()]),
        write(tmp_path / "y" / "one", [wrong()], name="other"),
        write(tmp_path / "z", [line()], hash="another"),
        write(tmp_path / "w", [line()], hash="third", name="w"),
    ]
    groups = read(*paths)
    assert [[run.name for run in group.runs] for group in groups] == [["mine", "other"], ["mine"], ["w"]]
    titles = [group.title for group in groups]
    assert titles == ["hotpotqa · open · dev", f"{titles[0]} · 2", f"{titles[0]} · 3"]
    assert groups[0].versus is not None
    row = groups[0].versus.row("answer_em", "other")
    assert row is not None
    assert row.versus is not None
    assert (row.versus.difference.mean, row.versus.losses) == (-1.0, 1)
    assert [run.series for group in groups for run in group.runs] == [0, 1, 0, 2]


def test_runs_whose_questions_are_not_the_same_after_all(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", [line(0)]), write(tmp_path / "b", [line(0, id="other")])]
    with pytest.raises(RunError, match=r"b: question 0 \(other\) is another one in another run"):
        read(*paths)


def test_unfinished_runs_have_holes(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a", [line(3), line(1)], count=4), write(tmp_path / "b", [line(0)], count=4)]
    (group,) = read(*paths)
    index = group.index()
    assert index["id"] == ["q0", "q1", "q3"]
    assert [run["at"] for run in index["runs"]] == [[1, 2], [0]]
    assert group.versus is None  # they share no question
