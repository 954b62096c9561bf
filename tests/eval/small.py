"""A small deterministic program, questions that control its behaviour, and a question of two hops."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dspy

from polyhop.data.passages import Evidence, Fact, Hit, Passage
from polyhop.data.sample import SubQuestion
from polyhop.eval.folder import read_records
from polyhop.programs.prediction import conclude, read_answer
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Trace

PASSAGE = Passage.of("Paris", sentences=["Paris is a city.", "It is in France."], id="paris")
OTHER = Passage.of("Rome", sentences=["Rome is a city."], id="rome")
FILM = Passage.of("Solaris", sentences=["Solaris is a film.", "Andrei Tarkovsky directed it."], id="film")
DIRECTOR = Passage.of("Andrei Tarkovsky", sentences=["He was a director.", "He was born in Zavrazhye."], id="director")
NOISE = Passage.of("Solaris (novel)", sentences=["A novel by Lem."], id="noise")
SOLARIS = dspy.Example(
    question="Where was the director of Solaris born?",
    answers=("Zavrazhye", "Zavrazhye village"),
    gold_passages=("film", "director"),
    gold_facts=(Fact("film", 1), Fact("director", 1)),
    sub_questions=(
        SubQuestion("Who directed Solaris?", "Andrei Tarkovsky", "film"),
        SubQuestion("Where was #1 born?", "Zavrazhye", "director"),
    ),
).with_inputs("question")


class Fake(dspy.Module):
    """Finds the passage and its second sentence and answers France, except for special questions."""

    def __init__(self, special: Mapping[str, Callable[[], Any]] | None = None, seconds: float = 0.0) -> None:
        super().__init__()
        self.special = dict(special or {})
        self.seconds = seconds
        self.asked: list[str] = []

    def forward(self, question: str) -> dspy.Prediction:
        self.asked.append(question)
        time.sleep(self.seconds)
        answer = "France"
        if question in self.special:
            instead = self.special[question]()
            if instead is not None and not isinstance(instead, str):
                return instead
            answer = instead or answer
        hits = [Hit(PASSAGE, 2.0, 1), Hit(OTHER, 1.0, 2)]
        reply = dspy.Prediction(answer=answer, reasoning="", confidence=1.0)
        with running(Run(trace=Trace(calls=1), seen=hits)):
            return conclude(*read_answer(reply), evidence=[Evidence(PASSAGE, 1)], stop="fake")


def examples(questions: list[str] | str) -> list[dspy.Example]:
    return [
        dspy.Example(
            id=f"id-{question}",
            question=question,
            answers=("France",),
            gold_passages=("paris",),
            gold_facts=(Fact("paris", 0), Fact("paris", 1)),
            hops=1 + n % 3,
            kind="bridge" if n % 2 else "comparison",
        ).with_inputs("question")
        for n, question in enumerate(questions)
    ]


def read_lines(run: Path) -> Iterator[dict[str, Any]]:
    """The records of a run as they are written."""
    return (record.model_dump(mode="json", exclude_unset=True) for record in read_records(run))


def numbered(count: int) -> list[dspy.Example]:
    return examples([f"question {n}" for n in range(count)])


def mixed(count: int) -> dict[str, Callable[[], Any]]:
    """Every third answer wrong, every seventh question failed."""

    def fail() -> None:
        raise ValueError("no luck")

    wrong = {f"question {n}": lambda: "the wrong country" for n in range(0, count, 3)}
    return {**wrong, **{f"question {n}": fail for n in range(0, count, 7)}}


def main(out: str, count: str, seconds: str, threads: str) -> None:
    """A run in its own process, to be killed."""
    from polyhop.eval.run import evaluate

    print("ready", flush=True)
    evaluate(Fake(mixed(int(count)), float(seconds)), numbered(int(count)), Path(out), threads=int(threads))


if __name__ == "__main__":
    main(*sys.argv[1:])
