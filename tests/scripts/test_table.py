"""`polyhop table`: a run for each cell, kept and continued; one table for each benchmark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import polyhop
from polyhop.eval.comparison import compare_runs
from polyhop.programs import PROGRAMS as ALL
from polyhop.programs import Naive
from polyhop.scripts.main import app
from polyhop.scripts.table import PROGRAMS, WITHOUT_SEARCH, TableSetting


def table(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["table", *map(str, arguments)], env={"COLUMNS": "120"})


def test_programs_are_rows_and_runs_are_kept(hotpotqa: Path, tmp_path: Path) -> None:
    arguments: list[Any] = ["--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--jobs", "2"]
    arguments += ["--program", "naive", "--program", "polyhop"]
    result = table(*arguments, "--markdown")
    assert result.exit_code == 0, result.output
    heading, _, naive, flagship = result.stdout.strip().splitlines()
    assert heading.startswith("| hotpotqa distractor, 3 questions | Evidence P | Evidence R | Evidence F1 | Recall@5 |")
    cells = [cell.strip() for cell in naive.strip("|").split("|")]
    assert cells[:5] == ["naive", "50.0", "100.0", "66.7", "100.0"]  # both contexts, one of them gold
    assert flagship.startswith("| polyhop | ")

    run = tmp_path / "runs" / "naive-hotpotqa-dev-distractor"
    lines = (run / "predictions.jsonl").read_text()
    again = table(*arguments)
    assert again.exit_code == 0, again.output
    assert (run / "predictions.jsonl").read_text() == lines  # nothing was asked again
    assert "hotpotqa distractor, 3 questions" in again.stdout


def test_tuned_programs_are_told_apart(hotpotqa: Path, tmp_path: Path) -> None:
    tuned = [str(polyhop.save(Naive(), tmp_path / name / "best")) for name in ("one", "two")]
    arguments: list[Any] = ["--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--markdown"]
    result = table(*arguments, "--program", tuned[0], "--program", tuned[1])
    assert result.exit_code == 0, result.output
    _, _, *rows = result.stdout.strip().splitlines()
    names = [f"naive ({tmp_path.name}/{name})" for name in ("one", "two")]
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in names]
    runs = sorted((tmp_path / "runs").iterdir())
    assert [run.name for run in runs] == [
        f"naive-{tmp_path.name}-{name}-hotpotqa-dev-distractor" for name in ("one", "two")
    ]
    assert [run.name for run in compare_runs(runs).runs] == names


def test_names_of_folders_are_shown_as_they_are(hotpotqa: Path, tmp_path: Path) -> None:
    tuned = polyhop.save(Naive(), tmp_path / "a|b\x1b[31m" / "<b>[x](y)")
    arguments: list[Any] = ["--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--program", tuned]
    result = table(*arguments, "--markdown")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[2].startswith(r"| naive (a\|b \[31m/\<b\>\[x\](y)) | ")
    assert "\x1b[31m" not in table(*arguments).stdout


def test_presets_and_retrievers_have_runs_of_their_own(hotpotqa: Path, tmp_path: Path) -> None:
    arguments: list[Any] = ["--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path / "runs", "--markdown"]
    for options in ([], ["--retriever", "bm25"], ["--preset", "paper"]):
        result = table(*arguments, "--program", "ircot", *options)
        assert result.exit_code == 0, result.output
    assert "| ircot (paper) |" in result.stdout
    assert {run.name for run in (tmp_path / "runs").iterdir()} == {
        f"ircot{preset}-hotpotqa-dev-distractor{retriever}"
        for preset, retriever in (("", ""), ("", "-bm25"), ("-paper", ""))
    }


def test_programs_that_do_not_search_take_no_retriever(hotpotqa: Path, tmp_path: Path) -> None:
    arguments: list[Any] = [
        "--on",
        f"hotpotqa:{hotpotqa}",
        "--out",
        tmp_path / "runs",
        "--markdown",
        "--retriever",
        "bm25",
    ]
    result = table(*arguments, *(part for name in ("direct", "naive", "oracle") for part in ("--program", name)))
    assert result.exit_code == 0, result.output
    assert {name for name in PROGRAMS if not ALL[name].searches} == set(WITHOUT_SEARCH)


def test_settings_are_read() -> None:
    assert TableSetting.parse("2wiki:dev.json:ix") == TableSetting("2wiki", Path("dev.json"), Path("ix"))
    assert TableSetting.parse("2wiki:dev.json:ix").name == "2wiki open"
    assert TableSetting.parse("2wiki:dev.json").name == "2wiki distractor"


def test_runs_that_would_share_a_folder_are_refused(hotpotqa: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "dev.json").write_text(hotpotqa.read_text())
    for second in (hotpotqa, other / "dev.json"):
        on = ("--on", f"hotpotqa:{hotpotqa}", "--on", f"hotpotqa:{second}")
        result = table(*on, "--out", tmp_path / "runs", "--program", "direct")
        assert result.exit_code == 2
        assert "two of these runs have the same folder" in result.stderr


def test_an_evaluation_that_fails_is_one_line(hotpotqa: Path, tmp_path: Path) -> None:
    run = tmp_path / "naive-hotpotqa-dev-distractor"
    run.touch()
    result = table("--on", f"hotpotqa:{hotpotqa}", "--out", tmp_path, "--program", "naive")
    assert result.exit_code == 1
    why = f"{run} cannot be the folder of a run: File exists."
    assert result.stderr == f"error: naive on hotpotqa distractor: {why}\n"


@pytest.mark.slow
def test_ctrl_c_says_how_to_resume(write_hotpotqa: Callable[[int], Path], tmp_path: Path) -> None:
    """The terminal sends the signal to the table and to its running process."""
    count = 200
    arguments = ["--on", f"hotpotqa:{write_hotpotqa(count)}", "--out", str(tmp_path / "runs")]
    arguments += ["--program", "prism", "--program", "direct"]
    command = [sys.executable, "-m", "polyhop.scripts.main", "table", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    first, second = (tmp_path / "runs" / f"{name}-hotpotqa-dev-distractor" for name in ("prism", "direct"))
    predictions = first / "predictions.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (predictions.exists() and predictions.read_bytes().count(b"\n") > 2):
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert f"{tmp_path / 'runs'}: finished questions are saved; run the same command again to resume." in said
    assert "interrupted" in said
    assert "Traceback" not in said
    done = predictions.read_bytes()
    assert 2 < done.count(b"\n") < count
    assert not second.exists()

    result = table(*arguments)
    assert result.exit_code == 0, result.output
    assert f"hotpotqa distractor, {count} questions" in result.stdout
    continued = predictions.read_bytes()
    assert continued.startswith(done)  # nothing was asked again
    assert continued.count(b"\n") == count
    assert second.exists()
