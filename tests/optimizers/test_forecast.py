"""The forecast of a run, beside what the run then asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polyhop.optimizers.forecast import Forecast, forecast
from polyhop.optimizers.optimize import optimize
from polyhop.optimizers.settings import OptimizationSettings, Splits

from .tiny import Engine, examples, make

SPLITS = Splits(examples(0, 48), examples(100, 20), examples(200, 10))


@pytest.mark.parametrize(
    ("settings", "runs"),
    [
        ({"stages": ("tunables",), "trials": 11}, 20 + 20 + 48 + 20 + 10 * (12 + 12 // 2 + 24 // 4)),
        ({"stages": ("tunables",), "trials": 11, "cost": "lm_calls"}, 20 + 20 + 48 + 20 + 10 * 48),
        ({"stages": ("prompts",), "optimizer": "gepa"}, 20 + 20 + 100 + 20),
        ({"stages": ("prompts",), "auto": "light"}, 20 + 20 + 20 + 20 * 3 + 20),
    ],
)
def test_it_counts_what_each_stage_asks(settings: dict[str, Any], runs: int) -> None:
    expected = forecast(make(Engine()), SPLITS, OptimizationSettings(metric="answer_em", **settings))
    assert (expected.runs, expected.calls) == (runs, 2 * runs)
    assert expected.tokens > 100 * runs


def test_it_is_near_to_what_is_spent(tmp_path: Path) -> None:
    settings = OptimizationSettings(metric="answer_em", stages=("tunables",), trials=20, seed=3)
    engine = Engine()
    expected = forecast(make(engine), SPLITS, settings)
    assert engine.calls == 0
    optimize(make(engine), SPLITS, tmp_path / "run", settings)
    assert 0.5 * expected.calls < engine.calls < 2 * expected.calls


def test_it_reads_as_a_line() -> None:
    assert str(Forecast(runs=412, calls=1030, tokens=1_190_000)) == (
        "about 412 questions to answer, 1,030 LM calls, 1,190,000 tokens"
    )
    assert str(Forecast(runs=1)) == "about 1 question to answer"
