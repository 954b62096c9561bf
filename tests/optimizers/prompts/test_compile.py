"""What is refused before anything runs, what stops a compilation, and what counts as failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.errors import PolyhopError
from polyhop.engines.models import language_model
from polyhop.eval import objectives
from polyhop.optimizers.prompts import OPTIMIZERS, PRESETS, Probe, estimate, estimates, optimize_prompts
from polyhop.programs import Prism

from ...programs.scripted import Script, lm
from .test_optimizers import NUMBERS, SIMBA
from .world import moody, players, program, questions, writer

METRIC = objectives.answer_em
WRITING = [name for name, optimizer in OPTIMIZERS.items() if optimizer.needs_prompt_model]


class Spent(BaseException):
    """The budget is."""


@dataclass
class Purse:
    """An engine with a budget in front of another one."""

    engine: Script
    budget: int
    reached: int = 0
    refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            if self.reached == self.budget:
                self.refused += 1
                raise Spent
            self.reached += 1
        return self.engine.complete(request)


def purse(script: Script, budget: int) -> tuple[Purse, dspy.LM]:
    engine = Purse(script, budget)
    return engine, dspy.LM("purse", engine=engine, cache=False)


@pytest.mark.parametrize("budget", [5, 37])
@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("labeled", "knn")])
def test_a_spent_budget_ends_a_compilation_at_once(name: str, budget: int) -> None:
    student, (spent, model) = program(players()), purse(players(), budget)
    student.set_lm(model)
    numbers = {**NUMBERS[name], **({"demos": 4} if name == "bootstrap" else {})}
    trainset = questions(0, 30) if name == "bootstrap" else questions(8, 4)

    with pytest.raises(Spent):
        optimize_prompts(
            name, student, trainset, questions(4, 4), METRIC, numbers=numbers, threads=4, prompt_model=lm(writer())
        )
    assert spent.reached == budget
    _settled(spent)


@pytest.mark.parametrize("name", WRITING)
def test_so_does_a_spent_budget_of_the_prompt_model(name: str) -> None:
    student, (spent, model) = program(moody()), purse(writer(), 0)
    numbers = SIMBA if name == "simba" else NUMBERS[name]
    with pytest.raises(Spent):
        optimize_prompts(name, student, questions(4, 6), questions(4, 4), METRIC, numbers=numbers, prompt_model=model)
    assert spent.reached == 0


def _settled(spent: Purse) -> None:
    """The threads that DSPy leaves behind end without another call."""
    for _ in range(50):
        refused = spent.refused
        time.sleep(0.05)
        if spent.refused == refused:
            return
    raise AssertionError("something still runs")


def test_threads_that_are_left_behind_stop_at_their_next_call() -> None:
    """Also where the engine would go on."""

    @dataclass
    class Once:
        engine: Script
        turns: Iterator[int] = field(default_factory=count)
        calls: int = 0

        def complete(self, request: lm15.Request) -> lm15.Response:
            self.calls = turn = next(self.turns)
            time.sleep(0.01)
            if turn == 20:
                raise Spent
            return self.engine.complete(request)

    once = Once(players())
    student = program(players())
    student.set_lm(dspy.LM("once", engine=once, cache=False))
    many = questions(15, 15)
    with pytest.raises(Spent):
        optimize_prompts(
            "copro", student, many, [], METRIC, numbers={"train": 30}, threads=4, prompt_model=lm(writer())
        )
    time.sleep(0.5)
    assert once.calls <= 20 + 4 + 30  # the next call of each thread, and the first of each question that waits


@pytest.mark.parametrize("name", WRITING)
def test_the_embedded_engine_is_not_asked_to_write(name: str) -> None:
    script = players()
    for student, given in ((program(script), language_model()), (Prism(rounds=1), None)):
        if given is None:
            student.set_lm(language_model())
        with pytest.raises(PolyhopError, match=r"lexical cannot write.*--prompt-lm.*labeled.*bootstrap.*ensemble"):
            optimize_prompts(name, student, questions(4, 4), questions(4, 4), METRIC, prompt_model=given)
    assert not script.requests


def test_a_lexical_program_may_have_its_instructions_written_by_another_model() -> None:
    student, pen = Prism(rounds=1), writer()
    student.set_lm(language_model())
    numbers = {"train": 2, "breadth": 2, "depth": 1}
    result = optimize_prompts("copro", student, questions(2, 2), [], METRIC, numbers=numbers, prompt_model=lm(pen))
    assert len(pen.requests) == 4
    assert all(predictor.lm.model == "lexical" for predictor in result.predictors())


def test_agents_with_models_of_their_own_keep_them_and_say_who_writes() -> None:
    first, second, pen = players(), players(), writer()
    student = program(first)
    student.answerer.lm = lm(second)
    arguments: dict[str, Any] = {"numbers": {"train": 2, "breadth": 2, "depth": 1}}
    with pytest.raises(PolyhopError, match="different models"):
        optimize_prompts("copro", student, questions(2, 2), [], METRIC, **arguments)
    for name, numbers in (("copro", arguments["numbers"]), ("random_search", NUMBERS["random_search"])):
        optimize_prompts(name, student, questions(2, 2), questions(2, 2), METRIC, numbers=numbers, prompt_model=lm(pen))
        assert {request.agent for request in second.requests} == {"answerer"}
        assert "answerer" not in {request.agent for request in first.requests}
    with pytest.raises(PolyhopError, match="one model"):
        optimize_prompts("simba", student, questions(9, 9), [], METRIC, prompt_model=lm(pen))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nobody", questions(2, 0), questions(2, 0)), "no prompt optimizer 'nobody': choose labeled"),
        (("gepa", [], questions(2, 0)), "gepa needs questions to learn from"),
        (("random_search", questions(2, 0), []), "random_search needs questions to choose by"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(arguments: Any, complaint: str) -> None:
    name, train, val = arguments
    script = players()
    with pytest.raises(PolyhopError, match=complaint):
        optimize_prompts(name, program(script), train, val, METRIC, prompt_model=lm(writer()))
    assert not script.requests


@pytest.mark.parametrize("numbers", [{"demo": 1}, {"demos": 0}])
def test_numbers_that_an_optimizer_has_not_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(PolyhopError, match="its numbers, from 1, are train, val, demos"):
        optimize_prompts("bootstrap", program(players()), questions(2, 0), [], METRIC, numbers=numbers)
    with pytest.raises(PolyhopError, match="no preset 'huge': choose light, medium, heavy"):
        optimize_prompts("bootstrap", program(players()), questions(2, 0), [], METRIC, preset="huge")


def test_a_program_without_a_model_or_without_agents_is_refused() -> None:
    with pytest.raises(PolyhopError, match="has no language model"):
        optimize_prompts("bootstrap", Prism(), questions(2, 0), [], METRIC)
    with pytest.raises(PolyhopError, match="no agents"):
        optimize_prompts("bootstrap", dspy.Module(), questions(2, 0), [], METRIC)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("labeled", "knn")])
def test_a_program_that_fails_is_not_taken_for_a_bad_one(name: str) -> None:
    broken = players()
    broken.replies["selector"] = [RuntimeError("out of order")]
    with pytest.raises(PolyhopError, match="runs of the program failed.*out of order"):
        optimize_prompts(
            name, program(broken), questions(6, 6), questions(4, 4), METRIC, numbers=NUMBERS[name],
            prompt_model=lm(writer()), threads=2,
        )  # fmt: skip


def test_a_question_that_fails_counts_as_wrong() -> None:
    def sometimes(request: Any) -> dict[str, Any]:
        if "Book 2 " in request.inputs["question"]:
            raise RuntimeError("out of order")
        return {"sub_questions": ["Who wrote the book?"]}

    script = players()
    script.replies["analyzer"] = [sometimes]
    result = optimize_prompts("bootstrap", program(script), questions(6, 0), [], METRIC, numbers={"demos": 6})
    assert len(result.answerer.demos) == 5


@pytest.mark.parametrize("name", WRITING)
def test_a_prompt_model_that_writes_nonsense_is_told(name: str) -> None:
    nonsense = Script({"other": ["I would rather not."]})
    with pytest.raises(PolyhopError, match=r"not the fields|proposals failed"):
        optimize_prompts(
            name, program(moody()), questions(6, 6), questions(4, 4), METRIC, numbers=NUMBERS[name],
            prompt_model=lm(nonsense),
        )  # fmt: skip


def test_the_table_of_estimates_has_a_row_for_each_optimizer_and_preset() -> None:
    student = program(players())
    probe = Probe.of(student, questions(2, 2), METRIC)
    # Half of the questions are good enough, so that two demos take four questions and one takes two. The sets have 2,
    # 2, 1 and 1, the empty one is the fifth to be scored: (12 + 5 * 20) * 4 calls.
    rows = estimates(student, questions(25, 25), questions(25, 25), probe=probe)
    assert [row[:2] for row in rows] == [(name, preset) for name in OPTIMIZERS for preset in PRESETS]
    assert [row[2] for row in rows if row[:2] == ("random_search", "light")] == ["448"]
    assert {row[5] for row in rows if row[0] == "random_search"} == {"?"}  # nobody knows the model's prices
    light = estimate("copro", student, questions(25, 25), [], probe=probe)
    assert light.evaluating.lm_calls == 4 * 2 * 10 * 4  # agents, instructions, questions, calls a question
    assert light.proposing.lm_calls == 4
