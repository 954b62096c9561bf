"""Demos for the agents that cost the points, also where every run failed."""

from __future__ import annotations

from typing import Any

from polyhop.eval import metrics
from polyhop.optimizers.measure import measure
from polyhop.optimizers.prompts import optimize_prompts

from .world import players, program, questions

NUMBERS = {"val": 4, "train": 4}


def test_failed_runs_give_demos_to_the_agent_that_failed() -> None:
    hard = questions(0, 6)
    student = program(players())
    assert measure(student, hard, metrics.answer_em).score == 0.0
    bootstrapped = optimize_prompts("bootstrap", student, hard, [], metrics.answer_em)
    assert not any(predictor.demos for predictor in bootstrapped.predictors())  # it learns from successes
    better = optimize_prompts("credit", student, hard, hard, metrics.answer_em, numbers=NUMBERS)
    assert {name: len(each.demos) for name, each in better.named_predictors()} == {
        "analyzer": 0,
        "selector": 0,
        "adder": 0,
        "answerer": 2,
    }
    assert measure(better, hard, metrics.answer_em).score == 1.0
    (demo, *_) = better.answerer.demos
    assert "Where was the author of hard Book" in demo.question
    assert demo.answer in demo.reasoning  # not the reasoning that led elsewhere
    assert set(better.answerer.signature.fields) <= set(demo.keys())


def test_demos_that_do_not_help_are_dropped() -> None:
    script = players()
    script.replies["answerer"] = [{"reasoning": "", "answer": "somewhere", "confidence": 0.9}]
    better = optimize_prompts(
        "credit", program(script), questions(3, 0), questions(3, 0), metrics.answer_em, numbers=NUMBERS
    )
    assert not any(predictor.demos for predictor in better.predictors())


def test_no_fault_costs_no_validation() -> None:
    script = players()
    arguments: dict[str, Any] = {"numbers": NUMBERS}
    optimize_prompts("credit", program(script), questions(3, 0), questions(3, 0), metrics.answer_em, **arguments)
    assert len(script.requests) == 3 * 4
