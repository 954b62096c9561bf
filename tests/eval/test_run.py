"""Running a program over questions: scores in order, failures recorded, nothing lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Evidence, Fact, Hit, Passage
from polyhop.eval.run import COSTS, METRICS, run, summarize
from polyhop.programs.prediction import conclude
from polyhop.programs.trace import Trace

PASSAGE = Passage.of("Paris", sentences=["Paris is a city.", "It is in France."], id="paris")
REPLY = dspy.Prediction(answer="France", reasoning="", confidence=1.0)


class Fake(dspy.Module):
    """Finds the passage and its second sentence, unless told otherwise for a question."""

    def __init__(self, special: dict[str, Callable[[], Any]] | None = None) -> None:
        super().__init__()
        self.special = special or {}

    def forward(self, question: str) -> dspy.Prediction:
        if question in self.special:
            self.special[question]()
        return conclude(REPLY, Trace(), evidence=[Evidence(PASSAGE, 1)], seen=[Hit(PASSAGE, 1.0, 1)], stop="fake")


def examples(questions: Sequence[str]) -> list[dspy.Example]:
    return [
        dspy.Example(
            id=f"id-{question}",
            question=question,
            answers=("France",),
            gold_passages=("paris",),
            gold_facts=(Fact("paris", 0), Fact("paris", 1)),
        ).with_inputs("question")
        for question in questions
    ]


def fail() -> None:
    raise ZeroDivisionError("over\nand over")


def test_a_right_answer_scores() -> None:
    (result,) = run(Fake(), examples(["a"]))
    assert result.failure is None
    assert result.answer == "France"
    scores = {name: result.values[name] for name in METRICS}
    assert scores == {**dict.fromkeys(METRICS, 1.0), "fact_f1": pytest.approx(2 / 3)}
    assert result.values["lm_calls"] == 1
    assert set(result.values) == {*METRICS, *COSTS}


@pytest.mark.parametrize("threads", [1, 4])
def test_a_failure_scores_zero_and_keeps_its_cause(threads: int) -> None:
    results = list(run(Fake({"b": fail}), examples("abcd"), threads))
    assert [result.question_id for result in results] == ["id-a", "id-b", "id-c", "id-d"]
    assert [result.failure for result in results] == [None, "ZeroDivisionError: over and over", None, None]
    summary = summarize(results)
    assert summary["answer_em"] == 0.75
    assert (summary["questions"], summary["failed"]) == (4, 1)


def test_threads_work_at_the_same_time() -> None:
    meet = threading.Barrier(3, timeout=10)
    results = list(run(Fake(dict.fromkeys("abc", meet.wait)), examples("abc"), threads=3))
    assert not any(result.failure for result in results)


def test_threads_inherit_the_settings_of_dspy() -> None:
    seen = []
    program = Fake({"a": lambda: seen.append(dspy.settings.lm)})
    with dspy.context(lm="the model"):
        list(run(program, examples("a"), threads=2))
    assert seen == ["the model"]


def test_what_is_no_exception_stops_the_run() -> None:
    class Spent(BaseException):
        pass

    def stop() -> None:
        raise Spent

    with pytest.raises(Spent):
        list(run(Fake({"b": stop}), examples("abc")))
