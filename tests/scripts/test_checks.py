"""What `polyhop doctor` looks at on the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from polyhop.scripts import checks
from polyhop.scripts.checks import Status


def test_packages_are_those_that_polyhop_requires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_packages().status is Status.ok  # although pyserini lacks what `make` leaves out
    pip = tmp_path / "python"
    pip.write_text(
        "#!/bin/sh\necho 'pyserini 1.6 requires torch, which is not installed.'\n"
        "echo 'polyhop 0.1 has requirement optuna>=5, but you have optuna 4.9.'\nexit 1\n"
    )
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(pip))
    found = checks.check_packages()
    assert (found.status, found.found) == (
        Status.failed,
        "polyhop 0.1 has requirement optuna>=5, but you have optuna 4.9.",
    )
