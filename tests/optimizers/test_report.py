"""The section on an optimization run shows what its folder holds, and its texts cannot become markup."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from polyhop.data.errors import PolyhopError
from polyhop.eval.folder import RunError
from polyhop.optimizers.optimize import StageRecord
from polyhop.optimizers.report import section
from polyhop.optimizers.settings import OptimizationSettings

from .run_folder import TEXTS, write_run

EVIL = "\"'><script>alert(1)</script></svg></section><img src=x onerror=alert(2)>"


class Page:
    """The tags, the text and the cells of the section; every element is closed."""

    def __init__(self, run: Path) -> None:
        tree = etree.fromstring(f"<div>{section(run).body}</div>")
        self.tags = [str(each.tag) for each in tree.iter()]
        self.rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
        self.text = " ".join("".join(tree.itertext()).split())


def test_a_finished_run(tmp_path: Path) -> None:
    shown = Page(write_run(tmp_path / "run"))
    for text in (
        "Tiny was tuned for Answer F1: tunables (3 trials), then prompts (credit); seed 0",
        "gives p < 0.025",  # two stages share the level
        "Finished: all stages ran. The result is that of 2-prompts",
        "Over 16 test questions, which no stage has seen, Answer F1 is 25.0 (15.0 to 35.0) at the start and 75.0 (65.0",
        "+50.0 (+40.0 to +60.0), p <0.001",
        "3 trials, 1 pruned. Trial 1 was chosen: 0.9; the program as it was has 0.5",
        "in few words",
        "Oslo",
        "Who wrote Emma?",
    ):
        assert text in shown.text, text
    assert ["1-tunables", "20.0", "−5.0", "0.750", "not kept: not better"] in shown.rows
    assert ["2-prompts", "75.0", "+50.0", "0.031", "kept: better (credit, light)"] in shown.rows
    assert ["effort", "3", "4"] in shown.rows
    assert ["1", "0.9", "3"] in Page(write_run(tmp_path / "cost", cost="lm_calls")).rows


def test_a_metric_of_your_own_is_no_percentage() -> None:
    stage = StageRecord(n=1, stage="tunables", score=3.5, gain=-0.5, why="not better", cost=2.0)
    shown = stage.row(OptimizationSettings(metric="mine.py:words", cost="lm_calls"))
    assert shown == ["1-tunables", "3.50", "−0.50", "", "2.00", "not kept: not better"]


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    shown = Page(write_run(tmp_path / "run", ended=False))
    assert "This run is not finished; candidates so far: 1-tunables, 2-prompts" in shown.text
    assert "Changes from the start to the latest candidate" in shown.text


def test_texts_of_a_run_cannot_become_markup(tmp_path: Path) -> None:
    evil: dict[str, Any] = dict.fromkeys(TEXTS, EVIL)
    runs = [write_run(tmp_path / "evil", **evil), write_run(tmp_path / "run")]
    found = [Page(run) for run in runs]
    assert set(found[0].tags) == set(found[1].tags)
    assert "script" not in found[0].tags
    assert "alert(1)" in found[0].text


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "1-tunables/stage.json", "best/artifact.json"])
def test_a_damaged_run_is_one_line(name: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    for damage in (b"{", b"[]", b'{"settings": 3, "study": 3, "stages": 3}'):
        (path / name).write_bytes(damage)
        with pytest.raises(PolyhopError, match=re.escape(name.rpartition("/")[2])) as raised:
            section(path)
        assert "\n" not in str(raised.value)
    shutil.rmtree(path / "best")
    with pytest.raises(RunError, match="is not a run folder"):
        section(tmp_path)
