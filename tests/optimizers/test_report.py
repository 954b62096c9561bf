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
from polyhop.optimizers.report import section

from .run_folder import TEXTS, write_run

EVIL = "\"'><script>alert(1)</script></svg></section><img src=x onerror=alert(2)>"


class Page:
    """The tags, the text and the cells of the section; every element is closed."""

    def __init__(self, run: Path) -> None:
        tree = etree.fromstring(f"<div>{section(run).body}</div>")
        self.tags = [str(each.tag) for each in tree.iter()]
        self.rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
        self.text = " ".join("".join(tree.itertext()).split())


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
