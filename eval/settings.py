"""The settings of a run: one model that the command line builds, `polyhop.eval.run.evaluate` takes and the manifest
stores. No key and no endpoint is part of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import dspy
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from ..data.errors import first_error
from ..data.files import check_unlinked
from ..data.retrievers import describe_retriever
from ..data.text import plain
from ..engines.limits import LimitedLM
from ..engines.models import roles
from ..programs.tunable import tunables
from .folder import MANIFEST, RunError, read_json
from .gold import asked_hash
from .metrics import OWN, Quantity, own_metrics
from .questions import Questions

if TYPE_CHECKING:
    from ..data.lucene.layout import IndexManifest

SCHEMA = 1
SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "n", "reasoning_effort", "num_ctx"
)  # fmt: skip
_OF_THE_BUILD = ("generation", "chain", "created", "polyhop")  # differ between two builds of the same index


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
    count: NonNegativeInt
    skipped: NonNegativeInt = 0
    hash: str


class ProgramSettings(_Settings):
    """A program: any DSPy module."""

    name: str
    class_name: str = Field(alias="class")  # without its module, which differs between a script and its import
    retriever: str | None = None
    state_hash: str  # of prompts, exemplars and tunables
    tunables: dict[str, Any] = {}
    lms: dict[str, dict[str, Any] | None] = {}  # role -> name and sampling options of its model

    @property
    def retriever_name(self) -> str:
        """The value of --retriever: a manifest has the retriever's class, and the model of its vectors after it."""
        kind, _, vectors = (self.retriever or "").partition(" ")
        if kind == "ChainRetriever":
            return "chain-dense" if vectors else "chain"
        return {"DenseIndex": "dense", "FusedRetriever": "fused"}.get(kind.partition("+")[0], "bm25")

    @classmethod
    def of(cls, program: dspy.Module, name: str = "") -> Self:
        return cls(
            name=name or type(program).__name__.lower(),
            class_name=type(program).__qualname__,  # type: ignore[call-arg]
            retriever=describe_retriever(getattr(getattr(program, "search", None), "retriever", None)),
            state_hash=_state_hash(program),
            tunables={name: tunable.value for name, tunable in tunables(program).items()},
            lms={role: _lm(predictors[0].lm or dspy.settings.lm) for role, predictors in roles(program).items()},
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
        known: dict[str, Any] = {"count": count, "hash": digest}
        if isinstance(questions, Questions):
            known |= {**questions.settings, "skipped": questions.skipped}
            more["dataset"] = questions.dataset
        return cls(
            questions=QuestionSettings(**known),
            index={key: value for key, value in index.to_json().items() if key not in _OF_THE_BUILD} if index else None,
            program=ProgramSettings.of(program, name),
            servers={lm.model: lm.server for lm in models_of(program) if isinstance(lm, LimitedLM)},
            timeout=timeout,
            **more,
        )

    @classmethod
    def read(cls, run: Path) -> RunManifest:
        try:
            if run.is_dir():
                check_unlinked(run)
        except (OSError, ValueError) as error:
            raise RunError(str(error)) from error
        manifest = read_json(run / MANIFEST, f"{run} is not the folder of a run: it has no {MANIFEST}.")
        if manifest.get("schema") != SCHEMA:
            raise RunError(f"{run} is not the folder of an evaluation run, or of another version of polyhop.")
        try:
            read = cls.model_validate(manifest)
        except ValidationError as error:
            raise RunError(f"{run / MANIFEST} is damaged ({first_error(error)}). Choose another --out.") from error
        OWN.update({name: replace(each, label=plain(each.label)) for name, each in read.metrics.items()})
        return read


def files_of(**paths: Path | None) -> dict[str, str]:
    """The files of a manifest: the given paths, absolute."""
    return {name: str(path.absolute()) for name, path in paths.items() if path is not None}


def content(questions: Iterable[dspy.Example]) -> tuple[int, str]:
    """The number of questions, and the hash of questions, gold and pools.

    Raises:
        RunError: one is not an example with a question and an answer, or repeats an id.
    """
    count, digest = 0, blake2b(digest_size=16)
    seen: set[int] = set()  # hashes: a few bytes per question
    for count, example in enumerate(questions, 1):
        if not isinstance(example, dspy.Example) or not isinstance(example.get("question"), str):
            raise RunError(f"Question {count} must be a dspy.Example with a string 'question': {str(example)[:80]!r}.")
        answers = example.get("answers") or [example.get("answer")]
        scored = example.get("answers") != ()
        if scored and (isinstance(answers, str) or not all(isinstance(answer, str) for answer in answers)):
            told = "needs a string 'answer' or a list 'answers', or a --metric of your own"
            raise RunError(f"Question {count} {told}: {str(example)[:80]!r}.")
        if example.get("id") is not None:
            if hash(example.id) in seen:
                raise RunError(f"Question {count} repeats the id {example.id!r}.")
            seen.add(hash(example.id))
        pool = [(passage.id, passage.searched) for passage in example.get("pool") or ()]
        digest.update(json.dumps([str(example.get("id")), asked_hash(example), pool]).encode() + b"\n")
    return count, digest.hexdigest()


def models_of(program: dspy.Module) -> list[Any]:
    """The language models of a program's predictors."""
    return [lm for each in program.predictors() if (lm := each.lm or dspy.settings.lm) is not None]


def _state_hash(program: dspy.Module) -> str:
    state = {}
    for name, parameter in program.named_parameters():
        if isinstance(parameter, dspy.Predict):
            parameter = copy(parameter)
            parameter.lm = None
        state[name] = parameter.dump_state()
    return blake2b(json.dumps(state, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def _lm(lm: dspy.LM | None) -> dict[str, Any] | None:
    """A model's name and sampling options; other options may hold keys and addresses."""
    if lm is None:
        return None
    settings = getattr(lm, "kwargs", None) or {}
    return {"model": lm.model, **{name: settings[name] for name in SAMPLING if settings.get(name) is not None}}
