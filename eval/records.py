"""The files of an evaluation run.

RUN/manifest.json        `RunManifest`: settings and provenance
RUN/predictions.jsonl    one `RunRecord` per line, in the order of completion
RUN/summary.json         written last: a run that has one is finished
RUN/spent.json           with a budget: what all processes spent on the run
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

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
from .folder import ACCOUNT, PREDICTIONS, RunError, claimed, cut_half_line
from .metrics import METRICS
from .settings import RunManifest

read_manifest = RunManifest.read

# Sums and means can hold these. A whole number stays one.
Score = Annotated[StrictInt | StrictFloat, Field(ge=-1e15, le=1e15)]
Cost = Annotated[StrictInt | StrictFloat, Field(ge=0, le=1e15)]
Probability = Annotated[float, Field(ge=0, le=1)]


class EvidenceRecord(BaseModel):
    """A piece of evidence."""

    passage_id: str
    title: str
    sentence: int | None
    text: str


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


class RunRecord(BaseModel):
    """A question of a run: the gold, the program's output, scores and costs."""

    model_config = ConfigDict(frozen=True)

    n: NonNegativeInt  # the number of the question in the dataset, from 0
    id: str
    question: str
    hops: Annotated[int, Field(ge=0, le=1_000)] | None = None
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
    confidence: Probability | None = None
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

    def same_question(self, other: RunRecord) -> bool:
        """Whether two records are of one question with one gold, as far as both tell."""
        told = (((each.id,), (each.question,), each.gold_answers, (each.asked,)) for each in (self, other))
        return all(own == theirs for own, theirs in zip(*told, strict=True) if any(own) and any(theirs))

    @property
    def cached(self) -> bool:
        """Whether DSPy's cache gave some of the replies: they have no tokens and no price, and took no time."""
        asked = sum(each.get("lm_calls", 0) for each in self.costs_by_agent.values())
        return self.costs.get("lm_calls", 0) > asked

    def counted(self, ids: Iterable[str]) -> list[str]:
        """What passages count as, each once: itself if it is gold, else its document."""
        gold = set(self.gold)
        return list(dict.fromkeys(id if id in gold else self.documents.get(id, id) for id in ids))

    def in_brief(self) -> RunRecord:
        """Without its trace and evidence, to keep in memory."""
        return self.model_copy(update={"trace": [], "evidence": [], "ranking": [], "documents": {}})

    def to_json(self) -> str:
        """One line; fields that were never set are left out."""
        return json.dumps(self.model_dump(exclude_unset=True), separators=(",", ":"), allow_nan=False)


@contextmanager
def opened(path: Path, manifest: RunManifest) -> Iterator[None]:
    """Hold the folder, new or of the same run, without the partial line that a kill may have left."""
    with claimed(path, manifest.to_json(), lambda: RunManifest.read(path).to_json(), beside=(ACCOUNT,)):
        _check_file(path / PREDICTIONS)
        with (path / PREDICTIONS).open("a+b") as file:
            cut_half_line(file)
        yield


def append(path: Path, record: RunRecord) -> None:
    """Write a record; when this returns, it survives the process. The last record of a question counts."""
    try:
        with (path / PREDICTIONS).open("ab") as file:
            file.write(record.to_json().encode() + b"\n")
    except OSError as error:  # what is asked from here on could not be kept
        raise RunError(f"Stopped: {path / PREDICTIONS} cannot be written: {error.strerror}.") from error


def read_records(path: Path) -> Iterator[RunRecord]:
    """The records of a run, finished or not, in the order of the questions, one in memory at a time."""
    for line in read_lines(path):
        try:
            yield RunRecord.model_validate(line)
        except ValidationError as error:
            told = f"the record of question {line['n']} is damaged ({first_error(error)})"
            raise RunError(f"{path / PREDICTIONS}: {told}. {DELETE}") from error


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """`read_records` without validation."""
    offsets = _offsets(path / PREDICTIONS, RunManifest.read(path).questions.count)
    with (path / PREDICTIONS).open("rb") as file:
        for _, offset in sorted(offsets.items()):
            file.seek(offset)
            yield json.loads(file.readline())


def _check_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is not a file: move it away, or choose another --out.")


DELETE = "Delete the line to have its question executed again, or choose another --out."


def _offsets(path: Path, count: int) -> dict[int, int]:
    """Where the last line of each of ``count`` questions begins, by number."""
    offsets, offset, number = dict[int, int](), 0, 1
    _check_file(path)
    try:
        with path.open("rb") as file:
            for text in bounded_lines(file, LARGEST_JSON):
                if text is not None and not text.endswith(b"\n"):
                    break  # being written, or cut off by a kill
                line = json.loads(text or b"")
                n, id = (line.get("n"), line.get("id")) if isinstance(line, dict) else (None, None)
                if type(n) is not int or not 0 <= n < count or not isinstance(id, str):
                    told = f"its n is not the number of one of {count:,} questions, or it has no id"
                    raise ValueError(f"it is no object, {told}")
                offsets[n] = offset
                offset, number = file.tell(), number + 1
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no {PREDICTIONS}: it is not the folder of a run.") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}, line {number} is damaged ({error}). {DELETE}") from error
    return offsets
