"""The study from end to end, over made-up questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polyhop.data.errors import PolyhopError
from polyhop.eval.records import read_manifest
from polyhop.scripts.studies.simulation import study
from polyhop.scripts.studies.simulation.designs import BASELINE, DESIGNS
from polyhop.scripts.studies.simulation.report import program_rows
from polyhop.scripts.studies.simulation.runs import VALUES, Condition, QuestionSet, play_all

from .world import write_hotpotqa, write_musique

pytestmark = pytest.mark.slow


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(study.app, list(arguments))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of a small study: two sets of questions, two rates, two designs."""
    monkeypatch.setattr(study, "RATES", (0.0, 0.2))
    for name in set(DESIGNS) - {"prism-1", BASELINE, "prism-complete"}:
        monkeypatch.delitem(DESIGNS, name)
    sets = [f"hotpotqa:{write_hotpotqa(tmp_path, 6)}", f"musique:{write_musique(tmp_path, 4)}"]
    return ["--on", sets[0], "--on", sets[1], "--out", str(tmp_path / "study"), "--seeds", "2"]


def test_a_study_from_end_to_end(small: list[str], tmp_path: Path) -> None:
    result = invoke(*small)
    assert result.exit_code == 0, result.output
    out = tmp_path / "study"
    found = json.loads((out / "study.json").read_text())
    assert found["simulation"].startswith("Simulation: ")
    rows = {(row["dataset"], row["rate"], row["design"]): row for row in found["programs"]}
    assert len(rows) == 2 * 2 * 3
    for dataset, unlocked in (("hotpotqa", 1 / 2), ("musique", 1 / 3)):  # PRISM sees the first hop only
        for design, calls in (("prism-1", 4), (BASELINE, 8), ("prism-complete", 4)):
            row = rows[dataset, 0.0, design]
            assert row["metrics"]["evidence_recall"] == pytest.approx(unlocked)
            assert row["metrics"]["evidence_precision"] == 1.0
            assert row["metrics"]["lm_calls"] == row["metrics"]["lm_calls_critical_path"] == calls
            assert row["calls_saved"] == pytest.approx(1 - calls / 8)
        noisy = rows[dataset, 0.2, BASELINE]
        low, high = noisy["intervals"]["evidence_precision"]
        assert low <= noisy["metrics"]["evidence_precision"] <= high < 1.0
        assert noisy["seeds"] == 2
        assert noisy["versus"]["evidence_recall"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert {row["dataset"] for row in found["reviews"]} == {"hotpotqa", "musique"}
    assert len(found["reviews"]) == 2 * 2 * 2
    assert list(found["reviews"][-1]["error_by_hops"]) == ["3"]
    # Markdown on stdout, and nothing else.
    lines = result.stdout.strip().splitlines()
    assert lines[0] == found["simulation"]
    assert sum(line.startswith("| hotpotqa (6) |") for line in lines) == 2 * 3 + 2 * 2
    assert all(len(line.split(" | ")) in (11, 9) for line in lines if line.startswith("| hotpotqa"))
    # Each run is a run.
    runs = [path for path in out.iterdir() if path.is_dir()]
    assert len(runs) == 2 * 3 * (2 + 2)
    assert all(read_manifest(run).simulation for run in runs)


def test_a_study_goes_on_where_it_was_stopped(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "study"
    playing = play_all(conditions_of(small), out, 1)
    for _ in range(5):
        next(playing)
    playing.close()
    done = {path.name: (path / "summary.json").stat().st_mtime_ns for path in out.iterdir()}
    assert len(done) == 5
    assert not (out / "study.json").exists()
    first = invoke(*small)
    assert first.exit_code == 0, first.output
    assert done == {name: (out / name / "summary.json").stat().st_mtime_ns for name in done}
    assert invoke(*small).stdout == first.stdout


def conditions_of(arguments: list[str]) -> list[Condition]:
    questions = QuestionSet.parse(arguments[1])
    return [Condition(questions, 0.2, design, seed) for design in DESIGNS for seed in (0, 1)]


def test_seeds_are_averaged_before_questions_are_compared() -> None:
    def values(recalls: list[float], calls: float) -> dict[str, list[float]]:
        return {name: [float("nan")] * 2 for name in VALUES} | {
            "evidence_recall": recalls,
            "lm_calls": [calls] * 2,
            "lm_calls_critical_path": [calls] * 2,
        }

    questions = QuestionSet("hotpotqa", Path("x"))
    played = {
        Condition(questions, 0.1, BASELINE, 0): values([1.0, 1.0], 8),
        Condition(questions, 0.1, BASELINE, 1): values([0.5, 1.0], 8),
        Condition(questions, 0.1, "prism-1", 0): values([1.0, 0.0], 4),
        Condition(questions, 0.1, "prism-1", 1): values([0.5, 0.5], 6),
    }
    base, one = program_rows(played)
    assert base["metrics"] == {"evidence_recall": 0.875, "lm_calls": 8.0, "lm_calls_critical_path": 8.0}
    assert one["metrics"]["evidence_recall"] == 0.5
    assert one["versus"]["evidence_recall"]["mean"] == -0.375
    assert (one["versus"]["evidence_recall"]["low"], one["versus"]["evidence_recall"]["high"]) == (-0.75, 0.0)
    assert one["calls_saved"] == pytest.approx(1 - 5 / 8)


# --- arguments -------------------------------------------------------------------------------------------------------


def test_what_cannot_be_studied_is_said_before_anything_is_played(tmp_path: Path) -> None:
    good = f"hotpotqa:{write_hotpotqa(tmp_path, 2)}"
    for on, said in (
        ((good, good), "use each dataset once"),
        ((good, f"musique:{tmp_path / 'none.jsonl'}"), "none.jsonl"),
    ):
        with pytest.raises(PolyhopError, match=said):
            study.study(on=list(on), out=tmp_path / "study")
        assert not (tmp_path / "study").exists()
