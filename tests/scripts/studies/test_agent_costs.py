"""KAIR's table of costs, with the embedded engine on a few questions of the sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyhop.scripts.studies.agent_costs import app, cost_units


@pytest.mark.parametrize(
    ("steps", "agents", "price", "units"), [(4.9, 1, 1, 4.9), (3.82, 2, 1, 7.64), (4.11, 3, 1, 12.33), (2.8, 3, 10, 84)]
)
def test_the_units_are_those_of_the_paper(steps: float, agents: int, price: float, units: float) -> None:
    assert cost_units(steps, agents, price) == pytest.approx(units)


def test_one_row_for_each_number_of_agents(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--on", "sample:", "--limit", "2", "--price", "10", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in result.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["lexical", "1"], ["lexical", "2"], ["lexical", "3"]]
    for row in rows:
        summary = json.loads((tmp_path / f"lexical-{row[1]}" / "summary.json").read_text())
        assert float(row[2]) == pytest.approx(summary["metrics"]["rounds"], abs=0.005)
        assert float(row[2]) >= 1
        assert float(row[3]) == pytest.approx(10 * int(row[1]) * summary["metrics"]["rounds"], abs=0.01)
        assert 0 < float(row[4]) <= 100


def test_every_model_has_a_price() -> None:
    result = CliRunner().invoke(app, ["--on", "sample:", "--lm", "lexical", "--lm", "lexical", "--price", "1"])
    assert "one --price for each --lm" in str(result.exception)
