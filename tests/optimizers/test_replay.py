"""Runs with recorded or other replies: nothing is asked twice, and only what a change reaches is asked again."""

from __future__ import annotations

import re

import dspy

from polyhop.eval.oracle import GoldReplies
from polyhop.optimizers.replay import Replay, shortened
from polyhop.programs import ParRag
from polyhop.signatures import NumberedPassage, NumberedPassages

from ..programs.scripted import lm, scripted
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


class Notes(dspy.Module):
    """Shows its agent what it has said so far."""

    def __init__(self) -> None:
        super().__init__()
        self.guess = dspy.Predict("said: list[str] -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        said: list[str] = []
        for _ in range(2):
            said.append(self.guess(said=said).answer)
        return dspy.Prediction(answer=said[-1])


def test_inputs_are_recorded_as_they_were_shown() -> None:
    program, asked = Notes(), dspy.Example(question="q").with_inputs("question")
    program.set_lm(dspy.utils.DummyLM([{"answer": "heads"}, {"answer": "tails"}] * 2))
    assert [call.inputs["said"] for call in Replay(program).run(asked).calls] == [[], ["heads"]]


def test_parallel_agents_are_replayed_too() -> None:
    script = scripted(
        planner={
            "steps": [{"thought": "", "question": "Who wrote Book 0?"}, {"thought": "", "question": "Who is it?"}]
        },
        step_answerer={"cited": ["1s1"], "answer": "Writer 0"},
    )
    program = ParRag()
    program.set_lm(lm(script))
    replay = Replay(program)
    first = replay.run(example())
    asked = len(script.order)
    assert asked > 5
    assert replay.run(example(), first.replies).asked == 0
    assert len(script.order) == asked


def test_a_demo_shows_what_is_cited_and_two_other_passages() -> None:
    passages = [NumberedPassage(number=n, title=f"T{n}", sentences={1: "Some text."}) for n in range(1, 9)]
    inputs = {"question": "Who?", "selected": ["5s1"], "candidates": NumberedPassages(passages=passages)}
    shown = shortened(inputs, {"keep": ["7s1"]})
    assert shown["question"] == "Who?"
    assert [n for n in range(1, 9) if f"[{n}] T{n}" in shown["candidates"]] == [1, 2, 5, 7]


def test_a_perfect_search_returns_the_gold_passages_first_and_none_twice() -> None:
    asked = example()
    program, script = prism()
    program.search.k.value = 3
    oracle = GoldReplies(asked)
    run = Replay(program, perfect_search=True).run(asked, oracle=oracle)
    shown = re.findall(r"^\[\d+\] (.+)$", script.asked("selector")[0].inputs["candidates"], re.MULTILINE)
    assert run.prediction is not None
    assert set(shown[:2]) == {page.title for page in oracle.pages.values() if page}
    assert len(shown) == len(set(shown)) == 3
