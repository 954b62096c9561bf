"""The runs of a study: each design, set of questions, error rate and seed is a resumable evaluation run."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterable, Iterator, Sequence
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
from ....eval.records import read_records
from ....eval.run import evaluate
from .agents import Rates
from .annotations import lock
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
    "tokens",
)
"""The values per question that the study uses; evidence is counted in passages."""


@dataclass(frozen=True)
class QuestionSet:
    """The questions of a benchmark with their contexts.

    Attributes:
        limit: Size of a random sample; None for all.
    """

    dataset: str
    file: Path
    limit: int | None = None

    @classmethod
    def parse(cls, text: str, limit: int | None = None) -> QuestionSet:
        """
        Raises:
            ValueError: the text is not DATASET:FILE.
        """
        dataset, _, file = text.partition(":")
        if not dataset or not file:
            raise ValueError(f"{text!r} is not DATASET:FILE")
        return cls(dataset, Path(file), limit)

    def read(self) -> Questions:
        """The questions, read once per process.

        Raises:
            PolyhopError: the file cannot be read, or the questions have no contexts.
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
"""By name, one value per question; NaN where a question has none."""


def play_all(conditions: Sequence[Condition], out: Path, jobs: int) -> Generator[tuple[Condition, Values], None, None]:
    """Run the conditions in ``jobs`` processes; yield each when it is finished.

    Raises:
        PolyhopError: a question failed, or a worker was killed.
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
                worker.terminate()  # finished questions are in its run's folder
            if isinstance(error, BrokenProcessPool):
                raise PolyhopError("a worker was killed: run the same command again to resume") from error
            raise


def play(condition: Condition, out: Path) -> Values:
    """Run a condition, or the rest of it, and read its values."""
    questions, folder = condition.questions.read(), out / condition.name
    program = DESIGNS[condition.design].make()
    try:
        program.set_lm(simulated_lm(questions, Rates.alike(condition.rate), condition.seed))
    except ValueError as error:
        raise PolyhopError(f"{condition.questions.file}: {error}") from error
    evaluate(program, questions, folder, max_failures=1)
    lines = [record.scores | record.costs for record in read_records(folder)]
    return {name: [line.get(name, np.nan) for line in lines] for name in VALUES}


def closed_by_a_query(folders: Iterable[Path]) -> dict[int, tuple[int, int]]:
    """Number of sub-questions open after round 1 (3: or more) -> the queries that followed, and how many closed one.

    From the traces of `PolyHop`, for `polyhop.programs.polyhop.CLOSED_BY_A_QUERY`.
    """
    found: dict[int, tuple[int, int]] = {}
    for record in (record for folder in folders for record in read_records(folder)):
        rounds = [step for step in record.trace if step["step"] == "required"]
        if len(rounds) > 1:
            before, after = (step["answers"].count("unknown") for step in rounds[:2])
            if not (sent := len(rounds[0]["questions"])):
                continue
            tried, closed = found.get(min(before, 3), (0, 0))
            found[min(before, 3)] = tried + sent, closed + min(sent, max(0, before - after))
    return dict(sorted(found.items()))


class _Held(Questions):
    """Questions in memory, with locked pools."""

    _examples: list[dspy.Example] | None = None

    def __iter__(self) -> Iterator[dspy.Example]:
        if self._examples is None:
            self._examples = [lock(example) for example in super().__iter__()]
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to every process; the parent ends the others
