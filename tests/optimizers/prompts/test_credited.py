"""Demos for the agents that cost the points, also where every run failed."""

from __future__ import annotations

from typing import Any

import dspy

from polyhop.eval import metrics
from polyhop.eval.feedback import with_feedback
from polyhop.optimizers.measure import measure
from polyhop.optimizers.prompts import optimize_prompts

from ...programs.scripted import Request, lm
from .world import MAGIC, TOWNS, players, program, question, questions, writer

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


# --- against others --------------------------------------------------------------------------------------------------

LUCKY = 0  # the number of the only hard question that is answered right without help
SEEDS = range(3)


class Race:
    """Counts the calls until the answerer first gets help that matters: a demo of a hard question, or the magic word.
    Demos of other agents and of easy questions change nothing."""

    def __init__(self) -> None:
        self.script, self.first = players(), 0
        self.script.replies["answerer"] = [self._answer]

    def _answer(self, request: Request) -> dict[str, Any]:
        number = int(request.inputs["question"].partition("Book ")[2].split()[0])
        hard = "hard Book" in request.inputs["question"]
        helped = MAGIC in request.system or any("hard Book" in message.text for message in request.messages[:-1])
        if helped and not self.first:
            self.first = len(self.script.requests)
        known = helped or not hard or number == LUCKY
        answer = TOWNS[number % len(TOWNS)] if known else "somewhere"
        return {"reasoning": "So it is [2s1].", "answer": answer, "confidence": 0.9}

    @property
    def calls(self) -> int:
        """All calls of a run that found no help."""
        return self.first or len(self.script.requests)


def test_credit_needs_half_of_the_calls_of_random_search_and_of_gepa_in_turns() -> None:
    train = [question(n, "hard" if n < 2 else "easy") for n in range(10)]
    val = [question(20 + n, ("hard", "easy")[n % 2]) for n in range(6)]

    def race(name: str, seed: int, **numbers: int) -> int:
        run, sizes = Race(), {"train": len(train), "val": len(val), "demos": 1}
        student = program(run.script)
        better = optimize_prompts(name, student, train, val, metrics.answer_em, numbers={**sizes, **numbers}, seed=seed)
        assert name != "credit" or measure(better, val, metrics.answer_em).score == 1.0
        return run.calls

    def turns(seed: int) -> int:
        run = Race()
        gepa = dspy.GEPA(
            metric=with_feedback(metrics.answer_em),
            max_metric_calls=80,
            component_selector="round_robin",
            reflection_lm=lm(writer()),
            seed=seed,
        )
        gepa.compile(program(run.script), trainset=train, valset=val)
        return run.calls

    credit = sum(race("credit", seed) for seed in SEEDS)
    assert 2 * credit <= sum(race("random_search", seed, candidates=8) for seed in SEEDS)
    assert 2 * credit <= sum(map(turns, SEEDS))
