"""What ends late has failed, however late it is looked at."""

from __future__ import annotations

from typing import Any

import dspy

from polyhop.data.passages import Evidence, Passage
from polyhop.engines.costs import Ledger
from polyhop.eval.run import QuestionTask
from polyhop.programs import Program

from ..conftest import Parrot
from .small import Fake, examples


def test_a_late_result_is_a_timeout_even_if_it_waits_to_be_read() -> None:
    record = QuestionTask(Fake(seconds=0.05), timeout=0.01).ask(0, examples("a")[0], Ledger())
    assert record.error is not None
    assert (record.error.cause, record.answer) == ("timeout", None)


def test_the_calls_of_a_question_are_not_kept_by_dspy() -> None:
    """Its trace would grow to 10,000 calls, with all that they read."""

    class Answers(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = dspy.Predict("question -> answer")
            self.answer.set_lm(dspy.LM("parrot", engine=Parrot('{"answer": "x"}'), cache=False))

        def forward(self, question: str) -> dspy.Prediction:
            return self.answer(question=question)

    with dspy.context(trace=[], adapter=dspy.JSONAdapter()):
        record = QuestionTask(Answers()).ask(0, examples("a")[0], Ledger())
        assert (record.answer, dspy.settings.trace) == ("x", [])


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
