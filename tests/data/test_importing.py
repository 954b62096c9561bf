"""How to install what a feature needs: a command that exists, in a checkout and from a wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from polyhop.data import importing

ROOT = Path(importing.__file__).parents[1]
EXTRAS = ("dense", "documents", "hub", "ray", "serve", "tracking")


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_exists(extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert importing.installs(extra) == f"make {extra}"
    assert extra in (ROOT / "Makefile").read_text()
    monkeypatch.setattr(importing, "__file__", str(tmp_path / "data" / "importing.py"))  # as from a wheel
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][extra]
    told = importing.installs(extra)
    assert told.startswith("pip install ")
    assert all(f"{name.split('>')[0].split('<')[0].strip()}" in told for name in declared)
    assert "polyhop" not in told
