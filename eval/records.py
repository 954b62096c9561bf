"""The files of an evaluation run.

RUN/manifest.json        `RunManifest`: settings and provenance
RUN/predictions.jsonl    one `QuestionRecord` per line, in the order of completion
RUN/summary.json         written last: a run that has one is finished
RUN/spent.json           with a budget: what all processes spent on the run
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    StrictFloat,
    StrictInt,
    ValidationError,
    field_validator,
)

from ..data.errors import first_error
from ..data.files import LARGEST_JSON, bounded_lines
from ..data.passages import Evidence
from .folder import ACCOUNT, PREDICTIONS, SUMMARY, RunError, claimed, cut_half_line, read_json
from .metrics import METRICS
from .settings import RunManifest

_Number = StrictInt | StrictFloat
_LARGEST = 1e15  # sums and means can hold it
Score = Annotated[_Number, Field(ge=-_LARGEST, le=_LARGEST)]
Cost = Annotated[_Number, Field(ge=0, le=_LARGEST)]


class EvidenceRecord(BaseModel):
    """A piece of evidence."""

    passage_id: str
    title: str
    sentence: int | None
    text: str

    @classmethod
    def of(cls, item: Evidence) -> EvidenceRecord:
        return cls(passage_id=item.passage.id, title=item.passage.title, sentence=item.sentence, text=item.text)


class Failure(BaseModel):
    """Why a question failed.

    Attributes:
        cause: "reply" (the model's reply could not be parsed), "model" (it could not be reached or failed), "refused"
            (it refused to answer), "prediction" (the program returned something else), "timeout", "worker" (the process
            that executed it ended, several times), or "exception".
    """

    cause: str
    type: str
    message: str
    at: str | None = None  # the line of code that raised


class QuestionRecord(BaseModel):
    """A question of a run: the gold, the program's output, scores and costs."""

    model_config = ConfigDict(frozen=True)

    n: NonNegativeInt  # the number of the question in the dataset, from 0
    id: str
    question: str
    hops: int | None = None
    kind: str | None = None
    gold_answers: tuple[str, ...]
    gold: tuple[str, ...]  # ids of the gold passages
    asked: str = ""  # the hash of the question and its gold as they are written
    gold_not_found: bool = False  # whether a gold passage was looked up without success
    answer: str | None  # None for a failure
    guess: str = ""  # the answer that the program withheld
    evidence: list[EvidenceRecord]
    ranking: list[str]  # ids of all passages seen, best first
    documents: dict[str, str] = {}  # the documents of those that were split from one
    confidence: float | None = None
    status: str = ""  # how the answer was checked
    stop_reason: str = ""
    trace: list[dict[str, Any]] = []
    error: Failure | None = None
    scores: dict[str, Score]
    costs: dict[str, Cost]
    costs_by_agent: dict[str, dict[str, Cost]] = {}
    incidents: dict[str, int] = {}
    attempt: int = 1  # greater than 1 for a retried question
    official: dict[str, Any] | None = None  # the prediction in the terms of the benchmark's official evaluator

    @field_validator("scores")
    @classmethod
    def _possible(cls, scores: dict[str, Score]) -> dict[str, Score]:
        for name, value in scores.items():
            if name in METRICS and METRICS[name].kind == "percent" and not 0 <= value <= 1:
                raise ValueError(f"{name} is between 0 and 1, but is {value}")
        return scores

    def same_question(self, other: QuestionRecord) -> bool:
        """Whether two records are of one question with one gold, as far as both tell."""
        told = (((each.id,), (each.question,), each.gold_answers, (each.asked,)) for each in (self, other))
        return all(own == theirs for own, theirs in zip(*told, strict=True) if any(own) and any(theirs))

    def counted(self, ids: Iterable[str]) -> list[str]:
        """What passages count as, each once: itself if it is gold, else its document."""
        gold = set(self.gold)
        return list(dict.fromkeys(id if id in gold else self.documents.get(id, id) for id in ids))

    def to_json(self) -> str:
        """One line; fields that were never set are left out."""
        return json.dumps(self.model_dump(exclude_unset=True), separators=(",", ":"), allow_nan=False)


class RunFolder:
    """The folder of an evaluation run that this process writes: unbuffered, so that a record survives a kill."""

    def __init__(self, path: Path, questions: int, file: Any) -> None:
        self.path, self.questions, self._file = path, questions, file
        self._offsets = np.full(questions, -1, dtype=np.int64)
        for offset, line in _lines(path / PREDICTIONS, questions):
            self._offsets[line["n"]] = offset

    @classmethod
    @contextmanager
    def opened(cls, path: Path, manifest: RunManifest) -> Iterator[Self]:
        """The folder, new or of the same run, without the partial line that a kill may have left."""
        with (
            claimed(path, manifest.to_json(), lambda: RunManifest.read(path).to_json(), beside=(ACCOUNT,)),
            (path / PREDICTIONS).open("a+b", buffering=0) as file,
        ):
            cut_half_line(file)
            yield cls(path, manifest.questions.count, file)

    def has(self, n: int) -> bool:
        """Whether a question has a record."""
        return bool(self._offsets[n] >= 0)

    def forget(self, n: int) -> None:
        """Have a question executed again; its last record counts."""
        self._offsets[n] = -1

    def append(self, record: QuestionRecord) -> None:
        """Write a record; when this returns, the record survives the process."""
        try:
            kept = os.path.samestat((self.path / PREDICTIONS).stat(), os.fstat(self._file.fileno()))
            (self.path / SUMMARY).unlink(missing_ok=True)
        except OSError:
            kept = False
        if not kept:  # nothing that is asked from here on could be kept
            raise RunError(
                f"The folder {self.path} or its {PREDICTIONS} was removed or is closed to us: stopped at once."
            )
        offset = self._file.seek(0, os.SEEK_END)
        text = memoryview(record.to_json().encode() + b"\n")
        try:
            while text:
                text = text[self._file.write(text) :]
        except BaseException:  # full disk, Ctrl-C: no record may follow half of this one
            self._file.truncate(offset)
            raise
        self._offsets[record.n] = offset

    def records(self) -> Iterator[QuestionRecord]:
        """The records in the order of the questions, one in memory at a time."""
        offsets = self._offsets[self._offsets >= 0].tolist()
        return (_record(self.path, line) for line in _at(self.path / PREDICTIONS, offsets))


def read_manifest(path: Path) -> RunManifest:
    return RunManifest.read(path)


def read_summary(path: Path) -> dict[str, Any]:
    """The summary of a finished run."""
    return read_json(path / SUMMARY, f"The run {path} is not finished: start it again to finish it.")


def read_records(path: Path) -> Iterator[QuestionRecord]:
    """The records of a run, finished or not, in the order of the questions."""
    return (_record(path, line) for line in read_lines(path))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """`read_records` without validation."""
    offsets = {line["n"]: offset for offset, line in _lines(path / PREDICTIONS, read_manifest(path).questions.count)}
    return _at(path / PREDICTIONS, [offsets[n] for n in sorted(offsets)])


def _at(path: Path, offsets: list[int]) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for offset in offsets:
            file.seek(offset)
            yield json.loads(file.readline())


def _record(path: Path, line: dict[str, Any]) -> QuestionRecord:
    try:
        return QuestionRecord.model_validate(line)
    except ValidationError as error:
        raise RunError(
            f"{path / PREDICTIONS}: the record of question {line['n']} is damaged ({first_error(error)}). {_DELETE}"
        ) from error


def _lines(path: Path, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The complete lines of a run of ``count`` questions, each with its offset in bytes."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, text in enumerate(bounded_lines(file, LARGEST_JSON), 1):
                if text is not None and not text.endswith(b"\n"):
                    return  # being written, or cut off by a kill
                try:
                    line = _placed(text, count)
                except (ValueError, RecursionError) as error:
                    raise RunError(f"{path}, line {number} is damaged ({error}). {_DELETE}") from error
                yield offset, line
                offset = file.tell()
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no {PREDICTIONS}: it is not the folder of a run.") from None


_DELETE = "Delete the line to have its question executed again, or choose another --out."


def _placed(text: bytes | None, count: int) -> dict[str, Any]:
    """The object of a line, of one of ``count`` questions."""
    if text is None:
        raise ValueError(f"it is longer than {LARGEST_JSON >> 20} MB")
    line = json.loads(text)
    if not isinstance(line, dict) or not isinstance(line.get("id"), str):
        raise ValueError("it is not the record of a question")
    if type(line.get("n")) is not int or not 0 <= line["n"] < count:
        raise ValueError(f"its n is not the number of one of {count:,} questions")
    return line
