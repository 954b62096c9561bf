"""What `polyhop doctor` looks at on the machine."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from polyhop.scripts import checks
from polyhop.scripts.checks import Status


def test_packages_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"optuna": "4.9", "ray": "2.0"}
    real = metadata.version

    def version(name: str) -> str:
        if name in ("filelock", "bm25s"):
            raise metadata.PackageNotFoundError(name)
        return versions.get(name) or real(name)

    assert checks.check_packages().status is Status.ok
    monkeypatch.setattr(metadata, "version", version)
    found = checks.check_packages()
    assert found.status is Status.failed
    assert "optuna 4.9 (needed: <6,>=5), filelock is not installed" in found.found
    assert found.fix == "pip install 'optuna<6,>=5' 'filelock<4,>=3.16'"
    extras = {each.check: each for each in checks.check_extras()}
    names = "benchmark dense docs documents ray serve tracking".split()
    assert extras.keys() == {f"extra {name}" for name in names}
    assert extras["extra benchmark"].found == "not installed (optional: make benchmark)"
    assert (extras["extra ray"].status, extras["extra ray"].found) == (
        Status.warning,
        "unsupported version: ray 2.0",
    )


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "file"))
    temporary, cache = checks.check_disk()
    assert temporary.status is Status.ok
    assert (cache.status, "cannot be written to" in cache.found, "DSPY_CACHEDIR" in cache.fix) == (
        Status.failed,
        True,
        True,
    )
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "new"))
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=2**29))
    _, cache = checks.check_disk()
    assert (cache.status, cache.found.startswith("0.5 GB free")) == (Status.warning, True)
