"""Evaluation runs as a report needs them: read once, line by line, into columns; details go to `browser.Chunks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count as counting
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...data.text import count
from ...programs.prediction import UNKNOWN
from ..comparison import run_names
from ..folder import SUMMARY, RunError
from ..metrics import COSTS, METRICS
from ..records import QuestionRecord, read_manifest, read_records, read_summary
from ..settings import RunManifest
from ..statistics import Comparison, compare
from ..summary import summarize
from .browser import Chunks
from .traces import Course, Outcome, course, flat, outcome

Floats = npt.NDArray[np.float64]

COLUMNS = (*METRICS, *COSTS, "confidence")
COMPARED = ("answer_em", "answer_f1", "evidence_f1", "joint_f1", "lm_calls", "tokens")


class Asked(NamedTuple):
    """A question, the same in every run of a group."""

    id: str
    question: str
    hops: int | None
    kind: str | None
    gold_answers: tuple[str, ...]


class Versus(NamedTuple):
    """A run against the first of its group, in one metric, over the questions that both have finished."""

    questions: int
    result: Comparison


@dataclass
class EvaluationRun:
    """An evaluation run in columns, with one value per finished question, in the order of ``numbers``.

    Attributes:
        summary: As in summary.json; of an unfinished run, over its finished questions.
        columns: Scores, costs and confidence; NaN where a question has no such value.
    """

    name: str  # its name in the report
    path: Path
    manifest: RunManifest
    first: int  # number of its first chunk of details
    series: int = 0  # number of its color and shape
    summary: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Floats] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)  # how the answers were checked
    courses: list[Course | None] = field(default_factory=list)
    versus: dict[str, Versus] = field(default_factory=dict)  # by metric, against the first run of the group

    @property
    def done(self) -> int:
        return len(self.numbers)

    @property
    def total(self) -> int:
        """Number of questions, finished or not."""
        return self.manifest.questions.count or self.done

    @property
    def finished(self) -> bool:
        return self.done == self.total and (self.path / SUMMARY).exists()

    @property
    def missing(self) -> str:
        """What an unfinished run lacks."""
        if self.done == self.total:
            return f"all {count(self.done, 'question')} are done, but there is no summary; start the run again"
        return f"{self.done:,} of {self.total:,} questions are done"

    def mean(self, metric: str) -> float | None:
        value = self.summary["metrics"].get(metric)
        return None if value is None else float(value)

    def interval(self, metric: str) -> tuple[float, float] | None:
        found = self.summary["intervals"].get(metric)
        return None if found is None else (float(found[0]), float(found[1]))

    def stated(self, status: str | None = None) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The confidence of each given answer, or of those with a status, and whether the answer is correct."""
        failed = np.array([kind is Outcome.failed for kind in self.outcomes], dtype=bool)
        unknown = np.array([answer == UNKNOWN for answer in self.answers], dtype=bool)
        given = ~failed & ~unknown & ~np.isnan(self.columns["confidence"])
        if status is not None:
            given &= np.array([each == status for each in self.statuses], dtype=bool)
        return self.columns["confidence"][given], self.columns["answer_em"][given] == 1.0


@dataclass(frozen=True)
class Part:
    """The questions with one number of hops (``by_hops``) or of one type (``by_kind``)."""

    key: str
    name: str

    def of(self, run: EvaluationRun) -> Mapping[str, Any]:
        """The summary of a run on these questions; empty if it has none of them."""
        found: Mapping[str, Any] = (run.summary.get(self.key) or {}).get(self.name) or {}
        return found

    def mean(self, run: EvaluationRun, metric: str) -> float | None:
        found = self.of(run).get("metrics", {}).get(metric)
        return None if found is None else float(found)

    def interval(self, run: EvaluationRun, metric: str) -> tuple[float, float] | None:
        found = self.of(run).get("intervals", {}).get(metric)
        return None if found is None else (found[0], found[1])

    def questions(self, runs: Iterable[EvaluationRun]) -> int:
        return max(int(self.of(run).get("counts", {}).get("questions", 0)) for run in runs)


@dataclass(frozen=True)
class Group:
    """Runs over the same questions; only these are compared."""

    title: str
    runs: list[EvaluationRun] = field(default_factory=list)
    questions: dict[int, Asked] = field(default_factory=dict)  # by their number in the dataset
    titles: dict[str, str] = field(default_factory=dict)  # titles of gold passages that a run has found, by id
    missed: set[str] = field(default_factory=set)  # ids of gold passages that a run has not found

    @property
    def dataset(self) -> str:
        return self.runs[0].manifest.dataset or "own questions"

    def known(self, metrics: Iterable[str]) -> list[str]:
        """The metrics that a run has."""
        return [metric for metric in metrics if any(run.mean(metric) is not None for run in self.runs)]

    def parts(self, key: str) -> list[Part]:
        return [Part(key, name) for name in sorted({name for run in self.runs for name in run.summary.get(key) or {}})]

    def negligible(self, metric: str) -> set[str]:
        """Names of the runs whose score is close to 0 compared with the best; charts leave them out."""
        if metric not in METRICS:
            return set()
        scores = {run.name: run.mean(metric) or 0.0 for run in self.runs}
        best = max(scores.values())
        return {name for name, score in scores.items() if score <= best / 50} if best else set()

    def not_drawn(self, metrics: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(name for metric in metrics for name in sorted(self.negligible(metric))))

    def compare(self, on_comparison: Callable[[], None] = lambda: None) -> None:
        """Compare every run with the first, as `polyhop compare` does."""
        first = self.runs[0]
        for run in self.runs[1:]:
            here = {n: row for row, n in enumerate(run.numbers)}
            pairs = np.array([(here[n], row) for row, n in enumerate(first.numbers) if n in here]).reshape(-1, 2)
            for metric in COMPARED:
                ours, theirs = run.columns[metric][pairs[:, 0]], first.columns[metric][pairs[:, 1]]
                both = ~np.isnan(ours) & ~np.isnan(theirs)
                if both.any():
                    run.versus[metric] = Versus(int(both.sum()), compare(ours[both].tolist(), theirs[both].tolist()))
                on_comparison()


def read_groups(paths: Sequence[Path], chunks: Chunks, on_line: Callable[[], None] = lambda: None) -> list[Group]:
    """Read runs and group those over the same questions, in the order of the first of each group.

    Args:
        on_line: Called after each question.
    """
    manifests = {path: read_manifest(path) for path in paths}
    together: dict[tuple[Any, ...], list[Path]] = {}
    for path, manifest in manifests.items():
        key = (manifest.dataset, manifest.questions.hash, manifest.questions.count)
        together.setdefault(key, []).append(path)
    groups: list[Group] = []
    series: dict[str, int] = {}
    for members in together.values():
        taken = {group.title for group in groups}
        group = Group(next(title for title in _titles(manifests[members[0]]) if title not in taken))
        names = run_names({path: manifests[path].program.name for path in members})
        for path in members:
            run = _read(path, names[path], manifests[path], group, chunks, on_line)
            run.series = series.setdefault(run.name, len(series))
            group.runs.append(run)
        groups.append(replace(group, questions=dict(sorted(group.questions.items()))))
    return groups


def count_questions(paths: Iterable[Path]) -> int:
    """The number of questions of all runs, from their manifests."""
    return sum(read_manifest(path).questions.count for path in paths)


def _titles(manifest: RunManifest) -> Iterator[str]:
    """Possible titles of a group, the preferred one first."""
    asked = manifest.questions
    source = (asked.source or "").split("/")[-1].split(".json")[0]
    parts = [manifest.dataset or "own questions", asked.setting, source, asked.split]
    title = " · ".join(part for part in dict.fromkeys(parts) if part)
    yield title
    yield f"{title} · {count(asked.count, 'question')}"
    yield from (f"{title} · {n}" for n in counting(2))


def _read(
    path: Path, name: str, manifest: RunManifest, group: Group, chunks: Chunks, on_line: Callable[[], None]
) -> EvaluationRun:
    values: list[list[float]] = []
    run = EvaluationRun(name, path, manifest, len(chunks))
    for record in read_records(path):
        found: dict[str, Any] = {**record.scores, **record.costs, "confidence": record.confidence}
        values.append([np.nan if found.get(name) is None else found[name] for name in COLUMNS])
        try:
            _note(run, record, group)
            chunks.add(_details(record))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{path}: the record of question {record.n} is damaged ({error!r}).") from error
        on_line()
    chunks.close()
    if not values:
        raise RunError(f"The run {path} has no finished question yet; start it again to resume it.")
    run.columns.update(zip(COLUMNS, np.array(values, dtype=np.float64).T, strict=True))
    run.summary.update(_summary(run))
    return run


def _summary(run: EvaluationRun) -> dict[str, Any]:
    if run.finished:
        with suppress(RunError):  # damaged: its records have all of it
            return read_summary(run.path)
    return summarize(read_records(run.path), run.done, run.manifest.questions.skipped)


def _note(run: EvaluationRun, record: QuestionRecord, group: Group) -> None:
    """Keep of a question what the tables and charts need."""
    asked = Asked(record.id, record.question, record.hops, record.kind, record.gold_answers)
    known = group.questions.setdefault(record.n, asked)
    if known.id != asked.id:
        raise ValueError(f"its id is {asked.id!r} here and {known.id!r} in another run")
    gold = set(record.gold)
    found = [hit for step in flat(record.trace) if step["step"] == "searched" for hit in step["found"]]
    searched = {unit: title for id, title, _ in found for unit in record.counted([id])}
    group.titles.update((id, title) for id, title in searched.items() if id in gold)
    group.missed.update(gold - searched.keys())
    run.numbers.append(record.n)
    run.outcomes.append(outcome(record))
    run.answers.append(record.answer or "")
    run.stops.append(record.stop_reason)
    run.statuses.append(record.status)
    run.courses.append(course(record))


_SHOWN = set(
    "evidence gold documents confidence status stop_reason trace scores costs costs_by_agent error incidents "
    "gold_not_found".split()
)


def _details(record: QuestionRecord) -> dict[str, Any]:
    """What an opened question shows."""
    for step in flat(record.trace):
        if step["step"] == "searched":
            for hit in step["found"]:
                hit[2] = round(hit[2], 4)  # more digits would be a third of the page
    return record.model_dump(include=_SHOWN, exclude_defaults=True)
