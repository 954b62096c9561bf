"""Any DSPy program, asked as polyhop's own: its inputs, its trace, and what it does not return."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Passage
from polyhop.data.pool import PassagePool
from polyhop.eval.gold import ProgramOutput
from polyhop.eval.run import evaluate
from polyhop.programs import Agent, Search
from polyhop.programs.program import ask, completed, inputs_of
from polyhop.programs.trace import Replied

MILL = Passage.of("Kestrel Mill", "Ada Berg owns it.", id="mill")
POOL = PassagePool([MILL])
REPLY = "[[ ## query ## ]]\nmill\n\n[[ ## answer ## ]]\nAda Berg"


def forwarding(forward: Any) -> dspy.Module:
    return type("Made", (dspy.Module,), {"forward": forward})()


def example(**given: Any) -> dspy.Example:
    inputs = [name for name in given if name != "answer"]
    return dspy.Example(**given).with_inputs(*inputs)


@pytest.mark.parametrize(
    ("program", "given", "taken"),
    [
        (forwarding(lambda self, question: None), {"question": "a", "pool": None}, {"question": "a"}),
        (forwarding(lambda self, question, k=3: None), {"question": "a", "pool": None}, {"question": "a"}),
        (forwarding(lambda self, pool, question=1: None), {"question": "a", "pool": 2}, {"question": "a", "pool": 2}),
        (forwarding(lambda self, question: None), {"question": "a", "pool": 2}, {"question": "a"}),
        (forwarding(lambda self, topic: None), {"question": "a"}, {"topic": "a"}),
        (forwarding(lambda self, claim, depth: None), {"claim": "a", "depth": 2}, {"claim": "a", "depth": 2}),
        (forwarding(lambda self, **inputs: None), {"claim": "a"}, {"claim": "a"}),
        (dspy.ChainOfThought("topic -> answer"), {"question": "a", "pool": None}, {"topic": "a"}),
        (dspy.ReAct("claim -> titles", tools=[]), {"claim": "a"}, {"claim": "a"}),
    ],
)  # fmt: skip
def test_inputs(program: dspy.Module, given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert inputs_of(program, example(**given)) == taken


def test_an_input_that_a_question_lacks_is_named() -> None:
    with pytest.raises(PolyhopError, match="Made takes question, context; the question has no 'context', but question"):
        inputs_of(forwarding(lambda self, question, context: None), example(question="a"))
    unmarked = dspy.Example(question="a", answer="b")
    assert inputs_of(forwarding(lambda self, question: None), unmarked) == {"question": "a"}


class Mixed(dspy.Module):
    """A plain predictor, an Agent and a Search of polyhop's in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.search = Search(POOL)
        self.scout = dspy.Predict("question -> query")
        self.respond = Agent("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        self.search(self.scout(question=question).query)
        return dspy.Prediction(answer=self.respond(question=question).answer)


def test_the_trace_of_any_program(parrot: Any) -> None:
    with dspy.context(lm=parrot(REPLY)):
        found = ask(Mixed(), example(question="Who owns the mill?"))
    assert (found.trace.lm_calls, found.trace.searches) == (2, 1)
    assert [step for step in found.trace.steps if isinstance(step, Replied)] == [Replied("scout", (("query", "mill"),))]
    assert found.ranking == (MILL,)
    assert ProgramOutput.of(found).returned == {"answer", "ranking"}
    shown = completed(found)
    assert (shown.answer, shown.evidence, shown.ranking, shown.confidence) == ("Ada Berg", (), (MILL,), None)


@pytest.mark.parametrize(
    ("fields", "returned", "answer"),
    [
        ({"answer": 7}, {"answer"}, "7"),
        ({"titles": ["Kestrel Mill"]}, set(), ""),
        ({"answer": "x", "evidence": "some text", "ranking": ["Kestrel Mill"]}, {"answer"}, "x"),
        ({"answer": "x", "evidence": [Evidence(MILL)], "ranking": []}, {"answer", "evidence", "ranking"}, "x"),
    ],
)
def test_what_is_returned(fields: dict[str, Any], returned: set[str], answer: str) -> None:
    found = ask(forwarding(lambda self, question: dspy.Prediction(**fields)), example(question="a"))
    output = ProgramOutput.of(found)
    assert (set(output.returned), output.answer) == (returned, answer)


def test_a_failure_does_not_make_scores_of_what_is_not_returned() -> None:
    def forward(self: Any, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=str(1 // len(question[1:])))

    questions = [
        example(question=text, answer="1", gold=["Kestrel Mill"]).with_inputs("question") for text in ("a", "ab")
    ]
    summary = evaluate(forwarding(forward), questions)
    assert (summary["metrics"]["answer_em"], summary["counts"]["failed"]) == (0.5, 1)
    assert summary["not_returned"] == ["evidence", "ranking"]
    assert not {"evidence_f1", "joint_f1", "passage_mrr"} & summary["metrics"].keys()
