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
from polyhop.optimizers.report import plotted, section

from .run_folder import TEXTS, searched, write_run

EVIL = "\"'><script>alert(1)</script></svg></section><img src=x onerror=alert(2)>"


class Page:
    """The tags, the text and the cells of the section; every element is closed."""

    def __init__(self, run: Path) -> None:
        tree = etree.fromstring(f"<div>{section(run).body}</div>")
        self.tags = [str(element.tag) for element in tree.iter()]
        self.rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
        self.text = " ".join("".join(tree.itertext()).split())


def test_texts_of_a_run_cannot_become_markup(tmp_path: Path) -> None:
    evil: dict[str, Any] = dict.fromkeys(TEXTS, EVIL)
    runs = [write_run(tmp_path / "evil", **evil), write_run(tmp_path / "run")]
    pages = [Page(run) for run in runs]
    assert set(pages[0].tags) == set(pages[1].tags)
    assert "script" not in pages[0].tags
    assert "alert(1)" in pages[0].text


def test_a_search_is_plotted_against_its_calls() -> None:
    """Trials of 10 questions with 2, 3 and 4 calls each: 20, 50 and 90 so far. The line has the complete ones alone."""
    plot = plotted(searched("terse"), "answer_f1")
    low, high = 200.0, 0.0  # an SVG counts from above
    places = [(142.2, low, False, False), (355.6, high, False, True), (640.0, low, True, False)]
    assert [point[:4] for point in plot.points] == places
    assert plot.points[2].note == "trial 2, stopped: 50.0 after 90 calls"
    assert plot.best == "M142.2 200.0H355.6V0.0H640"
    assert plot.across == [(0.0, "0"), (320.0, "45"), (640.0, "90")]
    assert plot.up == [(low, "50.0"), (100.0, "70.0"), (high, "90.0")]


def test_gains_of_stages_have_intervals(tmp_path: Path) -> None:
    page = Page(write_run(tmp_path / "run"))
    gains = {row[0]: row[2] for row in page.rows if row[0] in ("0-start", "1-tunables", "2-prompts")}
    assert gains["0-start"] == ""
    assert gains["1-tunables"].startswith("−5.0")
    assert gains["1-tunables"].endswith("−10.0 to +2.0")
    assert gains["2-prompts"] == "+50.0"  # of a run before intervals were kept


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "1-tunables/stage.json", "best/artifact.json"])
def test_a_damaged_run_is_one_line(name: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    for damage in (b"{", b"[]", b'{"settings": 3, "study": 3, "stages": 3}'):
        (path / name).write_bytes(damage)
        with pytest.raises(PolyhopError, match=re.escape(name.rpartition("/")[2])) as raised:
            section(path)
        assert "\n" not in str(raised.value)
    shutil.rmtree(path / "best")
    with pytest.raises(RunError, match="is not the folder of a run: it has no manifest.json"):
        section(tmp_path)
