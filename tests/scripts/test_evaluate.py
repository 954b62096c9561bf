"""`polyhop evaluate`: on the sample, on files, as a run that is kept, and all that can go wrong."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from .cli import done, of_run, polyhop

evaluate = partial(polyhop, "evaluate", columns=100)


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_is_kept(tmp_path: Path, hotpotqa: Path) -> None:
    out = tmp_path / "run"
    of_file = ("--dataset", "HotpotQA", "--questions", hotpotqa)
    asked = ("evaluate", *of_file, "--program", "naive", "-k", "1", "--retriever", "bm25")
    result = done(*asked, "--out", out)
    assert "hotpotqa, distractor: 3 questions" in result.stdout
    assert "skipped dev.json:record 4" in result.stderr
    files = "manifest.json predictions.jsonl summary.json hotpotqa_predictions.json run.trec qrels.trec"
    assert {path.name for path in out.iterdir()} >= set(files.split())
    summary = of_run(out)
    assert summary["counts"] == {"questions": 3, "answered": 3, "failed": 0, "skipped": 1, "gold_not_found": 0}
    assert summary["metrics"]["evidence_recall"] == 1.0
    assert summary["official"]["sp_recall"] == 1.0
    manifest = of_run(out, "manifest")
    assert (manifest["dataset"], manifest["program"]["name"]) == ("hotpotqa", "naive")
    assert (manifest["questions"]["source"], manifest["questions"]["setting"]) == ("dev.json", "distractor")
    assert manifest["program"]["tunables"]["search.k"] == 1
    assert manifest["program"]["tunables"]["abstain_below"] == 0.0  # every question has an answer
    assert manifest["program"]["lms"] == {"answerer": {"model": "lexical"}}
    assert manifest["files"] == {"questions": str(hotpotqa)}
    done(*asked, "--set", "abstain_below=0.3", "--out", tmp_path / "set")
    tunables = of_run(tmp_path / "set", "manifest")["program"]["tunables"]
    assert tunables["abstain_below"] == 0.3  # what is set stays, also the default


def test_an_index_is_searched_when_it_is_given(tmp_path: Path, hotpotqa: Path) -> None:
    index, out = tmp_path / "index", tmp_path / "run"
    done("index", hotpotqa, "--out", index)
    arguments = ("--dataset", "hotpotqa", "--questions", hotpotqa, "--index", index, "--program", "naive", "--out", out)
    done("evaluate", *arguments, "--threads", "2")
    metrics, manifest = of_run(out)["metrics"], of_run(out, "manifest")
    assert metrics["passage_recall@5"] == metrics["token_recall"] == 1.0
    assert manifest["questions"]["setting"] == "open"
    assert manifest["index"]["passages"] == 2

    # A rebuilt index of the same corpus is the same; one of another corpus is not.
    done("index", hotpotqa, "--out", index)
    done("evaluate", *arguments)
    (tmp_path / "other.jsonl").write_text('{"title": "Testville", "text": "Another."}\n')
    done("index", tmp_path / "other.jsonl", "--out", index)
    assert "index.corpus_hash: " in evaluate(*arguments).stderr


def test_the_same_command_continues_and_another_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ("--program", "naive", "--limit", "5", "--out", out)
    first = done("evaluate", *arguments, "--json")
    lines = (out / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    (out / "predictions.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    (out / "summary.json").unlink()
    again = done("evaluate", *arguments, "--json")
    before, after = (json.loads(result.stdout) for result in (first, again))
    assert after["counts"] == before["counts"]
    assert after["metrics"]["answer_f1"] == before["metrics"]["answer_f1"]
    other = evaluate(*arguments, "-k", "3")
    assert other.exit_code == 1
    assert "program.tunables.search.k: 5 before, 3 now" in other.stderr
    assert "choose another --out" in other.stderr


SLOW = """
import time, dspy


class Slow(dspy.Module):
    def forward(self, question):
        time.sleep(0.1)
        return dspy.Prediction(answer=question.split()[-1])
"""


def test_ctrl_c_in_a_real_terminal(tmp_path: Path) -> None:
    """Interrupted while a progress bar is drawn; finished questions are saved, and the same command resumes."""
    out = tmp_path / "run"
    (tmp_path / "slow_of_mine.py").write_text(SLOW)
    arguments = ["--program", f"{tmp_path / 'slow_of_mine.py'}:Slow", "--split", "train", "--threads", "3"]
    command = [sys.executable, "-m", "polyhop.scripts.main", "evaluate", *arguments, "--out", str(out)]
    terminal, side = pty.openpty()
    process = subprocess.Popen(command, stderr=side, stdout=subprocess.PIPE)
    os.close(side)
    predictions = out / "predictions.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (predictions.exists() and predictions.read_bytes().count(b"\n") > 2):
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # the other side is closed
        pass
    os.close(terminal)
    assert process.returncode == 130, shown
    assert b"questions are done; run the same command again to resume" in shown
    assert b"interrupted" in shown
    assert b"Traceback" not in shown
    assert 2 < predictions.read_bytes().count(b"\n") < 57
    summary = json.loads(evaluate(*arguments[:-1], "16", "--out", out, "--json").stdout)
    assert summary["counts"]["answered"] == predictions.read_bytes().count(b"\n") == 57


# --- wrong usage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--dataset", "nope"], 1, "no benchmark 'nope'"),
        (["--dataset", "hotpotqa", "--questions", "nowhere.json"], 1, "There is no file nowhere.json"),
        (["--dataset", "nq", "--questions", "x.json"], 1, "nothing to search: name an --index"),
        (["--setting", "distractor"], 1, "no contexts of their own"),
        (["--setting", "distractor", "--index", "x"], 1, "leave --index out"),
        (["--setting", "both"], 2, "setting: Input should be 'distractor' or 'open'"),
        (["--program", "nope"], 1, "unknown program 'nope'"),
        (["--split", "all"], 1, "train, dev, test, unanswerable"),
        (["--limit", "0"], 2, "limit: Input should be"),
    ],
)
def test_wrong_arguments(arguments: list[str], status: int, message: str) -> None:
    result = evaluate(*arguments)
    assert result.exit_code == status
    assert message in " ".join(result.stderr.split())
