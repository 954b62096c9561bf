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
from itertools import count as counting
from pathlib import Path
from typing import Any

from ...data.text import count, plain
from ...programs.prediction import UNKNOWN
from ..comparison import ComparedRun, RunComparison, compare_records, in_brief, run_names
from ..folder import SUMMARY, RunError
from ..records import QuestionRecord, read_manifest, read_records
from ..settings import RunManifest
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

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Outcome.correct: "the answer equals a gold answer after normalization (exact match)",
    Outcome.reading: "all gold passages are in the evidence, but the answer is wrong",
    Outcome.selection: "all gold passages were found, but not all are in the evidence, and the answer is wrong",
    Outcome.retrieval: "a gold passage was never found (or the program does not search), and the answer is wrong",
    Outcome.wrong: "the answer is wrong, and the dataset names no gold passages",
    Outcome.abstained: f"the program answered “{UNKNOWN}”, which is not the gold answer",
    Outcome.failed: "no answer because of an error, a time limit or an unreachable model; scored 0 in every mean",
}


def outcome(record: QuestionRecord) -> Outcome:
    if record.error is not None:
        return Outcome.failed
    if record.scores.get("answer_em") == 1.0:
        return Outcome.correct
    if record.answer == UNKNOWN:
        return Outcome.abstained
    if not record.gold:
        return Outcome.wrong
    gold, evidence = set(record.gold), record.counted(item.passage_id for item in record.evidence)
    if gold <= set(evidence):
        return Outcome.reading
    # Programs without a trace count what they return.
    searched = [id for step in searches(record.trace) for id, *_ in step["found"]]
    return (
        Outcome.selection if gold <= {*record.counted([*searched, *record.ranking]), *evidence} else Outcome.retrieval
    )


def searches(trace: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The searches of a trace as JSON; parallel branches one after the other."""
    for step in trace:
        if step["step"] == "parallel":
            for branch in step["branches"]:
                yield from searches(branch)
        elif step["step"] == "searched":
            yield step


@dataclass
class EvaluationRun:
    """An evaluation run.

    Attributes:
        name: Its name in the report.
        first: The number of its first chunk of details.
        series: The number of its color.
        records: Of its finished questions, in brief.
        outcomes: Theirs.
        summary: Made of the records.
    """

    name: str
    path: Path
    manifest: RunManifest
    first: int
    series: int
    records: list[QuestionRecord] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return len(self.records)

    @property
    def total(self) -> int:
        """Number of questions, finished or not."""
        return self.manifest.questions.count

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
        value: float | None = self.summary["metrics"].get(metric)
        return value

    @property
    def calibration_error(self) -> float | None:
        """That of the stated confidence of its answers; "unknown" is none."""
        stated = [
            (each.confidence, each.scores.get("answer_em"))
            for each in self.records
            if each.answer not in (None, "", UNKNOWN) and each.confidence is not None
        ]
        if not stated or any(em is None for _, em in stated):
            return None
        return calibration_error([confidence for confidence, _ in stated], [em == 1.0 for _, em in stated])


@dataclass
class Group:
    """Runs over the same questions; only these are compared."""

    title: str
    runs: list[EvaluationRun] = field(default_factory=list)
    questions: dict[int, QuestionRecord] = field(default_factory=dict)  # a record of each, by number in the dataset
    titles: dict[str, str] = field(default_factory=dict)  # titles of gold passages that a run has found, by id
    missed: set[str] = field(default_factory=set)  # ids of gold passages that a run has not found
    versus: RunComparison | None = None  # with the first run

    @property
    def dataset(self) -> str:
        return self.runs[0].manifest.dataset or "own questions"

    def known(self, metrics: Iterable[str]) -> list[str]:
        """The metrics that a run has."""
        return [metric for metric in metrics if any(run.mean(metric) is not None for run in self.runs)]

    def index(self) -> dict[str, Any]:
        """What the list of questions shows, filters and sorts by."""
        asked = [self.questions[n] for n in sorted(self.questions)]
        return {
            "title": self.title,
            **{name: [getattr(each, name) for each in asked] for name in ("id", "question", "hops", "kind")},
            "gold": [each.gold_answers for each in asked],
            "titles": {id: self.titles[id] for id in sorted(self.missed) if id in self.titles},
            "runs": [self._columns(run) for run in self.runs],
        }

    def _columns(self, run: EvaluationRun) -> dict[str, Any]:
        place, kinds = {n: at for at, n in enumerate(sorted(self.questions))}, list(Outcome)
        found = [{**each.scores, **each.costs, "confidence": each.confidence} for each in run.records]
        values = {key: [_rounded(each.get(name)) for each in found] for key, name in _COLUMNS.items()}
        return {
            "name": run.name,
            "first": run.first,
            "at": [place[each.n] for each in run.records],
            "answer": [each.answer or "" for each in run.records],
            "outcome": [kinds.index(kind) for kind in run.outcomes],
            "stop": [each.stop_reason for each in run.records],
            **{key: column if column.count(None) < len(column) else None for key, column in values.items()},
        }


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
    groups: list[Group] = []
    series: dict[str, int] = {}
    for members in together.values():
        taken = {group.title for group in groups}
        group = Group(next(title for title in _titles(manifests[members[0]]) if title not in taken))
        names = run_names({path: manifests[path].program.name for path in members})
        for path in members:
            number = series.setdefault(names[path], len(series))
            run = EvaluationRun(names[path], path, manifests[path], len(details.chunks), number)
            group.runs.append(run)
            _read(run, group, details, on_record)
        if members[1:]:
            compared = [ComparedRun(run.name, run.path, run.total, run.done) for run in group.runs]
            with suppress(RunError):  # unfinished runs may share no question
                records = [run.records for run in group.runs]
                group.versus = compare_records(compared, records, group.known(COMPARED))
        groups.append(group)
    return groups


def _titles(manifest: RunManifest) -> Iterator[str]:
    """Possible titles of a group, the preferred one first."""
    asked = manifest.questions
    source = (asked.source or "").split("/")[-1].split(".json")[0]
    parts = [manifest.dataset or "own questions", asked.setting, source, asked.split]
    title = " · ".join(part for part in dict.fromkeys(parts) if part)
    yield title
    yield f"{title} · {count(asked.count, 'question')}"
    yield from (f"{title} · {n}" for n in counting(2))


def _read(run: EvaluationRun, group: Group, details: Details, on_record: Callable[[], None]) -> None:
    for record in read_records(run.path):
        known = group.questions.setdefault(record.n, in_brief(record))
        if not record.same_question(known):
            raise RunError(f"{run.path}: question {record.n} ({plain(record.id)}) is another one in another run.")
        try:
            run.outcomes.append(outcome(record))
            hits = [hit for step in searches(record.trace) for hit in step["found"]]
            found = {unit: title for id, title, _ in hits for unit in record.counted([id])}
            details.add(_details(record))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{run.path}: the record of question {record.n} is damaged ({error!r}).") from error
        group.titles |= {id: found[id] for id in record.gold if id in found}
        group.missed.update(id for id in record.gold if id not in found)
        run.records.append(in_brief(record))
        on_record()
    if not run.records:
        raise RunError(f"The run {run.path} has no finished question yet; start it again to resume it.")
    details.close()
    run.summary = summarize(run.records, run.manifest.questions.skipped)


def _details(record: QuestionRecord) -> dict[str, Any]:
    """What an opened question shows."""
    for step in searches(record.trace):
        for hit in step["found"]:
            hit[2] = round(hit[2], 4)  # more digits would be a third of the page
    return record.model_dump(include=_DETAILS, exclude_defaults=True)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
