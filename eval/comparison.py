"""Runs compared question by question; also other systems' scores, as JSON lines with an id and numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from ..data.errors import first_error
from ..data.text import count, plain
from .folder import RunError, RunRecord, read_manifest, read_records
from .metrics import COSTS, METRICS, quantity
from .questions import given_records
from .statistics import Comparison, compare, holm

_PAID = ("tokens_in", "tokens_out", "tokens", "cost_usd", "seconds")  # what a cached reply does not cost


@dataclass
class ComparedRun:
    """A run of a comparison."""

    name: str  # see `run_names`
    path: Path
    questions: int  # how many questions it has, finished or not
    records: list[RunRecord] = field(default_factory=list)  # of its finished questions, in brief

    @property
    def done(self) -> int:
        return len(self.records)


class Row(NamedTuple):
    """A metric of a run, on the shared questions that have a value in both runs.

    Attributes:
        versus: The run against the baseline; positive differences mean higher values here. None for the baseline.
        p_holm: The p-value of the permutation test, corrected for all metrics of this run in the comparison.
    """

    metric: str
    run: str
    questions: int
    mean: float
    versus: Comparison | None
    p_holm: float | None = None


class Flip(NamedTuple):
    """A question that became right (exact match) or wrong, relative to the baseline."""

    run: str
    gained: bool
    id: str
    question: str
    gold: str
    before: str
    after: str


@dataclass(frozen=True)
class RunComparison:
    """Runs compared with the first of them, the baseline."""

    runs: Sequence[ComparedRun]
    shared: int
    rows: tuple[Row, ...]
    flips: tuple[Flip, ...]
    cached: int = 0  # how many of the shared questions have replies of DSPy's cache in some run

    def row(self, metric: str, run: str) -> Row | None:
        return next((row for row in self.rows if (row.metric, row.run) == (metric, run)), None)


def compare_runs(paths: Sequence[Path], metrics: Sequence[str] | None = None) -> RunComparison:
    """Compare runs, finished or not, with the first of them.

    Args:
        metrics: By default those that tables show.
    """
    if len(paths) < 2:
        raise RunError("Name at least two runs: polyhop compare RUN RUN ...")
    runs, datasets = list[ComparedRun](), dict[str | None, Path]()
    for path in paths:
        if path.is_file():
            records = _scores_of(path)
            runs.append(ComparedRun(path.stem, path, len(records), records))
        else:
            manifest = read_manifest(path)
            records = [record.in_brief() for record in read_records(path)]
            runs.append(ComparedRun(manifest.program.name, path, manifest.questions.count, records))
            datasets.setdefault(manifest.dataset, path)
    if len(datasets) > 1:
        listed = ", ".join(f"{plain(str(dataset))} in {path}" for dataset, path in datasets.items())
        raise RunError(f"The runs have different datasets: {listed}.")
    names = run_names({run.path: run.name for run in runs})
    for run in runs:
        run.name = names[run.path]
    return compare_records(runs, metrics)


def compare_records(runs: Sequence[ComparedRun], metrics: Sequence[str] | None = None) -> RunComparison:
    """Compare the records of runs with those of the first of them."""
    names, shared = [run.name for run in runs], _shared(runs)
    rows = list[Row]()
    for metric in _chosen(metrics, shared):
        rows += _rows(metric, names, shared)
    flips = list[Flip]()
    for name, records in zip(names[1:], shared[1:], strict=True):
        flips += _flips(name, shared[0], records)
    return RunComparison(
        runs=runs,
        shared=len(shared[0]),
        rows=tuple(_corrected(rows)),
        flips=tuple(flips),
        cached=sum(any(record.cached for record in records) for records in zip(*shared, strict=True)),
    )


def _shared(runs: Sequence[ComparedRun]) -> list[list[RunRecord]]:
    """The records of each run, on the questions that are finished in all of them.

    Raises:
        RunError: there are none, or some differ.
    """
    tables = [{record.id: record for record in run.records} for run in runs]
    ids = [id for id in tables[0] if all(id in table for table in tables)]
    if not ids:
        raise RunError("The runs share no question that is finished in all of them.")
    for run, table in zip(runs, tables, strict=True):
        if edited := [plain(id) for id in ids if not table[id].same_question(tables[0][id])]:
            raise RunError(
                f"{count(len(edited), 'question')} of {run.path} and {runs[0].path} have the same id, but another text "
                f"or gold: {', '.join(edited[:5])}. Evaluate both on the same questions."
            )
    return [[table[id] for id in ids] for table in tables]


def _corrected(rows: Sequence[Row]) -> list[Row]:
    """With p-values for all metrics of a run (Holm)."""
    tests: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.versus:
            tests[row.run].append(row.versus.p_permutation)
    p_values = {run: iter(holm(chances)) for run, chances in tests.items()}
    return [row._replace(p_holm=next(p_values[row.run]) if row.versus else None) for row in rows]


def _chosen(metrics: Sequence[str] | None, runs: Sequence[Sequence[RunRecord]]) -> list[str]:
    """The metrics to compare: all that are known and shown, and those that only these runs have."""
    present = {name for records in runs for record in records for name in record.scores | record.costs}
    others = sorted(present - METRICS.keys() - COSTS.keys())
    choices = [*METRICS, *COSTS, *others]
    if unknown := next((name for name in metrics or () if name not in choices), None):
        raise RunError(f"No metric {unknown!r}: choose from {', '.join(choices)}.")
    return list(metrics or [name for name in choices if name in others or quantity(name).shown])


def _scores_of(path: Path) -> list[RunRecord]:
    """The records of JSON lines such as ``{"id": "q1", "f1": 0.5}``: every number and truth value is a score."""
    records: dict[str, RunRecord] = {}
    nothing: dict[str, Any] = {"gold_answers": [], "gold": [], "evidence": [], "ranking": [], "answer": None}
    for n, line in enumerate(given_records(path)):
        question = str(line.get("question", ""))
        id = str(line.pop("id", question))
        numbers = {plain(name): value for name, value in line.items() if isinstance(value, int | float)}
        scores = {name: value + 0 for name, value in numbers.items() if abs(value) < inf}  # True is 1
        if id in records or not scores:
            raise RunError(f"{path}: {plain(id)[:80]!r} is there twice or has no score.")
        try:
            records[id] = RunRecord(n=n, id=id, question=question, scores=scores, costs={}, **nothing)
        except ValidationError as error:
            raise RunError(f"{path}: {plain(id)[:80]!r} is wrong: {first_error(error)}.") from None
    return list(records.values())


def run_names(programs: Mapping[Path, str]) -> dict[Path, str]:
    """Distinct names of runs: their programs, or else their folders, or else their paths."""
    names = dict[Path, str]()
    ways: list[Callable[[Path], str]] = [lambda path: programs[path], lambda path: path.resolve().name, str]
    for way in ways:
        names = {path: plain(way(path)) for path in programs}
        if len(set(names.values())) == len(names):
            break
    return names


def _rows(metric: str, names: Sequence[str], records: Sequence[Sequence[RunRecord]]) -> list[Row]:
    """A metric of all runs; nothing if a run shares no value with the first."""
    columns = [np.array([_value(record, metric) for record in run]) for run in records]
    first, rows = columns[0], list[Row]()
    for name, column in zip(names, columns, strict=True):
        both = ~np.isnan(column) & ~np.isnan(first)
        if not both.any():
            return []
        versus = None if name == names[0] else compare(column[both].tolist(), first[both].tolist())
        rows.append(Row(metric, name, int(both.sum()), float(column[both].mean()), versus))
    return rows


def _value(record: RunRecord, metric: str) -> float:
    """A score or a cost; nan where it has none, or where the cache spared a part of the cost."""
    spared = metric in _PAID and metric not in record.scores and record.cached
    return nan if spared else record.scores.get(metric, record.costs.get(metric, nan))


def _flips(name: str, baseline: Sequence[RunRecord], records: Sequence[RunRecord]) -> Iterator[Flip]:
    for first, other in zip(baseline, records, strict=True):
        before, after = (record.scores.get("answer_em") for record in (first, other))
        if before is not None and after is not None and before != after:
            texts = (f"failed: {run.error.message}" if run.error else run.answer or "" for run in (first, other))
            yield Flip(name, after > before, first.id, first.question, next(iter(first.gold_answers), ""), *texts)
