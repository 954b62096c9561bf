"""The runs of a report: read once, line by line, into columns of numbers; what only a reader of one question wants goes
into `Chunks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count as counting
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...programs.prediction import UNKNOWN
from ..comparison import run_names
from ..folder import SUMMARY, Line, RunError, read_lines, read_manifest, read_summary
from ..scoring import METRICS
from ..summary import COSTS, summarize
from .chunks import Chunks
from .convergence import Course, course
from .numbers import count
from .outcomes import Outcome, outcome
from .steps import flat

Floats = npt.NDArray[np.float64]

COLUMNS = (*METRICS, *COSTS, "seconds", "confidence")


class Question(NamedTuple):
    """What is asked, the same in every run of a group."""

    id: str
    question: str
    hops: int | None
    kind: str | None
    gold_answers: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """An evaluation run, in columns: one value a question that is done, in the order of ``numbers``.

    Attributes:
        name: What it is called in the report.
        first: The number of its first chunk.
        summary: As `polyhop evaluate` writes it; of an unfinished run that of the questions that are done.
        columns: Scores, costs and confidence; NaN where a question has no such value.
    """

    name: str
    path: Path
    manifest: dict[str, Any]
    first: int
    summary: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Floats] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    courses: list[Course | None] = field(default_factory=list)

    @property
    def done(self) -> int:
        return len(self.numbers)

    @property
    def asked(self) -> int:
        """How many questions there are in all."""
        return int(self.manifest["questions"].get("count") or self.done)

    @property
    def finished(self) -> bool:
        """Whether all questions are done and summed up."""
        return self.done == self.asked and (self.path / SUMMARY).exists()

    @property
    def missing(self) -> str:
        """What an unfinished run lacks."""
        if self.done == self.asked:
            return f"its questions are done ({self.done:,}), but not summed up: start it again for that"
        return f"{self.done:,} of {self.asked:,} questions are done"

    def mean(self, metric: str) -> float | None:
        value = self.summary["metrics"].get(metric)
        return None if value is None else float(value)

    def interval(self, metric: str) -> tuple[float, float] | None:
        found = self.summary["intervals"].get(metric)
        return None if found is None else (float(found[0]), float(found[1]))

    def stated(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The confidence of every answer that was given, and whether it was right."""
        given = np.array(
            [
                kind is not Outcome.failed and answer != UNKNOWN
                for kind, answer in zip(self.outcomes, self.answers, strict=True)
            ],
            dtype=bool,
        )
        given &= ~np.isnan(self.columns["confidence"])
        return self.columns["confidence"][given], self.columns["answer_em"][given] == 1.0


@dataclass(frozen=True)
class Group:
    """Runs over the same questions: these alone are compared.

    Attributes:
        questions: By their numbers, which are those in the dataset.
        titles: Of gold passages that a run has found.
        missed: Gold passages that a run has not found.
    """

    title: str
    runs: list[Run] = field(default_factory=list)
    questions: dict[int, Question] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)


def read_groups(paths: Sequence[Path], chunks: Chunks, on_line: Callable[[], None] = lambda: None) -> list[Group]:
    """Read runs, those over the same questions together, in the order of the first of each.

    Args:
        on_line: Called after each question.

    Raises:
        RunError: one of them is not the folder of a run, is damaged, or has no question that is done.
    """
    manifests = {path: read_manifest(path) for path in paths}
    together: dict[tuple[Any, ...], list[Path]] = {}
    for path, manifest in manifests.items():
        asked = _part(manifest, path, "questions")
        together.setdefault((manifest.get("dataset"), asked.get("hash"), asked.get("count")), []).append(path)
    groups: list[Group] = []
    for members in together.values():
        taken = {group.title for group in groups}
        group = Group(next(title for title in _titles(manifests[members[0]]) if title not in taken))
        names = run_names({path: _part(manifests[path], path, "program") for path in members})
        for path in members:
            group.runs.append(_read(path, names[path], manifests[path], group, chunks, on_line))
        groups.append(replace(group, questions=dict(sorted(group.questions.items()))))
    return groups


def count_questions(paths: Iterable[Path]) -> int:
    """How many questions runs have at most, from their manifests."""
    return sum(int(_part(read_manifest(path), path, "questions").get("count", 0)) for path in paths)


def _part(manifest: dict[str, Any], path: Path, name: str) -> dict[str, Any]:
    part = manifest.get(name)
    if not isinstance(part, dict):
        raise RunError(f"{path} is not the folder of an evaluation run: its manifest has no {name!r}.")
    return part


def _titles(manifest: dict[str, Any]) -> Iterator[str]:
    """What a group may be called, the first choice first."""
    asked = manifest["questions"]
    source = str(asked.get("source") or "").split("/")[-1].split(".json")[0]
    parts = [manifest.get("dataset") or "questions of one’s own", asked.get("setting"), source, asked.get("split")]
    title = " · ".join(str(part) for part in dict.fromkeys(parts) if part)
    yield title
    yield f"{title} · {count(int(asked.get('count') or 0), 'question')}"
    yield from (f"{title} · {n}" for n in counting(2))


def _read(
    path: Path, name: str, manifest: dict[str, Any], group: Group, chunks: Chunks, on_line: Callable[[], None]
) -> Run:
    """Go through the lines of one run."""
    values: list[list[float]] = []
    run = Run(name, path, manifest, len(chunks))
    for line in read_lines(path):
        try:
            scores = line["scores"] | line["costs"] | {"confidence": line.get("confidence")}
            values.append([np.nan if scores.get(name) is None else scores[name] for name in COLUMNS])
            _note(run, line, group)
            chunks.add(_details(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{path}: the line of question {line['n']} is damaged ({error!r}).") from error
        on_line()
    chunks.close()
    if not values:
        raise RunError(f"The run {path} has no question that is done yet: start it again to go on.")
    run.columns.update(zip(COLUMNS, np.array(values, dtype=np.float64).T, strict=True))
    run.summary.update(_summary(run))
    return run


def _summary(run: Run) -> dict[str, Any]:
    """That of a finished run; else one of what is done."""
    if run.finished:
        summary = read_summary(run.path)
        if missing := {"counts", "metrics", "intervals", "failures"} - set(summary):
            raise RunError(f"{run.path / SUMMARY} is damaged: it has no {sorted(missing)[0]}. Start the run again.")
        return summary
    return summarize(read_lines(run.path), run.done, int(run.manifest["questions"].get("skipped") or 0))


def _note(run: Run, line: Line, group: Group) -> None:
    """Keep of a question what the tables and the pictures need."""
    asked = Question(line["id"], line["question"], line["hops"], line["kind"], tuple(line["gold_answers"]))
    known = group.questions.setdefault(line["n"], asked)
    if known.id != asked.id:
        raise ValueError(f"it is {asked.id!r} here and {known.id!r} in another run")
    gold = set(line["gold"])
    searched = [hit for step in flat(line.get("trace") or ()) if step["step"] == "searched" for hit in step["found"]]
    group.titles.update((id, title) for id, title, _ in searched if id in gold)
    group.missed.update(gold - {id for id, _, _ in searched})
    run.numbers.append(line["n"])
    run.outcomes.append(outcome(line))
    run.answers.append("" if line["answer"] is None else line["answer"])
    run.stops.append(line.get("stop_reason") or "")
    run.courses.append(course(line))


_SHOWN = "evidence gold confidence stop_reason trace scores costs costs_by_agent error incidents gold_not_found".split()


def _details(line: Line) -> dict[str, Any]:
    """What is shown of a question that is opened."""
    for step in flat(line.get("trace") or ()):
        if step["step"] == "searched":
            for hit in step["found"]:
                hit[2] = round(hit[2], 4)  # more digits are a third of the page
    return {name: line[name] for name in _SHOWN if line.get(name) not in (None, [], {})}
