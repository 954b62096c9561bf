"""The throughput benchmark on tiny corpora: what it prints, not how fast it is."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from polyhop.scripts.studies import benchmark
from polyhop.scripts.studies.systems import SYSTEMS

pytestmark = pytest.mark.slow


def run(*arguments: str | Path | int) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(benchmark.benchmark)
    return CliRunner().invoke(app, [*map(str, arguments)])


def rows(result: Result) -> dict[tuple[str, str], dict[str, str]]:
    """The final table, by size and system."""
    lines = result.stdout.partition("\n\n")[2].splitlines()
    heading, *body = ([cell for cell in line.split("  ") if cell] for line in lines)
    cells = [dict(zip(map(str.strip, heading), map(str.strip, line), strict=False)) for line in body]
    return {(line["passages"], line["system"]): line for line in cells if "system" in line}


def test_every_system_that_is_installed(tmp_path: Path) -> None:
    sizes = "--passages", 300, "--passages", 100, "--questions", 10
    result = run(*sizes, "--systems", ",".join(SYSTEMS), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = rows(result)
    installed = [name for name, system in SYSTEMS.items() if find_spec(system.module)]
    assert list(found) == [(size, name) for size in ("100", "300") for name in installed]
    assert {"bm25", "chain"} <= {*installed}
    for name in SYSTEMS:
        missing = f"{name} is not installed and was skipped: pip install {name}" in result.stdout
        assert missing == (name not in installed)
    for size in ("100", "300"):
        assert float(found[size, "chain"]["all gold@5"]) > 0.5  # real work was measured
        assert found[size, "chain"]["build s"] == found[size, "bm25"]["build s"]  # one for both
    assert "16 threads" in result.stdout
    records = [json.loads(line) for line in (tmp_path / "out" / "corpus-100.jsonl").open()]
    assert len(records) == 100
