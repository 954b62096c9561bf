"""The study of tuning, over made-up questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyhop.scripts.studies.simulation import PROFILES
from polyhop.scripts.studies.simulation.tuning import SAMPLERS, app

from .world import two_hops

pytestmark = pytest.mark.slow


def test_a_row_for_each_profile_and_search(tmp_path: Path) -> None:
    train, test = tmp_path / "train.json", tmp_path / "test.json"
    train.write_text(json.dumps(two_hops(20)[:8]))
    test.write_text(json.dumps(two_hops(20)[8:]))
    files = ["--train", f"hotpotqa:{train}", "--test", f"hotpotqa:{test}"]
    arguments = [*files, "--out", str(tmp_path / "out"), "--trials", "3", "--seeds", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = [line.split(" | ") for line in result.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(PROFILES) * len(SAMPLERS)
    assert {len(row) for row in rows} == {8}
    assert "Simulation: " in result.stdout
