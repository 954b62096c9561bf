"""Fitting the Selector's weights: that it learns what is right, and what its command takes and prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from polyhop.engines.lexical.chain_features import ExtensionFeatures, StopFeatures
from polyhop.scripts.training.selector import Case, QuestionSet, app, as_code, fit

SIZE = 2 * len(ExtensionFeatures._fields) + len(StopFeatures._fields)


def sample_cases() -> list[Case]:
    return QuestionSet("sample", None, None, 1.0).cases(limit=8, seed=0)


def test_fitted_weights_find_the_evidence() -> None:
    cases = sample_cases()
    weights = fit(cases)
    assert np.mean([case.score(weights).f1 for case in cases]) > 0.9
    assert np.mean([case.score(np.zeros(SIZE)).f1 for case in cases]) < 0.6


def test_what_is_learned_is_what_is_said_to_be_right() -> None:
    cases = [
        Case(case.name, case.question, case.judge, frozenset({case.judge.passages[-1].number}), 1.0)
        for case in sample_cases()
    ]
    weights = fit(cases)
    assert np.mean([case.score(weights).recall for case in cases]) > 0.9


def test_a_question_is_in_one_fold_whatever_set_it_is_from() -> None:
    case, *_ = sample_cases()
    twin = Case("another", case.question, case.judge, case.gold, 2.0)
    assert twin.fold(5) == case.fold(5)


def test_the_code_holds_the_weights() -> None:
    weights = np.random.default_rng(0).normal(size=SIZE)
    found: dict[str, ExtensionFeatures | StopFeatures] = {}
    exec(as_code(weights), {"ExtensionFeatures": ExtensionFeatures, "StopFeatures": StopFeatures}, found)
    flat = [value for name in ("FIRST", "NEXT", "END") for value in found[name]]
    assert flat == pytest.approx(weights, rel=0.01)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2wiki:dev.json:indexes/2wiki:0.5", QuestionSet("2wiki", Path("dev.json"), Path("indexes/2wiki"), 0.5)),
        ("hotpotqa:a/dev.json.gz", QuestionSet("hotpotqa", Path("a/dev.json.gz"), None, 1.0)),
        ("musique:dev.jsonl::2", QuestionSet("musique", Path("dev.jsonl"), None, 2.0)),
        ("sample:", QuestionSet("sample", None, None, 1.0)),
    ],
)
def test_sets_are_named_in_one_word(text: str, expected: QuestionSet) -> None:
    assert QuestionSet.parse(text) == expected


@pytest.mark.parametrize("text", ["", "2wiki", "2wiki:", "sample:file", "a:b:c:1:2", "a:b::x", "a:b::-1", "a:b::inf"])
def test_what_names_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="DATASET:QUESTIONS|weight|convert"):
        QuestionSet.parse(text)


def test_the_command_prints_scores_and_weights() -> None:
    result = CliRunner().invoke(app, ["--on", "sample:", "--limit", "4", "--folds", "2"])
    assert result.exit_code == 0, result.output
    assert "| sample, open | 4 |" in result.stdout
    assert "NEXT = ExtensionFeatures(\n    rank=" in result.stdout
    refused = CliRunner().invoke(app, ["--on", "2wiki"])
    assert refused.exit_code == 2
    assert "is not DATASET:QUESTIONS" in refused.output
