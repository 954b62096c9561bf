"""`polyhop compare`: real runs against each other, in the terminal and in files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from polyhop.eval.comparison import compare_runs
from polyhop.eval.folder import RunError
from polyhop.eval.run import evaluate
from polyhop.eval.statistics import holm

from ..eval.small import Fake, numbered
from .cli import done, polyhop, records, written


@pytest.fixture
def runs(sample_runs: tuple[Path, Path]) -> tuple[Path, Path]:
    """naive and prism on the dev questions of the sample."""
    return sample_runs[1], sample_runs[0]


def test_two_real_runs(runs: tuple[Path, Path]) -> None:
    result = done("compare", *runs)
    assert "55 questions shared\n" in result.stdout
    for text in ("prism against naive", "difference (95%)", "Fact F1 (sentences)", "Seconds"):
        assert text in result.stdout
    means, differences = re.findall(r"Answer EM .*", result.stdout)
    before, after = ([line["scores"]["answer_em"] for line in records(run / "predictions.jsonl")] for run in runs)
    wins, losses = (sum(a > b for a, b in zip(x, y, strict=True)) for x, y in ((after, before), (before, after)))
    assert means.split() == ["Answer", "EM", f"{100 * sum(before) / 55:.1f}", f"{100 * sum(after) / 55:.1f}"]
    assert f"{100 * (sum(after) - sum(before)) / 55:+.1f} (" in differences
    assert differences.rstrip().rpartition(" ")[0].rstrip().endswith(f" {wins} / {losses}")
    assert wins > 3
    assert f"prism: {wins} wrong before and right now" in result.stdout
    assert f"... and {wins - 3} more: --flips" in result.stdout
    everything = polyhop("compare", *runs, "--flips").stdout
    assert everything.count("    gold ") == wins + losses
    rows = [row for row in compare_runs(runs, ["fact_f1", "lm_calls"]).rows if row.versus]
    chances = [row.versus.p_permutation for row in rows if row.versus]
    assert [row.p_holm for row in rows] == holm(chances)
    assert min(holm(chances)) == 2 * min(chances) < 0.05  # the smaller of two counts twice


def test_what_the_cache_spared_is_no_difference(runs: tuple[Path, Path], tmp_path: Path) -> None:
    again = Path(shutil.copytree(runs[0], tmp_path / "again"))
    lines = records(again / "predictions.jsonl")
    for n, line in enumerate(lines):
        if n:  # the second time, DSPy's cache replies
            line["costs_by_agent"] = {}
            line["costs"] |= {"tokens": 0}
    written(again / "predictions.jsonl", lines)
    result = polyhop("compare", runs[0], again)
    assert "54 questions with replies of DSPy's cache" in " ".join(result.stderr.split())
    compared = compare_runs([runs[0], again])
    rows = {row.metric: row for row in compared.rows if row.versus}
    assert {name: rows[name].questions for name in ("tokens", "seconds", "lm_calls")} == {
        "tokens": 1, "seconds": 1, "lm_calls": 55,
    }  # fmt: skip
    assert re.search(r"^ Tokens .* [\d,.]+ of 1 *$", result.stdout, re.MULTILINE | re.IGNORECASE)


def test_only_shared_questions_count(tmp_path: Path) -> None:
    evaluate(Fake(), numbered(6), tmp_path / "a")
    evaluate(Fake({"question 0": lambda: "wrong"}), numbered(5), tmp_path / "b")
    lines = (tmp_path / "b" / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "b" / "predictions.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:9])
    (tmp_path / "b" / "summary.json").unlink()
    result = done("compare", tmp_path / "a", tmp_path / "b")
    assert "4 questions shared of 6 in a, 5 in b" in result.stdout
    assert "b is not finished: 4 of 5" in result.stderr
    assert "b: 1 right before and wrong now" in result.stdout
    compared = compare_runs([tmp_path / "a", tmp_path / "b"], ["answer_em"])
    (first, second) = compared.rows
    assert (first.mean, second.mean, second.questions) == (1.0, 0.75, 4)
    assert second.versus is not None
    assert (second.versus.wins, second.versus.ties, second.versus.losses) == (0, 3, 1)


def test_what_cannot_be_compared(runs: tuple[Path, Path], tmp_path: Path) -> None:
    evaluate(Fake(), numbered(2), tmp_path / "own")
    assert "different datasets" in polyhop("compare", runs[0], tmp_path / "own").stderr
    polyhop("evaluate", "--split", "test", "--program", "naive", "--limit", "2", "--out", tmp_path / "test")
    assert "share no question" in polyhop("compare", runs[0], tmp_path / "test").stderr
    assert "at least two runs" in polyhop("compare", runs[0]).stderr
    assert "is not the folder of a run" in polyhop("compare", runs[0], tmp_path / "none").stderr
    with pytest.raises(RunError, match=r"No metric .f1.: choose from answer_em, "):
        compare_runs(runs, ["f1"])
