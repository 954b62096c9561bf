"""A small run of the study of a living index."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from polyhop.scripts.studies.living import app


@pytest.mark.slow
def test_readers_see_every_change_and_no_error() -> None:
    options = ["--passages", "2000", "--changed", "20", "--readers", "2", "--kills", "2"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "add: " in result.output
    assert "the next search finds 20 of 20" in result.output
    assert "searches, 0 errors" in result.output
    assert "2 sound" in result.output
    assert "check: sound" in result.output
