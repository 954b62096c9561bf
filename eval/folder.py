"""The folder of a run: what stands in it, and who may write it. Any process can resume a run after a kill.

RUN/manifest.json        `RunManifest`: settings and provenance; optimizations have a manifest of their own
RUN/predictions.jsonl    one `RunRecord` per line, in the order of completion
RUN/summary.json         written last: a run that has one is finished
RUN/spent.json           with a budget: what all processes spent on the run

No key and no endpoint of a provider is in it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TextIO, TypeVar

import dspy
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, ValidationError

from ..data import files
from ..data.errors import PolyhopError, first_error
from ..data.retrievers import describe_retriever
from ..data.text import plain
from ..engines.limits import LimitedLM
from ..engines.models import roles
from ..programs.tunable import tunables
from .gold import asked_hash
from .metrics import OWN, Quantity, own_metrics
from .questions import Questions

if TYPE_CHECKING:
    from ..data.lucene.layout import IndexManifest

M = TypeVar("M", bound=BaseModel)

MANIFEST, PREDICTIONS, SUMMARY = "manifest.json", "predictions.jsonl", "summary.json"
DIAGNOSIS = "diagnosis.json"  # what `polyhop diagnose` found
ACCOUNT = "spent.json"
SCHEMA = 1
SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "n", "reasoning_effort", "num_ctx"
)  # fmt: skip
DELETE = "Delete the line to have its question executed again, or choose another --out."

_NOT_COMPARED = ("created", "files", "metrics", "python", "servers")  # where and when, not what
_NAME = "program.name"  # a tuned program is named after its folder, which may have moved
_OF_THE_BUILD = ("generation", "chain", "created", "polyhop")  # differ between two builds of the same index


class RunError(PolyhopError):
    """A run cannot be started, resumed or read; the message says why and what to do."""


# --- any folder of a run ---------------------------------------------------------------------------------------------


def account(run: Path) -> Path:
    """The file with what a run has spent; creates the run's folder, private to the user."""
    try:
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{run} cannot be the folder of a run: {error}.") from error
    _check_unlinked(run)
    return run / ACCOUNT


def _check_unlinked(run: Path) -> None:
    try:
        files.check_unlinked(run)
    except (OSError, ValueError) as error:
        raise RunError(f"{run} cannot be the folder of a run: {error}.") from error


@contextmanager
def claimed(path: Path, manifest: Mapping[str, Any], read: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Hold the folder of a run for this process alone, and write its manifest if it has none.

    Args:
        path: A new or empty folder, or that of a run with the same manifest.
        manifest: The settings of the run.
        read: Reads those that the folder has.

    Raises:
        RunError: the folder has another run or other files, or another process works on it.
    """
    account(path)
    if not (path / MANIFEST).exists():
        names = sorted(entry.name for entry in path.iterdir())
        strangers = [name for name in names if not name.startswith((".", ACCOUNT.removesuffix("json")))]
        if strangers:
            listed = ", ".join(strangers[:3])
            raise RunError(f"{path} is not the folder of a run, but contains {listed}: choose another --out.")
    try:
        lock = FileLock(path / ".lock").acquire(timeout=0)
    except Timeout:
        raise RunError(f"Another process is working on the run {path}. Wait for it, or choose another --out.") from None
    with lock:
        if not (path / MANIFEST).exists():
            write_json(path / MANIFEST, manifest)
        # Compare with what JSON makes of a value (tuples, keys).
        elif different := _differences(dict(flat(read())), dict(flat(json.loads(json.dumps(manifest))))):
            listed = "\n  ".join(different)
            raise RunError(
                f"The run {path} was started with other settings:\n  {listed}\nRestore its settings, or choose "
                "another --out."
            )
        yield


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The settings that differ, one line each: ``"program.tunables.search.k: 20 before, 5 now"``."""
    names = [name for name in before | now if name.partition(".")[0] not in _NOT_COMPARED]
    pairs = {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}
    if [*pairs] == [_NAME]:
        return []
    texts = {name: ["nothing" if value is None else str(value) for value in pair] for name, pair in pairs.items()}
    return [f"{name}: {old} before, {new} now" for name, (old, new) in texts.items()]


def flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings with their dotted names."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from flat(item, f"{prefix}{name}.")
        else:
            yield prefix + name, item


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A text file that replaces ``path`` at the end of the block; after an exception ``path`` is unchanged."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    with replacing(path) as file:
        file.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from the folder of a run."""
    try:
        value = files.read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"{path.parent} is not the folder of a run: it has no {path.name}.") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: it is not a JSON object.")
    return value


def read_model(model: type[M], path: Path) -> M:
    """Read a JSON object as a model; unknown keys are ignored, so that other versions can be read."""
    try:
        return model.model_validate(read_json(path))
    except ValidationError as error:
        raise RunError(f"{path} is damaged: {first_error(error)}. Choose another --out.") from error


def cut_half_line(file: Any) -> None:
    """Truncate a file after its last line break: the rest was never finished."""
    if file.seek(0, os.SEEK_END):
        with mmap(file.fileno(), 0, access=ACCESS_READ) as whole:
            end = whole.rfind(b"\n") + 1
        file.truncate(end)


# --- the manifest of an evaluation -----------------------------------------------------------------------------------


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, mode="json")


class QuestionSettings(_Settings):
    """Which questions, and the hash of their content."""

    source: str | None = None
    split: str | None = None
    setting: str | None = None
    limit: int | None = None
    seed: int | None = None
    aliases: str | None = None
    count: Annotated[int, Field(ge=0)]
    skipped: Annotated[int, Field(ge=0)] = 0
    hash: str


class ProgramSettings(_Settings):
    """A program: any DSPy module."""

    name: str
    class_name: str = Field(alias="class")  # without its module, which differs between a script and its import
    retriever: str | None = None
    state_hash: str  # of prompts, exemplars and tunables
    tunables: dict[str, Any] = {}
    lms: dict[str, dict[str, Any] | None] = {}  # role -> name and sampling options of its model

    @classmethod
    def of(cls, program: dspy.Module, name: str = "") -> Self:
        return cls(
            name=name or type(program).__name__.lower(),
            class_name=type(program).__qualname__,  # type: ignore[call-arg]
            retriever=describe_retriever(getattr(getattr(program, "search", None), "retriever", None)),
            state_hash=_state_hash(program),
            tunables={name: tunable.value for name, tunable in tunables(program).items()},
            lms={role: _sampling(predictors[0].lm or dspy.settings.lm) for role, predictors in roles(program).items()},
        )


class RunManifest(_Settings):
    """What is evaluated, on what, and its provenance. Two runs with equal settings have the same results, with
    deterministic models."""

    dataset: str | None = None
    questions: QuestionSettings
    index: dict[str, Any] | None = None  # what is searched; None for the questions' own contexts
    program: ProgramSettings
    timeout: float | None = None  # seconds per question
    format: int = Field(default=SCHEMA, alias="schema")
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = Field(
        default_factory=lambda: {package: version(package) for package in ("polyhop", "dspy", "pyserini")}
    )
    python: str = ".".join(map(str, sys.version_info[:3]))
    # Not compared when a run is resumed: the servers of models, by name; the paths of questions, index and program; and
    # the user's own metrics.
    servers: dict[str, dict[str, Any]] = {}
    files: dict[str, str] = {}
    metrics: dict[str, Quantity] = Field(default_factory=own_metrics)

    @classmethod
    def of(
        cls,
        program: dspy.Module,
        questions: Iterable[dspy.Example],
        *,
        name: str = "",
        timeout: float | None = None,
        index: IndexManifest | None = None,
        **more: Any,
    ) -> Self:
        """Describe a run. Iterates over the questions once, to count, check and hash them.

        Args:
            name: The program's name.
        """
        count, digest = content(questions)
        asked: dict[str, Any] = {"count": count, "hash": digest}
        if isinstance(questions, Questions):
            asked |= {**questions.settings, "skipped": questions.skipped}
            more["dataset"] = questions.dataset
        models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
        return cls(
            questions=QuestionSettings(**asked),
            index={key: value for key, value in index.to_json().items() if key not in _OF_THE_BUILD} if index else None,
            program=ProgramSettings.of(program, name),
            servers={lm.model: lm.server for lm in models if isinstance(lm, LimitedLM)},
            timeout=timeout,
            **more,
        )


def read_manifest(run: Path) -> RunManifest:
    if run.is_dir():
        _check_unlinked(run)
    if read_json(run / MANIFEST).get("schema") != SCHEMA:
        raise RunError(f"{run} is not the folder of an evaluation run, or of another version of polyhop.")
    manifest = read_model(RunManifest, run / MANIFEST)
    OWN.update({name: replace(metric, label=plain(metric.label)) for name, metric in manifest.metrics.items()})
    return manifest


def files_of(**paths: Path | None) -> dict[str, str]:
    """The files of a manifest: the given paths, absolute."""
    return {name: str(path.absolute()) for name, path in paths.items() if path is not None}


def content(questions: Iterable[dspy.Example]) -> tuple[int, str]:
    """The number of questions, and the hash of questions, gold and pools.

    Raises:
        RunError: one is not an example with a question and an answer, or repeats an id.
    """
    count, digest = 0, blake2b(digest_size=16)
    ids: set[int] = set()  # hashes: a few bytes per question
    for count, example in enumerate(questions, 1):
        if not isinstance(example, dspy.Example) or not isinstance(example.get("question"), str):
            raise RunError(f"Question {count} must be a dspy.Example with a string 'question': {str(example)[:80]!r}.")
        answers = example.get("answers") or [example.get("answer")]
        scored = example.get("answers") != ()
        if scored and (isinstance(answers, str) or not all(isinstance(answer, str) for answer in answers)):
            needs = "needs a string 'answer' or a list 'answers', or a --metric of your own"
            raise RunError(f"Question {count} {needs}: {str(example)[:80]!r}.")
        if example.get("id") is not None:
            if hash(example.id) in ids:
                raise RunError(f"Question {count} repeats the id {example.id!r}.")
            ids.add(hash(example.id))
        pool = [(passage.id, passage.searched) for passage in example.get("pool") or ()]
        digest.update(json.dumps([str(example.get("id")), asked_hash(example), pool]).encode() + b"\n")
    return count, digest.hexdigest()


def _state_hash(program: dspy.Module) -> str:
    state = {}
    for name, parameter in program.named_parameters():
        if isinstance(parameter, dspy.Predict):
            parameter = copy(parameter)
            parameter.lm = None
        state[name] = parameter.dump_state()
    return blake2b(json.dumps(state, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def _sampling(lm: dspy.LM | None) -> dict[str, Any] | None:
    """A model's name and sampling options; other options may hold keys and addresses."""
    if lm is None:
        return None
    settings = getattr(lm, "kwargs", None) or {}
    return {"model": lm.model, **{name: settings[name] for name in SAMPLING if settings.get(name) is not None}}


# --- the records of an evaluation ------------------------------------------------------------------------------------

# Sums and means can hold these. A whole number stays one.
Score = Annotated[StrictInt | StrictFloat, Field(ge=-1e15, le=1e15)]
Cost = Annotated[StrictInt | StrictFloat, Field(ge=0, le=1e15)]


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

    n: Annotated[int, Field(ge=0)]  # the number of the question in the dataset, from 0
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
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
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

    def same_question(self, other: RunRecord) -> bool:
        """Whether two records are of one question with one gold, as far as both tell."""
        parts = [((record.id,), (record.question,), record.gold_answers, (record.asked,)) for record in (self, other)]
        return all(ours == theirs for ours, theirs in zip(*parts, strict=True) if any(ours) and any(theirs))

    @property
    def cached(self) -> bool:
        """Whether DSPy's cache gave some of the replies: they have no tokens and no price, and took no time."""
        asked = sum(costs.get("lm_calls", 0) for costs in self.costs_by_agent.values())
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
    with claimed(path, manifest.to_json(), lambda: read_manifest(path).to_json()):
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
    offsets = _offsets(path / PREDICTIONS, read_manifest(path).questions.count)
    with (path / PREDICTIONS).open("rb") as file:
        for n, offset in sorted(offsets.items()):
            file.seek(offset)
            try:
                yield RunRecord.model_validate(json.loads(file.readline()))
            except ValidationError as error:
                damage = f"the record of question {n} is damaged ({first_error(error)})"
                raise RunError(f"{path / PREDICTIONS}: {damage}. {DELETE}") from error


def _offsets(path: Path, count: int) -> dict[int, int]:
    """Where the last line of each of ``count`` questions begins, by number."""
    offsets, offset, number = dict[int, int](), 0, 1
    try:
        with path.open("rb") as file:
            for text in files.bounded_lines(file, files.LARGEST_JSON):
                if text is not None and not text.endswith(b"\n"):
                    break  # being written, or cut off by a kill
                line = json.loads(text or b"")
                n, id = (line.get("n"), line.get("id")) if isinstance(line, dict) else (None, None)
                if type(n) is not int or not 0 <= n < count or not isinstance(id, str):
                    why = f"its n is not the number of one of {count:,} questions, or it has no id"
                    raise ValueError(f"it is no object, {why}")
                offsets[n] = offset
                offset, number = file.tell(), number + 1
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no {PREDICTIONS}: it is not the folder of a run.") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}, line {number} is damaged ({error}). {DELETE}") from error
    return offsets
