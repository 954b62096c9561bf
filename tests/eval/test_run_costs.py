"""What a run tells of its models: costs by agent, what happened on the way, why they failed; and no key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
from dspy import lm15

from polyhop.engines.costs import sum_costs
from polyhop.engines.replies import respond
from polyhop.eval.folder import RunRecord
from polyhop.eval.run import RunProgress, evaluate
from polyhop.eval.summary import summarize
from polyhop.programs import Agent, Program

from .small import examples

MODEL = "openai/gpt-4o-mini"
REPLY = {
    "sub_questions": '["Where is Paris?"]',
    "keep": '["1"]',
    "add": "[]",
    "required": "[]",
    "reasoning": "Because.",
    "answer": "France",
    "citations": "[]",
    "confidence": "1.0",
}
TEXT = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in REPLY.items()) + "\n\n[[ ## completed ## ]]"


class Player:
    """Plays every agent, after the errors that it is given."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return respond(request, TEXT)


class Pair(Program):
    """Two agents, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = Agent("question -> reasoning, answer"), Agent("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        self.one(question=question)
        return dspy.Prediction(answer=self.other(question=question).answer)


def test_dollars_are_told_for_all_or_not_at_all(tmp_path: Path) -> None:
    """One agent's price is known, the other's is not: a part of what it cost would look like all of it."""
    program = Pair()
    program.one.lm = dspy.LM("lexical", engine=Player(), cache=False)
    program.other.lm = dspy.LM("made/up", engine=Player(), cache=False)
    seen: list[RunProgress] = []
    summary = evaluate(program, examples("ab"), tmp_path / "run", on_progress=seen.append)
    assert "cost_usd" in summary["by_agent"]["one"]
    assert "cost_usd" not in summary["by_agent"]["other"]
    assert "cost_usd" not in summary["totals"]
    assert "cost_usd" not in summary["metrics"]
    assert not seen[-1].priced
    assert "cost_usd" not in sum_costs(summary["by_agent"].values())


def test_what_a_model_could_not_be_asked_is_not_paid_again(tmp_path: Path) -> None:
    """Replies that were good come from DSPy's cache when the question is asked again; bad ones do not."""
    engine = Player(lm15.AuthError("no key"))
    program = Pair()
    program.one.lm = dspy.LM("one", engine=(first := Player()))
    program.other.lm = dspy.LM("other", engine=engine, num_retries=0)
    assert evaluate(program, examples("a"), tmp_path / "run")["counts"]["failed"] == 1
    assert evaluate(program, examples("a"), tmp_path / "run", retry_failed=True)["counts"]["failed"] == 0
    assert (first.calls, engine.calls) == (1, 2)


def line(n: int, costs: dict[str, float] | None = None, /, **scores: float) -> RunRecord:
    nothing: dict[str, Any] = {
        "question": "?",
        "gold_answers": (),
        "gold": (),
        "answer": "a",
        "evidence": [],
        "ranking": [],
    }
    return RunRecord(n=n, id=str(n), scores=scores, costs={"seconds": 1.0, **(costs or {})}, **nothing)


def test_a_mean_cost_needs_the_price_of_every_question() -> None:
    priced, unpriced = line(0, {"cost_usd": 0.5}), line(1)
    assert summarize([priced, priced])["metrics"]["cost_usd"] == 0.5
    for some in ([priced, unpriced], [unpriced, priced]):
        assert "cost_usd" not in summarize(some)["metrics"]


def test_joint_f1_needs_one_unit_and_each_metric_says_how_many_questions_have_it() -> None:
    sentences, passages, neither = {"joint_f1": 1.0, "fact_f1": 1.0}, {"joint_f1": 0.5}, {"answer_f1": 1.0}
    assert "joint_f1" not in summarize([line(0, **sentences), line(1, **passages)])["metrics"]
    for same in (sentences, passages):
        summary = summarize([line(0, **same), line(1, **same), line(2, **neither)])
        assert summary["metrics"]["joint_f1"] == same["joint_f1"]
        assert (summary["scored"]["joint_f1"], summary["scored"]["answer_f1"]) == (2, 1)
