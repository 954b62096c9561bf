"""The complexity estimator: probabilities for any text, a file that is checked, and estimates that make sense."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.benchmarks import load_questions
from polyhop.data.form import FEATURES
from polyhop.data.passages import Passage
from polyhop.programs import ParRag, PolyHop
from polyhop.programs.complexity import SHIPPED, Complexity, ComplexityEstimator, ComplexityHead
from polyhop.programs.trace import Estimated

from .scripted import playing, scripted, steps

# --- the estimate ----------------------------------------------------------------------------------------------------


@given(st.text())
def test_any_text_gets_probabilities(text: str) -> None:
    complexity = ComplexityEstimator()(text)
    assert math.fsum(complexity.probabilities) == pytest.approx(1)
    assert all(0 <= probability <= 1 for probability in complexity.probabilities)
    assert complexity.hops in (1, 2, 3, 4)
    assert 1 <= complexity.expected <= 4


def test_most_questions_of_the_sample_that_need_several_hops_are_not_taken_for_one() -> None:
    held_out = [each for split in ("dev", "test") for each in load_questions("sample", split=split)]
    several = [ComplexityEstimator()(each.question).probabilities[0] for each in held_out if each.hops > 1]
    assert np.mean([one > 0.5 for one in several]) < 0.1
    assert max(several) < 0.9


# --- a part of a program ---------------------------------------------------------------------------------------------


def sure(hops: int) -> ComplexityHead:
    """A head that always estimates the same."""
    return ComplexityHead(
        training={},
        mean=(0.0,) * len(FEATURES),
        scale=(1.0,) * len(FEATURES),
        weights=((0.0,) * len(FEATURES),) * 4,
        biases=tuple(9.0 * (each == hops) for each in (1, 2, 3, 4)),
    )


@pytest.mark.parametrize("kind", [ParRag, PolyHop])
def test_a_program_takes_an_estimator_and_carries_it(kind: type[ParRag | PolyHop]) -> None:
    program = kind(estimator=ComplexityEstimator(sure(3)))
    loaded = kind()
    loaded.load_state(json.loads(json.dumps(program.dump_state())))
    for each in (program, program.deepcopy(), program.reset_copy(), loaded, pickle.loads(pickle.dumps(program))):
        with playing(scripted(planner={"sub_questions": ["Who?"]})):
            prediction = each(question="Who wrote Emma?", pool=[Passage.of("Emma", "Jane Austen wrote Emma.")])
        (estimated,) = steps(prediction, Estimated)
        assert Complexity(estimated.probabilities).hops == 3
    assert kind().estimator("Who wrote Emma?").hops == 1  # others keep theirs


# --- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"inputs": ["words", "verbs"]},
        {"weights": [[1.0]]},
        {"mean": [1.0]},
        {"scale": [0.0] * len(FEATURES)},
        {"biases": [1.0, 2.0, 3.0, math.nan]},
        {"mean": [1e300] * len(FEATURES)},
        {"encoder": None},
    ],
)
def test_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**json.loads(SHIPPED.read_bytes()), **fields}))
    with pytest.raises(ValueError, match="."):
        ComplexityEstimator().load_state(json.loads(path.read_text()))
    with pytest.raises(ValueError, match="."):
        ComplexityHead.load(path)
