"""Questions of any benchmark, from a file or the Hugging Face hub, as a stream of DSPy examples of one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import DatasetError, Problem
from .benchmark import Benchmark
from .files import read_records
from .hub import PREFIX, hub_records
from .own import OWN
from .question import Question
from .record import Record
from .registry import BENCHMARKS, SAMPLE, find_benchmark, recognise
from .sampling import sample
from .shipped import sample_questions

if TYPE_CHECKING:
    import dspy

Setting = Literal["distractor", "open"]


def load_questions(
    dataset: str,
    source: str | Path | None = None,
    *,
    split: str | None = None,
    setting: Setting | None = None,
    limit: int | None = None,
    seed: int | None = None,
    strict: bool = False,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> Iterator[dspy.Example]:
    """The questions of a benchmark, one by one; `Question` says what an example has.

    Args:
        dataset: hotpotqa, 2wiki, musique, multihoprag, nq, squad or triviaqa, or another name of theirs; own, for
            questions of one's own (see `own`); or sample.
        source: A file in one of the benchmark's formats (JSON, JSON Lines or a table, plain or gzip), or
            ``hub:OWNER/NAME[:CONFIG]``; by default the benchmark's place on the hub. The sample has none.
        split: Of a dataset on the hub, by default the one to evaluate on; or of the sample, by default all of it.
        setting: ``distractor`` asks for the questions' own contexts as ``pool``, ``open`` drops them; None leaves them
            as they are.
        limit: At most so many questions: the first ones, or with a ``seed`` a random sample, for which all are read.
        seed: Of the sample. The same sample on every machine, and part of any larger sample with that seed.
        strict: Raise at the first malformed record instead of leaving it out.
        on_problem: Called with each record that is left out: malformed, or with the id of an earlier one.

    Raises:
        DatasetError: the benchmark, file, split or setting does not exist, or the file's format is unknown; at once.
            While iterating: the file is damaged, holds another benchmark or no question, or (``strict``) has a bad
            record.
        ValueError: ``limit`` is not positive.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be positive, got {limit}")
    if setting not in (None, "distractor", "open"):
        raise DatasetError(f"There is no setting {setting!r}: choose distractor or open.")
    if dataset.casefold() == SAMPLE:
        if source is not None:
            raise DatasetError("The sample ships with polyhop: name no file for it.")
        title, has_contexts, questions = "the sample", False, sample_questions(split)
    else:
        benchmark = find_benchmark(dataset)
        title, has_contexts = benchmark.title, benchmark.has_contexts
        questions = read_questions(benchmark, _records(benchmark, source, split), Report(strict, on_problem))
    if setting == "distractor" and not has_contexts:
        raise DatasetError(
            f"The questions of {title} have no contexts of their own: use the setting open, with an index."
        )
    questions = _limited(_in_setting(questions, setting), limit, seed)
    return (question.to_example() for question in questions)


def read_questions(benchmark: Benchmark, records: Iterable[Record | Problem], report: Report) -> Iterator[Question]:
    """The questions of a benchmark's records; no two have the same id.

    Raises:
        DatasetError: while iterating: the first record is of another benchmark, or there is no question in the end.
    """
    seen: set[int] = set()  # hashes: a few bytes a question, whatever the ids
    for question in benchmark.read(_checked(benchmark, records, report)):
        if isinstance(question, Problem):
            report(question)
        elif hash(question.id) in seen:
            report(Problem(question.where, f"an earlier question has the id {question.id!r}, too"))
        else:
            seen.add(hash(question.id))
            yield question
    if not seen:
        reason = f" The first problem is {report.first.reason!r} ({report.first.where})." if report.first else ""
        raise DatasetError(f"No question can be read as {benchmark.title}.{reason}")


class Report:
    """Hands problems on, or raises the first if the reading is strict; remembers the first."""

    def __init__(self, strict: bool, on_problem: Callable[[Problem], None]) -> None:
        self._strict = strict
        self._on_problem = on_problem
        self.first: Problem | None = None

    def __call__(self, problem: Problem) -> None:
        if self._strict:
            raise DatasetError(f"{problem.where}: {problem.reason}.")
        self.first = self.first or problem
        self._on_problem(problem)


def recognised(source: str | Path) -> str:
    """The name of the dataset that a file is of, judged by its first record; a plain question is one's own.

    Raises:
        DatasetError: there is no such file, or its records are of none, or may be of several.
    """
    if str(source).startswith(PREFIX):
        raise DatasetError(f"Name the --dataset that {source} is.")
    first = next((record for record in read_records(Path(source)) if isinstance(record, Record)), None)
    likely = [benchmark.name for benchmark in recognise(first)] if first else []
    if OWN.name in likely:
        return OWN.name
    if len(likely) == 1:
        return likely[0]
    looks = f"may be of {' or '.join(likely)}" if likely else f"looks like none of {', '.join(BENCHMARKS)}"
    raise DatasetError(f"{first.where if first else source} {looks}: name the --dataset.")


def _records(benchmark: Benchmark, source: str | Path | None, split: str | None) -> Iterator[Record | Problem]:
    if source is None and benchmark.hub is None:
        raise DatasetError(f"Name the file of your {benchmark.title}: --questions FILE.")
    name = f"{PREFIX}{benchmark.hub}" if source is None else str(source)
    if name.startswith(PREFIX):
        return hub_records(name.removeprefix(PREFIX), split or benchmark.split)
    if split is not None:
        raise DatasetError(f"A file has no splits: name the file that holds {split!r} instead of {name}.")
    return read_records(Path(name))


def _checked(benchmark: Benchmark, records: Iterable[Record | Problem], report: Report) -> Iterator[Record]:
    """The records without the problems. The first tells a file of another benchmark from one with malformed records."""
    first = True
    for record in records:
        if isinstance(record, Problem):
            report(record)
            continue
        likely = recognise(record) if first else []
        if likely not in ([], [OWN]) and benchmark not in likely:
            names = " or ".join(other.title for other in likely)
            raise DatasetError(f"{record.where} looks like {names}, not like {benchmark.title}.")
        first = False
        yield record


def _in_setting(questions: Iterable[Question], setting: Setting | None) -> Iterator[Question]:
    for question in questions:
        if setting == "distractor" and question.pool is None:
            raise DatasetError(
                f"{question.where} has no contexts of its own: use the setting open, with an index (--index DIR)."
            )
        yield replace(question, pool=None) if setting == "open" else question


def _limited(questions: Iterator[Question], limit: int | None, seed: int | None) -> Iterator[Question]:
    if limit is not None:
        questions = islice(questions, limit) if seed is None else iter(sample(questions, limit, seed))
    yield from questions
