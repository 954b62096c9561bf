"""What is in an artifact: a folder of JSON, and nothing in it that could be run.

    manifest.json      what it is, where it comes from, and the hash of every other file
    state.json         the agents (instructions, fields, demos) and the tunables (value and range)
    exemplars.jsonl    the exemplar memory, where the program has one
    study.json         the summary of the search that found it, where there was one

The shapes of the first two are below; exemplars are those of `polyhop.programs.exemplars`, a study is any object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .files import ArtifactError

VERSION = 1
MANIFEST, STATE, EXEMPLARS, STUDY = "manifest.json", "state.json", "exemplars.jsonl", "study.json"
EXEMPLARS_HEADER = {"polyhop": "exemplars", "version": 1}

M = TypeVar("M", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FieldState(_Part):
    """A field of an agent. All but the prefix, which COPRO tunes, is its shape and has to fit the code.

    Attributes:
        type: As prompts name it.
        description: With that of the type.
        schema_: The JSON schema of an output that is no plain text.
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


class AgentState(_Part):
    """What an agent is asked.

    Attributes:
        decisions: DSPy's configuration of decision fields; empty for those who have none.
    """

    instructions: str
    fields: list[FieldState]
    demos: list[dict[str, Any]]
    decisions: dict[str, Any] = {}


class TunableState(_Part):
    value: bool | int | float | str
    low: int | float | None = None
    high: int | float | None = None
    choices: list[bool | int | float | str] = []
    log: bool = False


class State(_Part):
    """The parameters of a program by name, except exemplars.

    Attributes:
        memories: The name of each exemplar memory, and its file.
        others: What else a program of somebody's own has as DSPy parameters, as these dump themselves.
    """

    agents: dict[str, AgentState]
    tunables: dict[str, TunableState]
    memories: dict[str, str] = {}
    others: dict[str, Any] = {}


class ProgramRecord(_Part):
    """Which program it was.

    Attributes:
        name: As in `polyhop.programs.PROGRAMS`; None for a class of somebody's own.
        kind: The name of its class, to be read: nothing is imported by it.
        retriever: A name of `polyhop.data.retrievers.RETRIEVERS`, "other" or "none".
        complexity: The hash of the complexity estimator that came with this version.
    """

    name: str | None
    kind: str = Field(alias="class")
    retriever: str
    complexity: str


class AgentHashes(_Part):
    shape: str
    instructions: str


class SplitRecord(_Part):
    file: str
    count: int
    hash: str


class ScoreRecord(_Part):
    mean: float
    low: float
    high: float


class Manifest(_Part):
    """See `Provenance` for where it comes from; ``hash`` is of all the rest, and so of all files: its identity."""

    polyhop: Literal["artifact"]
    version: int
    created: str
    versions: dict[str, str]
    program: ProgramRecord
    lms: dict[str, str | None]
    agents: dict[str, AgentHashes]
    dataset: str | None
    splits: dict[str, SplitRecord]
    metric: str | None
    scores: dict[str, dict[str, ScoreRecord]]
    seed: int | None
    spent: dict[str, float]
    settings: dict[str, Any]
    files: dict[str, str]
    hash: str


def validate(model: type[M], value: Any, where: Path) -> M:
    """A part of an artifact from its JSON value.

    Raises:
        ArtifactError: it is not what this version writes.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "its content"
        raise ArtifactError(f"{where} is damaged: {place}: {first['msg'].lower()}") from error


def memory_file(name: str) -> bool:
    """Whether this is what the file of an exemplar memory is called: ``exemplars.jsonl``, ``exemplars-2.jsonl``, ..."""
    number = name.removeprefix("exemplars-").removesuffix(".jsonl")
    return name == "exemplars.jsonl" or (name == f"exemplars-{number}.jsonl" and number.isdecimal() and len(number) < 4)
