"""A fast program and model that every stage of an optimization can improve.

As a script it runs an optimization in a folder, with DSPy's cache on disk: ``tiny.py RUN CACHE LOG``.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from hashlib import blake2b
from pathlib import Path
from typing import Any

import dspy
from dspy import lm15

from polyhop.data.sample import SubQuestion
from polyhop.programs.complexity import ComplexityEstimator
from polyhop.programs.exemplars import Exemplars
from polyhop.programs.prediction import conclude
from polyhop.programs.program import Program
from polyhop.programs.run import current, record
from polyhop.programs.trace import Answered, Decomposed, Recalled
from polyhop.programs.tunable import choice, integer


class Plan(dspy.Signature):
    """Take the question apart."""

    question: str = dspy.InputField()
    sub_questions: list[str] = dspy.OutputField()


class Answer(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField()
    effort: int = dspy.InputField()
    style: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Tiny(Program):
    """Two calls a question; the best effort is 7, the best style is "terse"."""

    def __init__(self) -> None:
        super().__init__()
        self.exemplars = Exemplars(memory=(), count=0)
        self.effort = integer(3, 1, 10)
        self.style = choice("florid", ("florid", "terse"))
        self.planner = dspy.Predict(Plan)
        self.answerer = dspy.Predict(Answer)

    def forward(self, question: str) -> dspy.Prediction:
        shown = self.exemplars(question, ComplexityEstimator()(question))
        record(Recalled(tuple(exemplar.question for exemplar in shown)))
        current().trace.calls += 2
        demos = [
            dspy.Example(question=exemplar.question, sub_questions=list(exemplar.sub_questions)) for exemplar in shown
        ]
        plan = self.planner(question=question, demos=[*self.planner.demos, *demos])
        record(Decomposed(tuple(plan.sub_questions)))
        reply = self.answerer(question=question, effort=self.effort.value, style=self.style.value)
        record(Answered(reply.answer, "", 1.0))
        return conclude(reply.answer, 1.0, stop="answered")


class Engine:
    """Right if the effort is enough for the question and not too much; demos make every question easier.

    Attributes:
        calls: The number of requests; each is also a line of ``log``.
    """

    def __init__(self, log: Path | None = None) -> None:
        self.calls, self.log, self._lock = 0, log, threading.Lock()

    def __reduce__(self) -> Any:
        """In a worker process."""
        return Engine, (self.log,)

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            self.calls += 1
            if self.log:
                with self.log.open("a") as file:
                    file.write(blake2b(str(request).encode(), digest_size=8).hexdigest() + "\n")
        text = "".join(part.text for part in request.messages[-1].parts)
        question = text.partition("[[ ## question ## ]]\n")[2].partition("\n")[0]
        demos = sum(message.role == "assistant" for message in request.messages)
        if "effort" in text:
            effort = int(re.findall(r"effort ## \]\]\n(\d+)", text)[0])
            hard = difficulty(question) + ("florid" in text) - 2 * min(demos, 2)
            answer = ANSWERS[question] if hard <= effort <= 7 else "unknown"
            reply = f"[[ ## answer ## ]]\n{answer}"
        else:
            reply = f"[[ ## sub_questions ## ]]\n{json.dumps([question, 'Which #1?'][: 1 + min(demos, 1)])}"
        return lm15.Response(
            id="1",
            model=request.model,
            message=lm15.Message.assistant(reply + "\n\n[[ ## completed ## ]]"),
            usage=lm15.Usage(input_tokens=len(text) // 4, output_tokens=len(reply) // 4),
            finish_reason="stop",
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        return self


def difficulty(question: str) -> int:
    """From 1 to 8."""
    return 1 + blake2b(question.encode(), digest_size=1).digest()[0] % 8


def examples(start: int, count: int) -> list[dspy.Example]:
    """Made-up questions with gold plans."""
    return [
        dspy.Example(
            id=str(n),
            question=f"What is the number after {n}?",
            answers=[str(n + 1)],
            hops=2,
            sub_questions=(
                SubQuestion(f"What is {n}?", str(n), None),
                SubQuestion("What is the number after #1?", str(n + 1), None),
            ),
        ).with_inputs("question")
        for n in range(start, start + count)
    ]


ANSWERS = {example.question: example.answers[0] for example in examples(0, 1_000)}


def make(engine: Any, cache: bool = False) -> Tiny:
    program = Tiny()
    program.set_lm(dspy.LM("tiny/model", engine=engine, cache=cache))
    return program


if __name__ == "__main__":
    from polyhop.optimizers.optimize import optimize
    from polyhop.optimizers.settings import OptimizationSettings, Splits

    run, cache, log = map(Path, sys.argv[1:4])
    dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(cache))
    optimize(
        make(Engine(log), cache=True),
        Splits(examples(0, 16), examples(100, 16), examples(200, 8)),
        run,
        OptimizationSettings(metric="answer_em", optimizer="dspy:BootstrapFewShot", trials=5, seed=3, threads=2),
    )
