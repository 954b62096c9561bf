"""The complexity estimator: probabilities for any text, a file that is checked, and estimates that make sense."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data import dense
from polyhop.data.benchmarks import load_questions
from polyhop.data.errors import PolyhopError
from polyhop.data.form import FEATURES
from polyhop.programs.complexity import (
    SHIPPED,
    Complexity,
    ComplexityEstimator,
    Head,
    estimate_complexity,
    read_head,
    write_head,
)

QUESTION = "In which country was the director of Solaris born?"


@pytest.fixture
def head() -> Head:
    return read_head(SHIPPED)


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


def test_nesting_raises_the_estimate() -> None:
    questions = (
        "Where was Chopin born?",
        "Where was the composer of Carmen born?",
        "Where was the wife of the composer of Carmen born?",
        "Where was the father of the wife of the composer of the opera that Nietzsche praised born?",
    )
    expected = [estimate_complexity(question).expected for question in questions]
    assert expected == sorted(expected)
    assert expected[-1] - expected[0] > 1.5


def test_style_does_not_matter() -> None:
    assert estimate_complexity(QUESTION.lower().rstrip("?")) == estimate_complexity(QUESTION)


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


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    first = ComplexityEstimator.load()
    first.save(tmp_path / "saved.json")
    second = ComplexityEstimator.load(tmp_path / "saved.json")
    assert second.head == first.head
    assert second(QUESTION) == first(QUESTION)
    assert (tmp_path / "saved.json").read_bytes() == SHIPPED.read_bytes()


@given(st.lists(st.floats(-1e6, 1e6), min_size=len(FEATURES), max_size=len(FEATURES)))
def test_any_numbers_survive_the_file(tmp_path_factory: pytest.TempPathFactory, numbers: list[float]) -> None:
    row = tuple(numbers)
    head = Head(row, (1.0,) * len(row), (row, row, row, row), (0.0, 1.0, -1.0, 0.5), None, {"command": "none"})
    path = tmp_path_factory.mktemp("heads") / "head.json"
    write_head(head, path)
    assert read_head(path) == head


def test_the_shipped_estimator_is_read_once_and_shared_by_copies() -> None:
    estimator = ComplexityEstimator.load()
    assert ComplexityEstimator.load() is estimator
    assert copy.deepcopy(estimator) is estimator


def test_the_shipped_estimator_says_where_it_comes_from(head: Head) -> None:
    training = head.training
    assert head.encoder is None
    assert training["command"].startswith("python -m polyhop.scripts.training.complexity --musique musique_ans_train")
    matrix = training["cross-validated"]["confusion matrix"]
    by_hops = [sum(counts.get(str(hops), 0) for counts in training["questions"].values()) for hops in (1, 2, 3, 4)]
    assert [sum(row) for row in matrix] == by_hops
    assert training["cross-validated"]["2 hops taken for 1"] == pytest.approx(matrix[1][0] / by_hops[1], abs=1e-4)


def changed(tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**json.loads(SHIPPED.read_bytes()), **fields}))
    return path


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": 2}, "of another version.*train it again with python -m polyhop.scripts.training.complexity"),
        ({"inputs": ["words"]}, "of another version"),
        ({"weights": [[1.0]]}, "must have 4 classes"),
        ({"mean": [1.0]}, "as many means, scales and weights"),
        ({"scale": [0.0] * len(FEATURES)}, "positive scales"),
        ({"biases": [1.0, 2.0, 3.0, "much"]}, "does not hold a complexity estimator"),
        ({"biases": [1.0, 2.0, 3.0, math.inf]}, "finite numbers"),
        ({"weights": None}, "does not hold a complexity estimator"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match=message):
        ComplexityEstimator.load(changed(tmp_path, **fields))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match="cannot read .*nowhere.json: No such file"):
        ComplexityEstimator.load(tmp_path / "nowhere.json")
    (tmp_path / "half.json").write_text('{"format": 1')
    with pytest.raises(PolyhopError, match="half.json is not JSON"):
        ComplexityEstimator.load(tmp_path / "half.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(PolyhopError, match="does not hold a complexity estimator"):
        ComplexityEstimator.load(tmp_path / "list.json")


# --- with an encoder -------------------------------------------------------------------------------------------------


class Lengths:
    """An encoder of one dimension: the number of characters."""

    name = "lengths"

    def __call__(self, texts: Any, /) -> Any:
        return np.array([[float(len(text))] for text in texts])


def test_a_head_with_an_encoder_sees_its_vectors(head: Head) -> None:
    wider = replace(
        head,
        mean=(*head.mean, 0.0),
        scale=(*head.scale, 1.0),
        weights=tuple((*row, 10.0 * (hops == 3)) for hops, row in enumerate(head.weights, 1)),
        encoder="lengths",
    )
    assert ComplexityEstimator(wider, Lengths())(QUESTION).hops == 3
    with pytest.raises(PolyhopError, match="trained with the encoder lengths: give it that one"):
        ComplexityEstimator(wider)
    with pytest.raises(PolyhopError, match="trained without an encoder, not with lengths"):
        ComplexityEstimator(head, Lengths())


def test_a_head_with_minilm_needs_the_extra(head: Head, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_head(replace(head, encoder=dense.MiniLM.name), tmp_path / "minilm.json")
    monkeypatch.setattr(dense, "find_spec", lambda name: None)
    with pytest.raises(PolyhopError, match=r"sentence-transformers, which is not installed.*polyhop\[dense\]"):
        ComplexityEstimator.load(tmp_path / "minilm.json")


def test_estimating_imports_neither_scikit_learn_nor_java() -> None:
    code = (
        "import sys; from polyhop.programs.complexity import estimate_complexity; estimate_complexity('Who?');"
        "print(sorted({'sklearn', 'scipy', 'torch', 'jnius'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
