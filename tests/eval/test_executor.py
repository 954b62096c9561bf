"""What ends late has failed, however late it is looked at."""

from __future__ import annotations

import time
from typing import Any

import dspy

from polyhop.data.passages import Evidence, Passage
from polyhop.engines.costs import Ledger
from polyhop.eval.executor import Job, QuestionTask, Window
from polyhop.programs import Program


def task(seconds: float) -> Job[str]:
    def work() -> str:
        time.sleep(seconds)
        return "answer"

    return Job(work=work, timed_out=lambda: "timeout", abandon=lambda: None)


def test_a_late_result_is_a_timeout_even_if_it_waits_to_be_read() -> None:
    window: Window[str] = Window(2, timeout=1.0)
    window.start(task(1.5))
    window.start(task(0.0))
    time.sleep(2.0)  # both have ended by now
    assert sorted([window.next(), window.next()]) == ["answer", "timeout"]
    assert not window.busy


class Reader(Program):
    """Answers with the number of gold sentences that it is given."""

    def forward(self, question: str, pool: Any = None, gold: list[Evidence] | None = None) -> dspy.Prediction:
        return dspy.Prediction(answer="none" if gold is None else f"{len(gold)} of {len(pool)}", evidence=gold or ())


class Knowing(Reader):
    reads_gold = True


def test_only_a_program_that_says_so_gets_the_gold_evidence() -> None:
    pool = (Passage.of("A", sentences=["One.", "Two."], id="a"), Passage.of("B", "Three.", id="b"))
    asked = dspy.Example(question="Which?", answers=("x",), pool=pool, gold_facts=[("a", 1)])
    for program, answer in ((Reader(), "none"), (Knowing(), "1 of 2")):
        record = QuestionTask(program).ask(0, asked.with_inputs("question", "pool"), Ledger())
        assert record.answer == answer
    assert record.scores["fact_f1"] == 1.0
    lost = dspy.Example(question="Which?", answers=("x",), pool=pool, gold_facts=[("c", 0)])
    record = QuestionTask(Knowing()).ask(0, lost.with_inputs("question", "pool"), Ledger())
    assert record.error is not None
    assert "lack one of them" in record.error.message
