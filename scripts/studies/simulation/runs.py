"""The runs of a study: each design, on each set of questions, at each error rate, with each seed.

A run is an evaluation like any other, with a folder of its own: one that was stopped is taken up where it was, and one
that is finished is only read.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import active_children, get_context
from pathlib import Path

import dspy
import numpy as np

from ....data.errors import PolyhopError
from ....eval.questions import Questions
from ....eval.records import read_lines
from ....eval.run import evaluate
from .agents import Rates
from .designs import DESIGNS
from .engine import simulated_lm

VALUES = (
    "evidence_recall",
    "evidence_precision",
    "evidence_f1",
    "fact_f1",
    "answer_em",
    "lm_calls",
    "lm_calls_critical_path",
)
"""What the study keeps of a question; evidence is counted in passages."""


@dataclass(frozen=True)
class QuestionSet:
    """The questions of a benchmark with the contexts that it gives them.

    Attributes:
        limit: How many of them, at random; None for all.
    """

    dataset: str
    file: Path
    limit: int | None = None

    @classmethod
    def parse(cls, text: str, limit: int | None = None) -> QuestionSet:
        """
        Raises:
            ValueError: it is not DATASET:FILE.
        """
        dataset, _, file = text.partition(":")
        if not dataset or not file:
            raise ValueError(f"{text!r} is not DATASET:FILE")
        return cls(dataset, Path(file), limit)

    def read(self) -> Questions:
        """The questions, read from the file once in a process.

        Raises:
            PolyhopError: the file cannot be read, or a benchmark gives its questions no contexts.
        """
        return _held(self)


@dataclass(frozen=True)
class Condition:
    """One run of the study."""

    questions: QuestionSet
    rate: float
    design: str
    seed: int

    @property
    def name(self) -> str:
        """Of the run's folder."""
        return f"{self.questions.dataset}-{self.design}-rate-{self.rate:g}-seed-{self.seed}"


Values = dict[str, list[float]]
"""By name, one a question, in the order of the questions; NaN where a question has no such value."""


def play_all(conditions: Sequence[Condition], out: Path, jobs: int) -> Generator[tuple[Condition, Values], None, None]:
    """Play the conditions in some processes; each comes as it is finished.

    Raises:
        PolyhopError: a run cannot be made, or one of its questions has failed.
    """
    if jobs == 1:
        yield from ((condition, play(condition, out)) for condition in conditions)
        return
    before = set(active_children())
    # Not forked: the libraries have threads by now.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _ignore_interrupts) as pool:
        try:
            playing = {pool.submit(play, condition, out): condition for condition in conditions}
            for done in as_completed(playing):
                yield playing[done], done.result()
        except BaseException as error:
            for worker in set(active_children()) - before:
                worker.terminate()  # what it has done is in its run's folder
            if isinstance(error, BrokenProcessPool):
                raise PolyhopError("a worker was ended from outside: the same command goes on from there") from error
            raise


def play(condition: Condition, out: Path) -> Values:
    """Make a run, or what is left of it, and read its values."""
    questions, folder = condition.questions.read(), out / condition.name
    program = DESIGNS[condition.design].make()
    try:
        program.set_lm(simulated_lm(questions, Rates.alike(condition.rate), condition.seed))
    except ValueError as error:
        raise PolyhopError(f"{condition.questions.file}: {error}") from error
    evaluate(program, questions, folder, max_failures=1)
    lines = [line["scores"] | line["costs"] for line in read_lines(folder)]
    return {name: [line.get(name, np.nan) for line in lines] for name in VALUES}


class _Held(Questions):
    """Questions that stay in memory."""

    _examples: list[dspy.Example] | None = None

    def __iter__(self) -> Iterator[dspy.Example]:
        if self._examples is None:
            self._examples = list(super().__iter__())
        return iter(self._examples)


@cache
def _held(questions: QuestionSet) -> Questions:
    seed = None if questions.limit is None else 0
    held = _Held(
        questions.dataset, str(questions.file), setting="distractor", limit=questions.limit, seed=seed, strict=True
    )
    if not any(True for _ in held):
        raise PolyhopError(f"{questions.file} has no questions")
    return held


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to every process; the first one ends the others
