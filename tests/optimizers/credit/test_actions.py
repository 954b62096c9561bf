"""What one call is worth, against other replies at the same place."""

from __future__ import annotations

from math import isnan
from typing import Any

import dspy
import pytest

from polyhop.eval.metrics import answer_f1
from polyhop.optimizers.credit import CallCredit, credit
from polyhop.programs import C3PO

from ...programs.scripted import Request, answer, lm, scripted
from .world import GOLD, example, prism


def by_source(found: CallCredit) -> dict[str, list[float]]:
    return {action.source: action.scores for action in found.actions}


def test_a_good_reply_has_an_advantage_over_bad_ones() -> None:
    def keep(request: Request) -> dict[str, Any]:
        return next(replies)

    replies = iter([{"keep": GOLD}, {"keep": GOLD}, *[{"keep": ["1s2"]}] * 50])
    program, _ = prism(selector=keep)
    found = credit(program, example(), answer_f1, width=1, references=())
    (selector, *_) = (each for each in found if each.call.role == "selector")
    assert by_source(selector) == {"own": [1.0], "sample": [0.0]}
    assert selector.advantage().mean == 1.0
    assert isnan(selector.advantage().low)  # one run each
    assert selector.advantage(1).mean == -1.0


def test_equal_replies_count_once_and_have_no_advantage() -> None:
    program, _ = prism()
    for found in credit(program, example(), answer_f1, references=()):
        assert [action.source for action in found.actions] == ["own"]
        assert isnan(found.advantage().mean)


def test_references_and_depth() -> None:
    program, script = prism(answerer=answer("Paris"))
    found = credit(program, example(), answer_f1, width=4, shrink=0.5, references=("gold", "absent"))
    assert [each.depth for each in found] == list(range(len(found)))
    assert by_source(found[-1]) == {"own": [0.0], "gold": [1.0], "absent": [0.0]}
    assert len(script.asked("analyzer")) == 1 + 4  # its own reply and four samples
    with pytest.raises(ValueError, match="'gold' or 'absent'"):
        credit(program, example(), references=("best",))


def test_choices_are_enumerated_and_not_sampled() -> None:
    script = scripted(router={"route": "direct", "query": "none"}, answerer=answer("Aldea"))
    program = C3PO()
    program.set_lm(lm(script))
    router = credit(program, example(), answer_f1, references=())[0]
    routes = [action.reply.route for action in router.actions]
    assert (router.call.role, routes) == ("router", ["direct", "single", "plan"])
    assert len(script.asked("router")) == 1


def test_several_runs_give_an_interval() -> None:
    sampled = iter([0.0, 1.0] * 100)

    def guess(request: Request) -> dict[str, Any]:
        return answer("Aldea" if next(sampled) else "Paris")

    program, _ = prism(answerer=guess)
    (selector, *_) = (
        each
        for each in credit(program, example(), answer_f1, runs=4, references=("absent",))
        if each.call.role == "selector"
    )
    found = selector.advantage()
    assert found.low < found.mean < found.high


def test_a_program_that_fails_has_no_credit() -> None:
    program, _ = prism(answerer=[ValueError("no")])
    assert credit(program, example(), answer_f1) == []


def test_any_program_can_be_credited() -> None:
    program = dspy.Predict("question -> answer")
    program.set_lm(dspy.utils.DummyLM([{"answer": "a"}, {"answer": "b"}, {"answer": "c"}, {"answer": "d"}]))
    asked = dspy.Example(question="q", answers=("b",)).with_inputs("question")
    (found,) = credit(program, asked, answer_f1, width=2)
    assert by_source(found)["own"] == [0.0]
    assert max(action.value for action in found.actions) == 1.0
