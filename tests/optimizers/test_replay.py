"""Runs with recorded or other replies: nothing is asked twice, and only what a change reaches is asked again."""

from __future__ import annotations

import dspy

from polyhop.optimizers.replay import Replay, shortened
from polyhop.signatures import NumberedPassage, NumberedPassages

from .towns import example, prism


def test_a_run_is_recorded_in_order_and_replayed_without_a_call() -> None:
    program, script = prism()
    replay = Replay(program)
    first = replay.run(example())
    assert [call.role for call in first.calls] == script.order == ["analyzer", *["selector", "adder"] * 2, "answerer"]
    again = replay.run(example(), first.replies)
    assert (again.asked, len(script.order)) == (0, 6)
    assert first.prediction is not None
    assert again.prediction is not None
    assert again.prediction.answer == first.prediction.answer == "Aldea"


def test_only_what_a_change_reaches_is_asked_again() -> None:
    program, script = prism()
    replay = Replay(program)
    first = replay.run(example())
    other = dspy.Prediction(keep=["1s2"])

    run = replay.run(example(), first.replies, lambda call: other if call.role == "selector" else None)
    assert script.order[6:] == ["adder", "adder", "answerer"]  # the analyzer was not reached
    assert run.asked == 3
    assert run.prediction is not None
    assert run.prediction.answer == "unknown"


def test_equal_calls_of_one_run_are_told_apart() -> None:
    class Twice(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.guess = dspy.Predict("question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            one, two = self.guess(question=question), self.guess(question=question)
            return dspy.Prediction(answer=f"{one.answer} {two.answer}")

    replies = dspy.utils.DummyLM([{"answer": "heads"}, {"answer": "tails"}])
    program = Twice()
    program.set_lm(replies)
    asked = dspy.Example(question="q", answers=("heads tails",)).with_inputs("question")
    replay = Replay(program)
    first = replay.run(asked)
    again = replay.run(asked, first.replies)
    assert again.prediction is not None
    assert (again.prediction.answer, again.asked) == ("heads tails", 0)


def test_a_demo_shows_what_is_cited_and_two_other_passages() -> None:
    passages = [NumberedPassage(number=n, title=f"T{n}", sentences={1: "Some text."}) for n in range(1, 9)]
    inputs = {"question": "Who?", "selected": ["5s1"], "candidates": NumberedPassages(passages=passages)}
    shown = shortened(inputs, {"keep": ["7s1"]})
    assert shown["question"] == "Who?"
    assert [n for n in range(1, 9) if f"[{n}] T{n}" in shown["candidates"]] == [1, 2, 5, 7]
