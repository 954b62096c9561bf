"""The complexity estimator: probabilities for any text, a file that is checked, and estimates that make sense."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.benchmarks import load_questions
from polyhop.data.errors import PolyhopError
from polyhop.data.form import FEATURES
from polyhop.programs.complexity import (
    SHIPPED,
    Complexity,
    ComplexityHead,
    estimate_complexity,
)


@pytest.fixture
def head() -> ComplexityHead:
    return ComplexityHead.load(SHIPPED)


# --- the estimate ----------------------------------------------------------------------------------------------------


@given(st.text())
def test_any_text_gets_probabilities(text: str) -> None:
    complexity = estimate_complexity(text)
    assert math.fsum(complexity.probabilities) == pytest.approx(1)
    assert all(0 <= probability <= 1 for probability in complexity.probabilities)
    assert complexity.hops in (1, 2, 3, 4)
    assert 1 <= complexity.expected <= 4


@pytest.mark.parametrize(
    ("question", "hops"),
    [
        ("Who wrote Emma?", 1),
        ("When did the Suez Canal open?", 1),
        ("Where was the director of Metropolis born?", 2),
        ("Are Lake Como and Lake Garda both located in the same country?", 2),
        ("Which film has the director who was born first, Nosferatu or Rashomon?", 4),
    ],
)
def test_plain_questions(question: str, hops: int) -> None:
    assert estimate_complexity(question).hops == hops


def test_most_questions_of_the_sample_that_need_several_hops_are_not_taken_for_one() -> None:
    held_out = [each for split in ("dev", "test") for each in load_questions("sample", split=split)]
    several = [estimate_complexity(each.question).probabilities[0] for each in held_out if each.hops > 1]
    assert np.mean([one > 0.5 for one in several]) < 0.1
    assert max(several) < 0.9


def test_hops_and_mean_of_a_distribution() -> None:
    assert Complexity((0.1, 0.2, 0.3, 0.4)).hops == 4
    assert Complexity((0.1, 0.2, 0.3, 0.4)).expected == pytest.approx(3)
    assert Complexity((0.4, 0.4, 0.1, 0.1)).hops == 1
    assert (Complexity.of(3).hops, Complexity.of(3).expected) == (3, 3.0)
    with pytest.raises(ValueError, match="1 to 4 hops, got 5"):
        Complexity.of(5)


# --- the file --------------------------------------------------------------------------------------------------------


def test_what_is_saved_is_loaded(head: ComplexityHead, tmp_path: Path) -> None:
    head.save(tmp_path / "saved.json")
    assert ComplexityHead.load(tmp_path / "saved.json") == head
    assert (tmp_path / "saved.json").read_bytes() == SHIPPED.read_bytes()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputs": ["words"]}, "another version.*train it again with python -m polyhop.scripts.training.complexity"),
        ({"weights": [[1.0]]}, "must have 4 classes"),
        ({"mean": [1.0]}, "one mean, scale and weight"),
        ({"scale": [0.0] * len(FEATURES)}, "positive scales"),
        ({"biases": [1.0, 2.0, 3.0, "much"]}, "complexity estimator: biases.3: "),
        ({"biases": [1.0, 2.0, 3.0, math.inf]}, "finite numbers"),
        ({"weights": None}, "complexity estimator: weights: "),
        ({"encoder": None}, "complexity estimator: encoder: "),
    ],
)
def test_another_file_is_refused(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**json.loads(SHIPPED.read_bytes()), **fields}))
    with pytest.raises(PolyhopError, match=message):
        ComplexityHead.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "cannot read .*head.json: No such file"), ('{"mean": 1', "Invalid JSON"), ("[1]", "does not hold")],
)
def test_an_unreadable_file_is_named(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "head.json").write_text(text)
    with pytest.raises(PolyhopError, match=message):
        ComplexityHead.load(tmp_path / "head.json")


def test_estimating_imports_neither_scikit_learn_nor_java() -> None:
    code = (
        "import sys; from polyhop.programs.complexity import estimate_complexity; estimate_complexity('Who?');"
        "print(sorted({'sklearn', 'scipy', 'torch', 'jnius'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
