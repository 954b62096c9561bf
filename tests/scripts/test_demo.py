"""`polyhop demo`: index, ask, compare with gold."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyhop.scripts.main import app


def test_the_demo_indexes_asks_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    assert "passages  351" in result.stdout
    assert " ".join(result.stdout.split()).count("gold is") == 5  # wherever lines break
    assert result.stdout.count("stopped:") == 5
    assert list(tmp_path.iterdir()) == []
