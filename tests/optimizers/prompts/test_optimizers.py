"""Every optimizer end to end: DSPy's own code, a real program, a scripted model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import dspy
import pytest

from polyhop.eval import objectives
from polyhop.optimizers.measure import measure
from polyhop.optimizers.prompts import OPTIMIZERS, Probe, estimate, optimize_prompts
from polyhop.programs import Exemplars, Naive, Prism, tunables
from polyhop.programs.agent import Agent

from ...programs.scripted import Script, lm
from .world import MAGIC, instructions, moody, players, program, questions, state, writer

NUMBERS: dict[str, dict[str, int]] = {
    "labeled": {"demos": 2},
    "bootstrap": {"demos": 3},
    "random_search": {"demos": 2, "candidates": 2, "val": 6},
    "bootstrap_optuna": {"pool": 3, "trials": 3, "val": 6},
    "knn": {"demos": 2},
    "ensemble": {"demos": 2, "candidates": 2, "val": 6, "members": 3},
    "copro": {"train": 4, "breadth": 2, "depth": 2},
    "mipro": {"demos": 2, "candidates": 3, "trials": 6, "minibatch": 4, "full_every": 2, "val": 8},
    "simba": {"demos": 2, "candidates": 2, "steps": 2, "batch": 6},
    "gepa": {"runs": 44, "val": 6},
    "infer_rules": {"demos": 2, "candidates": 2, "rules": 2, "val": 6},
    "better_together": {"demos": 2, "candidates": 2, "val": 6, "runs": 44},
}
TRAIN = {"knn": questions(8, 0), "copro": questions(2, 2)}  # of knn the nearest question is a success
SIMBA = {"demos": 2, "candidates": 3, "steps": 2, "batch": 8}
METRIC = objectives.answer_em


@dataclass
class Compiled:
    """A compilation and all around it."""

    student: Prism
    before: dict[str, Any]
    result: dspy.Module
    script: Script
    calls: int
    estimated: float
    seen: list[int]


def run(name: str, seed: int = 0) -> Compiled:
    train, val = TRAIN.get(name, questions(8, 4)), questions(4, 4)
    script, pen = players(), writer()
    student = program(script)
    student.search.k.value = 7
    before = state(student)
    probe = Probe.of(student, train, METRIC, most=12)
    arguments: dict[str, Any] = {"numbers": NUMBERS[name], "seed": seed}
    if OPTIMIZERS[name].needs_prompt_model:
        arguments["prompt_model"] = lm(pen)
    estimated = estimate(name, student, train, val, probe=probe, **arguments).lm_calls
    script.requests.clear()
    seen: list[int] = []
    result = optimize_prompts(name, student, train, val, METRIC, threads=2, on_progress=seen.append, **arguments)
    return Compiled(student, before, result, script, len(script.requests) + len(pen.requests), estimated, seen)


@pytest.fixture(scope="module")
def compiled() -> Callable[[str], Compiled]:
    """Each optimizer's compilation, run once."""
    return cache(run)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_improves_a_program_for_what_it_was_said_to_cost(
    name: str, compiled: Callable[[str], Compiled]
) -> None:
    done = compiled(name)
    # How many questions a bootstrap asks is a matter of luck: the estimate is the mean.
    runs = [done, *(run(name, seed) for seed in range(1, 8) if name == "bootstrap")]
    calls = sum(each.calls for each in runs)
    assert abs(sum(each.estimated for each in runs) - calls) <= 0.25 * calls
    # COPRO asks for several replies at once: one call, whose replies this engine gives one by one.
    assert done.seen == list(range(1, done.calls + 1 - (4 if name == "copro" else 0)))

    hard = questions(0, 6)
    assert measure(done.student, hard, METRIC).score == 0.0
    done.script.requests.clear()
    measured = measure(done.result, hard, METRIC)
    assert measured.score == 1.0
    assert not measured.failures
    assert measured.cost("lm_calls") * 6 == len(done.script.requests)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_but_prompts_is_changed_and_the_student_not_at_all(
    name: str, compiled: Callable[[str], Compiled]
) -> None:
    done = compiled(name)
    assert state(done.student) == done.before
    programs = getattr(done.result, "programs", None) or [getattr(done.result, "program", done.result)]
    for each in programs:
        assert type(each) is Prism
        assert state(each).keys() == done.before.keys()
        assert {name: tunable.value for name, tunable in tunables(each)} == {
            name: tunable.value for name, tunable in tunables(done.student)
        }
        for own, predictor in zip(done.student.predictors(), each.predictors(), strict=True):
            assert type(predictor) is Agent
            assert predictor.lm is own.lm
            assert list(predictor.signature.fields) == list(own.signature.fields)
        changed = instructions(each) != instructions(done.student)
        assert not changed or OPTIMIZERS[name].changes != "demos"
        assert not any(predictor.demos for predictor in each.predictors()) or OPTIMIZERS[name].changes != "instructions"


@pytest.mark.parametrize("name", ["labeled", "random_search", "bootstrap_optuna", "mipro", "simba", "gepa"])
def test_the_same_seed_gives_the_same_program(name: str, compiled: Callable[[str], Compiled]) -> None:
    assert state(compiled(name).result) == state(run(name).result)


@pytest.mark.parametrize("name", ["random_search", "bootstrap_optuna", "mipro", "simba", "gepa"])
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    small = {"val": 4, "candidates": 2, "trials": 2, "minibatch": 2, "steps": 1, "runs": 12, "train": 4, "batch": 4}
    known = {key: value for key, value in small.items() if key in OPTIMIZERS[name].presets["light"]}
    optimize_prompts(
        name, program(players()), questions(4, 4), questions(4, 4), METRIC, numbers=known, prompt_model=lm(writer())
    )
    assert "".join(capfd.readouterr()) == ""


def test_of_knn_nothing_is_paid_before_and_more_for_every_question(compiled: Callable[[str], Compiled]) -> None:
    done = compiled("knn")
    assert done.calls == 0
    train, probe = questions(8, 4), Probe.of(done.student, questions(2, 0), METRIC)
    later = estimate("knn", done.student, train, [], probe=probe, numbers={"demos": 2}).later
    done.script.requests.clear()
    done.result(question="Where was the author of hard Book 3 born?", pool=questions(4, 0)[3].pool)
    assert later == len(done.script.requests) == 12


def test_an_ensemble_costs_as_many_times_the_calls(compiled: Callable[[str], Compiled]) -> None:
    done = compiled("ensemble")
    done.script.requests.clear()
    prediction = done.result(**questions(1, 0)[0].inputs())
    assert prediction.trace.lm_calls == len(done.script.requests) == 12


def test_mipro_may_try_all_that_there_is() -> None:
    """DSPy fails then."""
    student = Naive()
    student.set_lm(lm(players()))
    numbers = {"demos": 1, "candidates": 2, "trials": 12, "minibatch": 1, "full_every": 1, "val": 2}
    result = optimize_prompts(
        "mipro", student, questions(2, 2), questions(0, 2), METRIC, numbers=numbers, prompt_model=lm(writer())
    )
    assert measure(result, questions(0, 2), METRIC).score == 1.0


def test_simba_has_rules_written_where_answers_vary() -> None:
    pen = writer()
    optimize_prompts("simba", program(moody()), questions(4, 4), [], METRIC, numbers=SIMBA, prompt_model=lm(pen))
    assert pen.requests
    for request in pen.requests:
        assert {"analyzer", "selector", "adder", "answerer"} <= set(
            re.findall(r'"module_name": "(\w+)"', request.inputs["better_program_trajectory"])
        )


def test_rules_of_one_candidate_are_not_those_of_all(compiled: Callable[[str], Compiled]) -> None:
    """DSPy writes them into the signature that all programs share."""
    done = compiled("infer_rules")
    assert all(text.count(MAGIC) == 1 for text in instructions(done.result).values())
    assert not any(MAGIC in text for text in instructions(Prism()).values())


def test_an_exemplar_memory_comes_through() -> None:
    class Planned(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.exemplars = Exemplars(count=2)
            self.answerer = Prism(rounds=1)

        def forward(self, question: str, pool: Any) -> Any:
            return self.answerer(question=question, pool=pool)

    for name in ("labeled", "random_search", "gepa"):
        student = Planned()
        student.set_lm(lm(players()))
        student.exemplars.memory.load_state(
            {"exemplars": [{"question": "Who?", "sub_questions": ["Who?"], "hops": 1, "source": "own"}]}
        )
        result = optimize_prompts(
            name, student, questions(6, 0), questions(2, 2), METRIC, numbers=NUMBERS[name], prompt_model=lm(writer())
        )
        assert result.exemplars.memory.exemplars == student.exemplars.memory.exemplars
        assert [exemplar.question for exemplar in result.exemplars.memory.exemplars] == ["Who?"]
        assert result.exemplars.count.value == 2


def test_gepa_continues_where_its_log_ends(tmp_path: Any) -> None:
    script, pen = players(), writer()
    student, val = program(script), questions(3, 3)
    arguments: dict[str, Any] = {"prompt_model": lm(pen), "log_dir": tmp_path / "gepa"}
    train = questions(8, 4)
    first = optimize_prompts("gepa", student, train, val, METRIC, numbers=NUMBERS["gepa"], **arguments)
    script.requests.clear()
    again = optimize_prompts("gepa", student, train, val, METRIC, numbers=NUMBERS["gepa"], **arguments)
    assert state(again) == state(first)
    assert len(script.requests) == 6 * 4  # GEPA scores the program as it is once more
