"""GEPA reflects on the agent that errs, and reads the passages that matter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.eval import metrics
from polyhop.optimizers.prompts import optimize_prompts
from polyhop.optimizers.prompts.reflection import MostFaults
from polyhop.programs import Prism

from ...programs.scripted import Script, lm
from .world import instructions, players, program, questions, writer

NUMBERS = {"runs": 40, "val": 4}


def crowded(asked: list[dspy.Example]) -> list[dspy.Example]:
    """Questions with many passages that do not matter."""
    noise = [Passage.of(f"Stone {n}", sentences=[f"Stone {n} is hard."], id=f"noise{n}") for n in range(15)]
    return [each.copy(pool=[*each.pool, *noise]) for each in asked]


@pytest.fixture(scope="module")
def reflected() -> tuple[dspy.Module, Script]:
    """Only the answerer errs, the last of four agents."""
    pen = writer()
    arguments: dict[str, Any] = {"numbers": NUMBERS, "prompt_model": lm(pen)}
    train, val = crowded(questions(3, 5)), crowded(questions(1, 3))
    return optimize_prompts("gepa", program(players()), train, val, metrics.answer_em, **arguments), pen


def test_every_reflection_goes_to_the_agent_with_the_faults(reflected: tuple[dspy.Module, Script]) -> None:
    better, pen = reflected
    changed = [name for name, text in instructions(better).items() if text != instructions(Prism())[name]]
    assert changed == ["answerer"]
    assert pen.requests
    assert all(
        "sub-questions over the evidence" in request.prompt or "abracadabra" in request.prompt
        for request in pen.requests
    )
    assert 'The answer \\"somewhere\\" is wrong: expected' in pen.requests[0].prompt


def test_the_prompt_model_reads_only_the_passages_that_matter() -> None:
    def careless(request: Any) -> dict[str, Any]:
        return {"keep": [request.inputs["candidates"].split("] Stone")[0][-2:].strip("[") + "s1"]}

    script, pen = players(), writer()
    script.replies["selector"] = [careless]
    arguments: dict[str, Any] = {"numbers": {"runs": 12, "val": 2, "train": 3}, "prompt_model": lm(pen)}
    optimize_prompts(
        "gepa", program(script), crowded(questions(4, 0)), crowded(questions(2, 0)), metrics.fact_f1, **arguments
    )
    prompt = pen.requests[0].prompt
    assert "keep left out" in prompt
    assert prompt.count("is hard.") < 4 * 6  # of the 15 in each of the three questions
    assert "Book" in prompt


def test_agents_take_turns_where_no_fault_is_known() -> None:
    prism = Prism()
    choose = MostFaults(prism)
    names = [name for name, _ in prism.named_predictors()]
    state = SimpleNamespace(named_predictor_id_to_update_next_for_program_candidate=[0], list_of_named_predictors=names)
    candidate = dict.fromkeys(names, "")
    chosen = [choose(state, [], [], 0, candidate) for _ in range(5)]
    assert chosen == [[name] for name in [*names, names[0]]]


def test_relations_of_wikidata_are_put_in_words() -> None:
    def related(asked: dspy.Example) -> dspy.Example:
        first, second = asked.sub_questions
        book = first.question.split("wrote ")[1].rstrip("?")
        steps = first._replace(question=f"{book} >> author"), second._replace(question="#1 >> place of birth")
        return asked.copy(sub_questions=steps)

    def careless(request: Any) -> dict[str, Any]:
        book = request.inputs["question"].split("author of ")[1].split(" ", 1)[1].split(" born")[0]
        return {"sub_questions": [f"Who is the author of {book}?"]}

    script, pen = players(), writer()
    script.replies["analyzer"] = [careless]
    train, val = ([related(each) for each in questions(easy, 2)] for easy in (2, 1))
    arguments: dict[str, Any] = {"numbers": {"runs": 14, "val": 2, "train": 4}, "prompt_model": lm(pen)}
    optimize_prompts("gepa", program(script), train, val, metrics.answer_em, **arguments)
    prompts = [request.prompt for request in pen.requests if "These sub-questions" in request.prompt]
    assert prompts
    assert all("#1 Who is the author of Book" in prompt and "#2 Where was #1 born?" in prompt for prompt in prompts)
    assert not any(">>" in prompt for prompt in prompts)
