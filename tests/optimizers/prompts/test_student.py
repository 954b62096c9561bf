"""The copy that optimizers work on: traces of every agent, also in threads, and short demos."""

from __future__ import annotations

import re
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.eval import metrics
from polyhop.optimizers.prompts import optimize_prompts
from polyhop.optimizers.prompts.student import prepared, shortened, transplanted
from polyhop.programs import Kair, ParRag, Prism
from polyhop.programs.agent import Agent
from polyhop.programs.candidates import Candidates

from ...programs.scripted import Script, lm, scripted
from .world import players, program, questions, writer

METRIC = metrics.answer_em


def rendered(predictor: dspy.Predict) -> list[str]:
    """The demos as the model would read them."""
    inputs = dict.fromkeys(predictor.signature.input_fields, "")
    messages = dspy.ChatAdapter().format(predictor.signature, predictor.demos, inputs)
    return [message["content"] for message in messages[1:-1]]


def parallel() -> Script:
    """Two parallel steps, each reviewed by two parallel judges."""
    return scripted(
        planner={"steps": [{"thought": "", "question": "Who wrote it?"}, {"thought": "", "question": "Who was born?"}]},
        step_answerer={"cited": ["1s1"], "answer": "somebody"},
        answerer={"reasoning": "So it is.", "answer": "Aldea", "confidence": 0.9},
    )


def test_parallel_agents_get_demos() -> None:
    student = ParRag()
    student.set_lm(lm(parallel()))
    result = optimize_prompts("bootstrap", student, questions(1, 0), [], METRIC, numbers={"demos": 1})
    shown = {name: rendered(predictor) for name, predictor in result.named_predictors()}
    assert shown["refiner"] == shown["review.reviser"] == []
    for name in ("planner", "step_answerer", "review.accuracy_judge", "review.attribution_judge", "answerer"):
        assert len(shown[name]) == 2, name
    assert "[[ ## sources ## ]]\n[1] " in shown["step_answerer"][0]
    assert shown["step_answerer"][1].startswith('[[ ## cited ## ]]\n["1s1"]')
    assert shown["review.attribution_judge"][1].startswith("[[ ## attribution ## ]]\nattributable")


def test_competing_agents_get_demos() -> None:
    script = scripted(
        querier={"queries": ["the author"]},
        updater={
            "new_facts": ["Book 0 was written by Writer 0. (1s2)"],
            "contradicted": [],
            "gaps": ["Where was Writer 0 born?"],
        },
        filterer={"spans": ["1s2 It was written by Writer 0."]},
        answerer={"reasoning": "So it is.", "answer": "Aldea", "confidence": 0.9},
    )
    student = Kair(agents=3, steps=2)
    student.set_lm(lm(script))
    result = optimize_prompts("bootstrap", student, questions(1, 0), [], METRIC, numbers={"demos": 1})
    assert {name for name, predictor in result.named_predictors() if rendered(predictor)} == {
        "querier", "updater", "checker", "filterer", "answerer"
    }  # fmt: skip


def test_a_demo_has_the_passages_it_cites_and_a_few_others() -> None:
    candidates = Candidates(Passage.of(f"Title {n}", f"Text {n}.", id=str(n)) for n in range(1, 21))
    inputs: dict[str, Any] = {
        "question": "Who wrote 5 books in 1975?",
        "candidates": candidates.show(),
        "selected": ["9s1"],
    }
    kept = shortened(inputs, {"keep": ["12s1", "3"], "reasoning": "As in [15s1]; #7 and 18.5 are no ids."})
    assert kept["selected"] == ["9s1"]
    assert re.findall(r"^\[(\d+)\] Title", kept["candidates"], re.MULTILINE) == ["1", "2", "3", "5", "9", "12", "15"]
    assert len(inputs["candidates"].passages) == 20


def test_bootstrapped_demos_are_short() -> None:
    extra = tuple(Passage.of(f"Other {n}", f"Nothing of interest {n}.", id=f"other{n}") for n in range(15))
    example = questions(1, 0)[0]
    example.pool = (*example.pool, *extra)
    script = players()
    result = optimize_prompts("bootstrap", program(script), [example], [], METRIC, numbers={"demos": 1})
    assert script.asked("selector")[0].inputs["candidates"].count("[") == 18
    (demo,) = result.selector.demos
    assert demo.candidates.count("\n[") + 1 == 4
    assert demo.keep == ["1s2", "2s1"]


REPEATED = """
from polyhop.data.sample import load_sample, sample_passages
from polyhop.data.pool import PassagePool
from polyhop.engines.models import language_model
from polyhop.eval import metrics
from polyhop.optimizers.prompts import optimize_prompts
from polyhop.programs import Prism

program = Prism(PassagePool(sample_passages()), stop="fixed")
program.set_lm(language_model())
numbers = {"demos": 3, "train": 6}
result = optimize_prompts("bootstrap", program, load_sample("train"), [], lambda *_: True, numbers=numbers)
print([predictor.demos for predictor in result.predictors()])
"""


@pytest.mark.slow
def test_every_process_chooses_the_same_demos(printed: Any) -> None:
    """DSPy draws among several demos of a question by the hash of their pickle."""
    assert len(printed(REPEATED)) == 1


def test_a_copy_keeps_its_models_when_it_is_reset() -> None:
    first, second = lm(players()), lm(players())
    student = program(players())
    student.set_lm(first)
    student.answerer.lm = second
    copy = prepared(student).reset_copy()
    assert [predictor.lm for predictor in copy.predictors()] == [first, first, first, second]
    assert [type(predictor) for predictor in student.predictors()] == [Agent] * 4


def test_an_agent_without_a_model_uses_the_configured_one() -> None:
    student, model = Prism(), lm(players())
    with dspy.context(lm=model):
        copy = prepared(student)
    assert all(predictor.lm is model for predictor in copy.predictors())
    assert all(predictor.lm is None for predictor in transplanted(student, copy).predictors())


def test_only_instructions_and_demos_are_transplanted() -> None:
    student = program(players())
    copy = prepared(student)
    copy.rounds.value = 5
    copy.answerer.demos = [{"question": "Who?", "answer": "Ann"}, {}]
    copy.analyzer.signature = copy.analyzer.signature.with_instructions("Split it.").with_updated_fields(
        "sub_questions", prefix="Parts:"
    )
    copy.candidate_programs = [prepared(student)]
    result = transplanted(student, copy)
    assert result.rounds.value == 1
    assert [dict(demo) for demo in result.answerer.demos] == [{"question": "Who?", "answer": "Ann"}]
    assert result.analyzer.signature.instructions == "Split it."
    assert result.analyzer.signature.fields["sub_questions"].json_schema_extra["prefix"] == "Sub Questions:"
    assert result.selector.signature is student.selector.signature
    assert not hasattr(result, "candidate_programs")


@pytest.mark.parametrize("name", ["bootstrap", "random_search", "mipro"])
def test_any_dspy_program_can_be_optimized(name: str) -> None:
    class Own(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.think = dspy.ChainOfThought("question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            return self.think(question=question)

    script = scripted(answerer={"reasoning": "As always.", "answer": "Aldea"})
    script.replies["other"] = [{}]
    trainset = [dspy.Example(question=f"Where is {n}?", answer="Aldea").with_inputs("question") for n in range(4)]
    student = Own()
    student.set_lm(lm(script))

    def metric(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> bool:
        return bool(example.answer == prediction.answer)

    result = optimize_prompts(
        name, student, trainset, trainset, metric, numbers={"demos": 1}, prompt_model=lm(writer())
    )
    assert type(result) is Own
    if name == "bootstrap":
        assert [demo.answer for demo in result.think.predict.demos] == ["Aldea"]
