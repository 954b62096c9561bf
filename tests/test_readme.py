"""The README's Python runs as it is written, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.lucene.index import build_index
from polyhop.engines.profile import read_profile

README = Path(__file__).parents[1] / "README.md"


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ada.md").write_text("# Ada Berg\n\nAda Berg works for Kestrel.")
    (notes / "kestrel.md").write_text("# Kestrel\n\nKestrel was founded by Otto Lind in 2004.")
    build_index([notes], tmp_path / "indexes" / "mine")
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, names)
    assert names["prediction"].answer == "Otto Lind"
    assert names["own"].answer == "Zavrazhye"
    assert names["again"].rounds.value == 2


def test_the_profiles_of_the_readme_can_be_read(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        (tmp_path / "models.toml").write_text(block, encoding="utf-8")
        assert read_profile(tmp_path / "models.toml").sections


def test_nothing_in_the_readme_waits_to_be_written() -> None:
    assert not re.findall(r"^[A-Z]{6,}$|TODO|TBD", README.read_text("utf-8"), re.MULTILINE)
