"""The format of an artifact: a folder of JSON files, with nothing that can run.

    manifest.json      what it is, its provenance, and the hash of every other file
    state.json         agents (instructions, fields, demos) and tunables (value and range)
    exemplars.jsonl    the exemplar memory, if the program has one
    study.json         the summary of the search that found it, if there was one

An artifact may come from anywhere, so reading is strict: every problem is an `ArtifactError`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

import dspy
from dspy.adapters.utils import get_annotation_name, serialize_for_json
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator
from pydantic_core import from_json

from ..data import files
from ..data.errors import PolyhopError, first_error
from ..eval.settings import content
from ..eval.statistics import Interval

VERSION = 1
MANIFEST, STATE, EXEMPLARS, STUDY = "manifest.json", "state.json", "exemplars.jsonl", "study.json"
ADAPTERS = (dspy.ChatAdapter(), dspy.JSONAdapter())

_MAX_BYTES = 16 << 20  # of a file
_MAX_MESSAGE = 1_500  # characters

M = TypeVar("M", bound=BaseModel)


class ArtifactError(PolyhopError):
    """An artifact cannot be saved, read, or loaded into a program; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ArtifactWarning(UserWarning):
    """An artifact loads, but something differs from when it was saved."""


# --- schemas ---------------------------------------------------------------------------------------------------------


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FieldState(_Record):
    """A field of an agent. All but the prefix, which COPRO tunes, is its shape and must match the code. Only outputs
    that are not plain text have a schema.
    """

    name: str
    role: Literal["input", "output"]
    type: str
    description: str
    schema_: dict[str, Any] | None = Field(alias="schema")
    prefix: str

    @property
    def shape(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude={"prefix"})


class AgentState(_Record):
    """The prompt of an agent; ``decisions`` is DSPy's configuration of decision fields, mostly empty."""

    instructions: str
    fields: list[FieldState]
    demos: list[dict[str, Any]]
    decisions: dict[str, Any] = {}


class TunableState(_Record):
    value: bool | int | float | str
    low: int | float | None = None
    high: int | float | None = None
    choices: list[bool | int | float | str] = []
    log: bool = False

    @property
    def range(self) -> str:
        return str(self.choices) if self.choices else f"{self.low}..{self.high}{' (log)' if self.log else ''}"


class State(_Record):
    """The parameters of a program by name; of an exemplar memory the file, and in ``most`` how many it shows for a
    number of hops, where that is known.
    """

    agents: dict[str, AgentState]
    tunables: dict[str, TunableState]
    memories: dict[str, str] = {}
    most: dict[str, dict[str, int]] = {}
    others: dict[str, Any] = {}

    @property
    def kinds(self) -> dict[str, str]:
        """What each parameter is, by its name."""
        groups: dict[str, Mapping[str, Any]] = {
            "agent": self.agents,
            "tunable": self.tunables,
            "exemplar memory": self.memories,
            "parameter": self.others,
        }
        return {name: kind for kind, group in groups.items() for name in group}


class Split(_Record):
    """The questions of a split: the name of their file, how many were used, and a hash of their content."""

    file: str
    count: int
    hash: str

    @classmethod
    def of(cls, file: Path | str, questions: Iterable[dspy.Example]) -> Split:
        count, hash = content(questions)
        return cls(file=Path(file).name, count=count, hash=hash)


class Score(_Record):
    mean: float
    low: float
    high: float


class Provenance(_Record):
    """How a program came to be; everything is optional.

    Attributes:
        dataset: The benchmark.
        splits: The questions of each split ("train", "val", "test").
        metric: The metric it was tuned for.
        scores: Split -> metric -> mean and interval (`polyhop.eval.statistics.Interval`). NaN is left out.
        seed: The seed of the run.
        spent: What the run spent, such as ``{"lm_calls": 1200, "cost_usd": 0.8, "minutes": 12.5}``.
        settings: The settings of the run, as JSON; without keys and addresses.
        study: The summary of the search over the tunables, as JSON; in a file of its own.
    """

    dataset: str | None = None
    splits: dict[str, Split] = {}
    metric: str | None = None
    scores: Mapping[str, Mapping[str, Score | Interval]] = {}
    seed: int | None = None
    spent: dict[str, float] = {}
    settings: dict[str, Any] = {}
    study: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)

    @field_validator("scores", mode="before")
    @classmethod
    def _from_intervals(cls, scores: Any) -> Any:
        if not isinstance(scores, Mapping) or not all(isinstance(each, Mapping) for each in scores.values()):
            return scores
        return {
            split: {
                name: Score(mean=score.mean, low=score.low, high=score.high) if isinstance(score, Interval) else score
                for name, score in each.items()
                if not (isinstance(score, Interval) and math.isnan(score.mean))
            }
            for split, each in scores.items()
        }


class ProgramRecord(_Record):
    """The program that was saved: its name in `polyhop.programs.PROGRAMS` (None for a class of your own), its class for
    people (it is never imported), and its retriever. ``complexity`` is of earlier versions.
    """

    name: str | None
    kind: str = Field(alias="class")
    retriever: str
    complexity: str | None = None


class AgentHashes(_Record):
    shape: str
    instructions: str


class Manifest(Provenance):
    """Everything but the parameters; ``hash`` covers all the rest, and with it all files."""

    polyhop: Literal["artifact"]
    version: int
    created: str
    versions: dict[str, str]
    program: ProgramRecord
    lms: dict[str, str | None]
    agents: dict[str, AgentHashes]
    files: dict[str, str]
    hash: str = ""


# --- JSON ------------------------------------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """A text safe to print: an artifact's names must not control the terminal, nor fill it."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= _MAX_MESSAGE else f"{line[:_MAX_MESSAGE]} …"


def read_bytes(path: Path) -> bytes:
    try:
        if path.is_symlink():
            raise ArtifactError(f"cannot read {path}: it is a symbolic link")
        return files.read_bytes(path, _MAX_BYTES)
    except FileNotFoundError:
        raise ArtifactError(f"{path.parent} is not a complete artifact: {path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def parse(data: bytes, where: Path | str) -> Any:
    """The JSON value of some bytes."""
    try:
        value = from_json(data, allow_inf_nan=False)
        json.dumps(value, allow_nan=False)  # refuses 1e999
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where} is damaged: {error}") from error
    return value


def validate(model: type[M], value: Any, where: Path) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ArtifactError(f"{where} is damaged: {first_error(error)}") from error


def encode(value: Any, what: str, indent: int | None = 2) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{what} cannot be saved: {error}") from error


def hash_of(value: Any) -> str:
    """The SHA-256 of bytes, of a text, or of a JSON value in any order of its keys."""
    if isinstance(value, bytes):
        return sha256(value).hexdigest()
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


# --- agents ----------------------------------------------------------------------------------------------------------


def agent_state(name: str, predictor: dspy.Predict) -> AgentState:
    """The prompt of a predictor. Values in demos become the JSON that adapters make of them, so that prompts stay the
    same byte for byte.
    """
    demos = []
    for n, demo in enumerate(predictor.demos):
        plain = {key: serialize_for_json(value) for key, value in dict(demo.items()).items()}
        where = f"agent {name!r}, demo {n}"
        encode(plain, where)
        try:
            same = rendered(predictor.signature, plain) == rendered(predictor.signature, demo)
        except Exception as error:
            raise ArtifactError(f"{where} cannot be saved: {error}") from error
        if not same:
            raise ArtifactError(f"{where} cannot be saved: its JSON gives another prompt; use plain values")
        demos.append(plain)
    return AgentState(
        instructions=predictor.signature.instructions,
        fields=field_states(predictor.signature),
        demos=demos,
        decisions=dict(predictor.fields),
    )


def agent_hashes(state: AgentState) -> AgentHashes:
    shape = hash_of([each.shape for each in state.fields])
    return AgentHashes(shape=shape, instructions=hash_of(state.instructions))


def field_states(signature: type[dspy.Signature]) -> list[FieldState]:
    """The fields of a signature, in their order."""
    return [_field_state(name, info) for name, info in signature.fields.items()]


def _field_state(name: str, info: Any) -> FieldState:
    extra = info.json_schema_extra
    types = dspy.Type.extract_custom_type_from_annotation(info.rebuild_annotation())
    role = extra["__dspy_field_type"]
    return FieldState(
        name=name,
        role=role,
        type=get_annotation_name(info.annotation),
        description="\n".join([extra["desc"], *(text for kind in types if (text := kind.description()))]),
        schema=None if role == "input" or info.annotation is str else TypeAdapter(info.annotation).json_schema(),
        prefix=extra["prefix"],
    )


def misfits(name: str, saved: Sequence[FieldState], signature: type[dspy.Signature]) -> Iterator[str]:
    """How the shape of an agent in an artifact differs from the code."""
    ours = {field.name: field for field in field_states(signature)}
    theirs = {field.name: field for field in saved}
    for lost in (each for each in theirs if each not in ours):
        yield f"agent {name!r}: field {lost!r} is not in this version"
    for new in (each for each in ours if each not in theirs):
        yield f"agent {name!r}: field {new!r} is not in the artifact"
    for field in (each for each in ours if each in theirs):
        then, now = theirs[field].shape, ours[field].shape
        if changed := next((key for key in then if then[key] != now[key]), None):
            values = f" ({then[changed]} in the artifact, {now[changed]} here)" if changed in ("role", "type") else ""
            yield f"agent {name!r}: field {field!r} has another {changed}{values}"
    if theirs.keys() == ours.keys() and list(theirs) != list(ours):
        yield f"agent {name!r}: its fields have another order"


def restore_agent(predictor: dspy.Predict, state: AgentState) -> None:
    """Give a predictor a saved prompt. It keeps its language model."""
    model, name, described = predictor.lm, predictor.signature.__name__, predictor.signature.fields
    fields = [
        {"prefix": field.prefix, "description": described[field.name].json_schema_extra["desc"]}
        for field in state.fields
    ]
    predictor.load_state(
        {
            "signature": {"instructions": state.instructions, "fields": fields},
            "demos": [dspy.Example(demo) for demo in state.demos],
            "traces": [],
            "train": [],
            "fields": dict(state.decisions),
            "lm": None,
        }
    )
    predictor.lm = model
    predictor.signature.__name__ = name  # for error messages; DSPy forgets it
    for n, demo in enumerate(predictor.demos):
        try:
            rendered(predictor.signature, demo)
        except Exception as error:
            raise ValueError(f"demo {n} cannot be rendered: {type(error).__name__}: {error}") from error


def rendered(signature: type[dspy.Signature], demo: Mapping[str, Any]) -> list[Any]:
    """The messages of a demo, by each adapter."""
    return [adapter.format_demos(signature, [demo]) for adapter in ADAPTERS]
