"""Settings of an optimization, and splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.settings import OptimizationSettings, Splits, divide, read_settings


def example(text: str) -> dspy.Example:
    return dspy.Example(question=text, answers=["x"]).with_inputs("question")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"stages": ("prompts", "magic")},
            "mine: stages.1: Input should be 'exemplars', 'confidence', 'prompts' or 'tunables'",
        ),
        ({"stages": ()}, "stages: name at least one stage"),
        ({"stages": "prompts, prompts"}, "stages: name at least one stage, and each stage once"),
        ({"rounds": 0}, "rounds: Input should be greater than or equal to 1"),
        ({"trials": "many"}, "trials: Input should be a valid integer"),
        ({"level": 0.0}, "level: Input should be greater than 0"),
        ({"sampler": "cmaes"}, "sampler: Input should be 'tpe' or 'random'"),
        ({"auto": "huge"}, "auto: Input should be 'light', 'medium' or 'heavy'"),
        ({"trails": 7}, "trails: Extra inputs are not permitted"),
    ],
)
def test_invalid_settings(values: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        OptimizationSettings.of(values, "mine")


def test_files_hold_settings(tmp_path: Path) -> None:
    toml = tmp_path / "mine.toml"
    toml.write_text('train = "mine.jsonl"\nstages = ["tunables"]\ntrials = 7\n[ranges]\nrounds = [1, 3]\n')
    settings = OptimizationSettings.of(read_settings(toml))
    assert (settings.train, settings.stages, settings.trials) == ("mine.jsonl", ("tunables",), 7)
    assert settings.ranges == {"rounds": (1, 3)}
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"settings": settings.model_dump(mode="json"), "program": {}}))
    assert OptimizationSettings.of(read_settings(manifest)) == settings
    for content in ("trials =", "settings = 3"):
        toml.write_text(content)
        with pytest.raises(PolyhopError, match="mine.toml is not a TOML or JSON file with settings"):
            read_settings(toml)
    with pytest.raises(PolyhopError, match="missing.toml is not"):
        read_settings(tmp_path / "missing.toml")


def test_splits_share_no_question() -> None:
    one, two, three = map(example, ("One?", "Two?", "Three?"))
    Splits([one, one], [two], [three])
    with pytest.raises(PolyhopError, match="in both train and test: 'One\\?'"):
        Splits([one], [two], [three, example("One?")])
    with pytest.raises(PolyhopError, match="no val questions"):
        Splits([one], [], [three])


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(0, 5))
def test_division_keeps_equal_questions_together(numbers: list[int], seed: int) -> None:
    questions = [example(f"What is {number}?") for number in numbers]
    parts = divide(questions, (0.5, 0.25, 0.25), seed)
    assert sorted(map(id, questions)) == sorted(id(each) for part in parts for each in part)
    texts = [{each.question for each in part} for part in parts]
    assert not texts[0] & texts[1]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]
    assert [[q.question for q in part] for part in parts] == [
        [q.question for q in part] for part in divide(questions, (0.5, 0.25, 0.25), seed)
    ]
