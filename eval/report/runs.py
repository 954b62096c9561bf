"""Evaluation runs as a report needs them: read once, record by record, into columns and packed details.

The page parses an index when it opens. Details are gzipped in chunks, which the page unpacks when a question is opened:
a report on 5,000 questions holds a few megabytes of text instead of fifty megabytes of JSON.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ...data.text import plain
from ...programs.prediction import UNKNOWN
from ..comparison import ComparedRun, RunComparison, compare_records, run_names
from ..folder import DELETE, PREDICTIONS, SUMMARY, RunError, RunManifest, RunRecord, read_manifest, read_records
from ..statistics import calibration_error
from ..summary import summarize

CHUNK = 64
"""Questions in a chunk: about 100 kB, which a browser inflates in a few milliseconds."""

COMPARED = ("answer_em", "answer_f1", "evidence_f1", "joint_f1", "lm_calls", "tokens")

_COLUMNS = {"em": "answer_em", "f1": "answer_f1", "evidence": "evidence_f1", "confidence": "confidence",
            "calls": "lm_calls", "tokens": "tokens", "dollars": "cost_usd", "seconds": "seconds"}  # fmt: skip
_DETAILS = set(
    "evidence gold documents confidence status stop_reason trace scores costs costs_by_agent error incidents "
    "gold_not_found".split()
)


class Outcome(StrEnum):
    """The result of a question; each question has exactly one. Reports show them in this order."""

    correct = "correct"
    reading = "reading error"
    selection = "selection miss"
    retrieval = "retrieval miss"
    wrong = "wrong, no gold"
    abstained = "abstained"
    failed = "failed"


def outcome(record: RunRecord) -> Outcome:
    if record.error is not None:
        return Outcome.failed
    if record.scores.get("answer_em") == 1.0:
        return Outcome.correct
    if record.answer == UNKNOWN or not record.gold:
        return Outcome.abstained if record.answer == UNKNOWN else Outcome.wrong
    evidence = {*record.counted(item.passage_id for item in record.evidence)}
    if evidence.issuperset(record.gold):
        return Outcome.reading
    # Programs without a trace count what they return.
    offered = record.counted([*(id for step in searches(record.trace) for id, *_ in step["found"]), *record.ranking])
    return Outcome.selection if evidence.union(offered).issuperset(record.gold) else Outcome.retrieval


def searches(trace: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The searches of a trace as JSON; parallel branches one after the other."""
    for step in trace:
        if step["step"] == "parallel":
            for branch in step["branches"]:
                yield from searches(branch)
        elif step["step"] == "searched":
            yield step


@dataclass(kw_only=True)
class EvaluationRun(ComparedRun):
    """An evaluation run; the summary is made of its records.

    Attributes:
        name: Its name in the report.
        first: The number of its first chunk of details.
        series: The number of its color.
    """

    manifest: RunManifest
    first: int
    series: int
    outcomes: list[Outcome] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return self.done == self.questions and (self.path / SUMMARY).exists()

    @property
    def missing(self) -> str:
        """What an unfinished run lacks."""
        return f"{self.done:,} of {self.questions:,} questions are done; start the run again to finish it"

    def mean(self, metric: str) -> float | None:
        value: float | None = self.summary["metrics"].get(metric)
        return value

    @property
    def calibration_error(self) -> float | None:
        """That of the stated confidence of its answers; "unknown" is none."""
        answered = [record for record in self.records if record.answer not in (None, "", UNKNOWN)]
        stated = [record for record in answered if "answer_em" in record.scores and record.confidence is not None]
        right = [record.scores["answer_em"] == 1.0 for record in stated]
        return calibration_error([record.confidence or 0.0 for record in stated], right) if stated else None


@dataclass
class Group:
    """Runs over the same questions; only these are compared."""

    title: str
    runs: list[EvaluationRun] = field(default_factory=list)
    questions: dict[int, RunRecord] = field(default_factory=dict)  # a record of each, by number in the dataset
    titles: dict[str, str] = field(default_factory=dict)  # titles of gold passages that a run has found, by id
    missed: set[str] = field(default_factory=set)  # ids of gold passages that a run has not found
    versus: RunComparison | None = None  # with the first run

    def measured(self, metrics: Iterable[str]) -> list[str]:
        """The metrics that a run has."""
        return [metric for metric in metrics if any(run.mean(metric) is not None for run in self.runs)]

    def index(self) -> dict[str, Any]:
        """What the list of questions shows, filters and sorts by."""
        asked = [self.questions[n] for n in sorted(self.questions)]
        place = {record.n: at for at, record in enumerate(asked)}
        return {
            "title": self.title,
            **{name: [getattr(record, name) for record in asked] for name in ("id", "question", "hops", "kind")},
            "gold": [record.gold_answers for record in asked],
            "titles": {id: self.titles[id] for id in sorted(self.missed) if id in self.titles},
            "runs": [_columns(run, place) for run in self.runs],
        }


def _columns(run: EvaluationRun, place: Mapping[int, int]) -> dict[str, Any]:
    rows = [{**record.scores, **record.costs, "confidence": record.confidence} for record in run.records]
    values = {key: [_rounded(row.get(name)) for row in rows] for key, name in _COLUMNS.items()}
    return {
        "name": run.name,
        "first": run.first,
        "at": [place[record.n] for record in run.records],
        "answer": [record.answer or "" for record in run.records],
        "outcome": [list(Outcome).index(kind) for kind in run.outcomes],
        "stop": [record.stop_reason for record in run.records],
        **{key: column if column.count(None) < len(column) else None for key, column in values.items()},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


class Details:
    """The details of all questions, packed; each run begins a new chunk."""

    def __init__(self) -> None:
        self.chunks: list[str] = []
        self._open: list[Any] = []

    def add(self, details: Any) -> None:
        self._open.append(details)
        if len(self._open) == CHUNK:
            self.close()

    def close(self) -> None:
        """End the current chunk; the next details begin a new one."""
        if self._open:
            packed = gzip.compress(json.dumps(self._open, separators=(",", ":")).encode(), mtime=0)
            self.chunks.append(b64encode(packed).decode())
            self._open = []


def read_groups(paths: Sequence[Path], details: Details, on_record: Callable[[], None] = lambda: None) -> list[Group]:
    """Read runs, group those over the same questions, and compare each with the first of its group.

    Args:
        on_record: Called after each question.
    """
    manifests = {path: read_manifest(path) for path in paths}
    together: dict[tuple[Any, ...], list[Path]] = {}
    for path, manifest in manifests.items():
        key = (manifest.dataset, manifest.questions.hash, manifest.questions.count)
        together.setdefault(key, []).append(path)
    groups, titles, series = list[Group](), set[str](), dict[str, int]()
    for (dataset, *_), members in together.items():
        asked = manifests[members[0]].questions
        parts = [dataset or "own questions", asked.setting, (asked.source or "").split("/")[-1].split(".json")[0]]
        title = " · ".join(dict.fromkeys(part for part in [*parts, asked.split] if part))
        if title in titles:
            title += f" · {len(groups) + 1}"
        titles.add(title)
        group = Group(title)
        names = run_names({path: manifests[path].program.name for path in members})
        for path in members:
            manifest, number = manifests[path], series.setdefault(names[path], len(series))
            of_run: dict[str, Any] = {"manifest": manifest, "first": len(details.chunks), "series": number}
            group.runs.append(EvaluationRun(names[path], path, manifest.questions.count, **of_run))
            _read(group.runs[-1], group, details, on_record)
        if members[1:]:
            with suppress(RunError):  # unfinished runs may share no question
                group.versus = compare_records(group.runs, group.measured(COMPARED))
        groups.append(group)
    return groups


def _read(run: EvaluationRun, group: Group, details: Details, on_record: Callable[[], None]) -> None:
    for record in read_records(run.path):
        first = group.questions.setdefault(record.n, record.in_brief())
        if not record.same_question(first):
            raise RunError(f"{run.path}: question {record.n} ({plain(record.id)}) is another one in another run.")
        try:
            run.outcomes.append(outcome(record))
            titles: dict[str, str] = {}
            for hit in (hit for step in searches(record.trace) for hit in step["found"]):
                titles |= dict.fromkeys(record.counted([hit[0]]), hit[1])
                hit[2] = round(hit[2], 4)  # more digits would be a third of the page
            details.add(record.model_dump(include=_DETAILS, exclude_defaults=True))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            damage = f"the trace of question {record.n} is not one that polyhop wrote"
            raise RunError(f"{run.path / PREDICTIONS}: {damage}. {DELETE}") from error
        group.titles |= {id: titles[id] for id in record.gold if id in titles}
        group.missed.update(id for id in record.gold if id not in titles)
        run.records.append(record.in_brief())
        on_record()
    if not run.records:
        raise RunError(f"The run {run.path} has no finished question yet; start it again to resume it.")
    details.close()
    run.summary = summarize(run.records, run.manifest.questions.skipped)
