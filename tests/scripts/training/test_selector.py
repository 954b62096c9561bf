"""Fitting the Selector's weights: that it learns what is right, and what its command takes and prints."""

from __future__ import annotations

import numpy as np
from typer.testing import CliRunner

from polyhop.data.errors import PolyhopError
from polyhop.engines.lexical.chain_features import ExtensionFeatures, StopFeatures
from polyhop.scripts.training.command import QuestionFile
from polyhop.scripts.training.selector import SelectorCase, app, cases_of, fit

SIZE = 2 * len(ExtensionFeatures._fields) + len(StopFeatures._fields)


def sample_cases() -> list[SelectorCase]:
    return cases_of(QuestionFile.parse("sample:"), limit=8, seed=0)


def test_fitted_weights_find_the_evidence() -> None:
    cases = sample_cases()
    weights = fit(cases)
    assert np.mean([case.score(weights).f1 for case in cases]) > 0.9
    assert np.mean([case.score(np.zeros(SIZE)).f1 for case in cases]) < 0.6


def test_the_command_prints_scores_and_weights() -> None:
    result = CliRunner().invoke(app, ["--on", "sample:", "--limit", "4", "--folds", "2"])
    assert result.exit_code == 0, result.output
    assert "| sample, open | 4 |" in result.stdout
    assert "NEXT = ExtensionFeatures(\n    rank=" in result.stdout
    refused = CliRunner().invoke(app, ["--on", "2wiki"])
    assert isinstance(refused.exception, PolyhopError)
