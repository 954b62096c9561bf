"""Every prompt optimizer end to end: DSPy's own code, a real program, a scripted model."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence

import dspy
import pytest

from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.eval import metrics
from polyhop.optimizers import prompts
from polyhop.optimizers.artifact import dump
from polyhop.optimizers.prompts import OPTIMIZERS, Size, check, optimize_prompts
from polyhop.optimizers.replay import scored_runs
from polyhop.programs import Prism
from polyhop.programs.agent import Agent

from ..programs.scripted import lm
from .towns import instructions, players, program, questions, writer

SMALL = Size(train=8, val=6, demos=2, runs=60)
WRITING = ("dspy:MIPROv2", "gepa")


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(prompts.SIZES, "light", SMALL)
        yield


def score(student: dspy.Module, asked: Sequence[dspy.Example]) -> float:
    runs = list(scored_runs(student, asked, metrics.answer_em, range(len(asked))))
    assert not any(run.failure for run in runs)
    return sum(run.score for run in runs) / len(runs)


@pytest.mark.parametrize("name", [*OPTIMIZERS, "dspy:BootstrapFewShotWithRandomSearch", "dspy:MIPROv2"])
def test_an_optimizer_improves_the_program_and_changes_only_prompts(name: str) -> None:
    student, hard = program(players()), questions(0, 6)
    before = dump(student)
    more = {"prompt_model": lm(writer())} if name in WRITING else {}
    better = optimize_prompts(name, student, questions(8, 4), questions(4, 4), metrics.answer_em, threads=2, **more)
    assert (score(student, hard), score(better, hard)) == (0.0, 1.0)
    assert dump(student) == before
    assert type(better) is Prism
    for original, predictor in zip(student.predictors(), better.predictors(), strict=True):
        assert type(predictor) is Agent
        assert predictor.lm is original.lm
        assert list(predictor.signature.fields) == list(original.signature.fields)
    assert (instructions(better) != instructions(student)) == (name in WRITING)
    after = dump(better)
    assert {key for key in after if after[key] != before[key]} <= {name for name, _ in better.named_predictors()}


def test_failed_runs_give_demos_to_the_agent_that_failed() -> None:
    hard = questions(0, 6)
    student = program(players())
    better = optimize_prompts("credit", student, hard, hard, metrics.answer_em)
    counts = {name: len(predictor.demos) for name, predictor in better.named_predictors()}
    assert counts == dict.fromkeys(counts, 0) | {"answerer": 2}
    (demo, *_) = better.answerer.demos
    assert set(better.answerer.signature.fields) <= set(demo.keys())
    assert demo.answer in demo.reasoning  # not the reasoning that led elsewhere
    assert "Book" in demo.evidence  # as text
    bare = [dspy.Example(question="Who?", answers=(), pool=hard[0].pool).with_inputs("question", "pool")]
    without = optimize_prompts("credit", student, bare, bare, metrics.answer_em)  # no annotations, no demos
    assert dump(without) == dump(student)


def test_demos_that_do_not_help_are_dropped_and_no_fault_costs_no_validation() -> None:
    script = players()
    script.replies["answerer"] = [{"reasoning": "", "answer": "somewhere", "confidence": 0.9}]
    better = optimize_prompts("credit", program(script), questions(3, 0), questions(3, 0), metrics.answer_em)
    assert not any(predictor.demos for predictor in better.predictors())
    script = players()
    optimize_prompts("credit", program(script), questions(3, 0), questions(3, 0), metrics.answer_em)
    assert len(script.requests) == 3 * 4


# --- refusals, failures, budgets -------------------------------------------------------------------------------------


def test_agents_keep_models_of_their_own() -> None:
    script, other = players(), players()
    student = program(script)
    student.answerer.lm = lm(other)
    better = optimize_prompts("dspy:BootstrapFewShot", student, questions(8, 4), questions(4, 4), metrics.answer_em)
    assert better.answerer.lm is student.answerer.lm
    assert not script.asked("answerer")
    assert not other.asked("selector")
    assert score(better, questions(0, 4)) == 1.0


@pytest.mark.parametrize("name", ["credit", "dspy:BootstrapFewShotWithRandomSearch", "gepa"])
def test_a_spent_budget_stops_an_optimizer_at_once(name: str) -> None:
    script, threads = players(), threading.active_count()
    student = program(script)
    Budget(calls=30).meter_program(student)
    with pytest.raises(BudgetSpent):
        optimize_prompts(
            name,
            student,
            questions(8, 4),
            questions(4, 4),
            metrics.answer_em,
            threads=2,
            prompt_model=lm(writer()) if name in WRITING else None,
        )
    assert 29 <= len(script.requests) <= 30  # the other of two threads may be stopped with a call that it paid for
    assert threading.active_count() <= threads + 4


@pytest.mark.parametrize(
    ("model", "is_small"),
    [
        ("openai/qwen2.5-coder-1.5b-instruct", True),
        ("ollama_chat/qwen3:4b", True),
        ("ollama_chat/qwen3:32b", False),
        ("openai/gpt-4o-mini", False),
    ],
)
def test_a_small_model_that_writes_instructions_is_warned_of(model: str, is_small: bool) -> None:
    program = dspy.Predict("question -> answer")
    program.set_lm(dspy.LM(model))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        check("gepa", program)
        check("credit", program)  # writes none
        check("gepa", program, dspy.LM("openai/gpt-4o"))
    assert [f"{model} is small" in str(warning.message) for warning in warned] == [True] * is_small
