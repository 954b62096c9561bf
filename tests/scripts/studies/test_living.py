"""A small run of the study of a living index."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from polyhop.scripts.studies.living import app


@pytest.mark.slow
def test_readers_see_every_change_and_no_error() -> None:
    options = ["--passages", "3000", "--changed", "100", "--readers", "2", "--kills", "3"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    for count in (10, 100):
        assert f"add {count}: " in result.output
        assert f"the next search finds {count} of {count}" in result.output
    assert "searches, 0 errors" in result.output
    assert "of 4 states 4 as before or after and 4 sound; the same command again: 4 exact" in result.output
    assert "check: sound" in result.output
