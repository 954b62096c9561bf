"""Artifacts: a tuned program as two JSON files, with its provenance.

    polyhop.save(program, "artifacts/hotpotqa", provenance=Provenance(dataset="hotpotqa", ...))
    program = polyhop.load("artifacts/hotpotqa", retriever)
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))

``state.json`` is the ``dump_state()`` of every parameter: instructions and demos of agents, tunables, exemplars.
``manifest.json`` says what it is, how it came to be, and has the hashes of both. There is no code, key, endpoint or
language model in it. An artifact may come from anywhere: loading imports and runs nothing from it, and everything is
checked on a copy before a parameter of the program changes.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import dspy
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from ..data import files
from ..data.chain import ChainRetriever
from ..data.errors import PolyhopError, first_error
from ..data.passages import Retriever
from ..data.retrievers import OTHER, RETRIEVERS, follows_chain, retriever_name
from ..data.text import plain
from ..engines.models import roles
from ..engines.secrets import learn_models, without_secrets
from ..eval.settings import content
from ..programs import PROGRAMS, name_of, retriever_of
from ..programs.search import retriever_kind
from ..signatures import NumberedPassages

FORMAT = 2
MANIFEST, STATE = "manifest.json", "state.json"
PACKAGES = ("polyhop", "dspy")

_MAX_BYTES = 16 << 20  # of a file
_MAX_MESSAGE = 1_500  # characters

State = dict[str, dict[str, Any]]
"""The state of each parameter, by its name in the program."""


class ArtifactError(PolyhopError):
    """An artifact cannot be saved, read, or loaded into a program; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(_one_line(message))  # an artifact's names must not control the terminal, nor fill it


class ArtifactWarning(UserWarning):
    """An artifact loads, but something differs from when it was saved."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
    """A mean and the ends of its 95% interval."""

    mean: float
    low: float
    high: float


class Provenance(_Record):
    """How a program came to be; everything is optional.

    Attributes:
        dataset: The benchmark.
        splits: The questions of each split ("train", "val", "test").
        metric: The metric it was tuned for.
        scores: Split -> metric -> score.
        spent: What the run spent, such as ``{"lm_calls": 1200, "cost_usd": 0.8, "minutes": 12.5}``.
        settings: The settings of the run, as JSON; without keys and addresses.
    """

    dataset: str | None = None
    splits: dict[str, Split] = {}
    metric: str | None = None
    scores: dict[str, dict[str, Score]] = {}
    seed: int | None = None
    spent: dict[str, float] = {}
    settings: dict[str, Any] = {}


class Saved(_Record):
    """The program that was saved: its name in `polyhop.programs.PROGRAMS` (None for a class of your own), its class for
    people (it is never imported), and its retriever."""

    name: str | None
    kind: str
    retriever: str


class Manifest(_Record):
    """Everything but the parameters. ``agents`` are hashes of the agents' fields, which the code must have as well;
    ``hash`` covers all the rest, and with ``state`` the other file."""

    polyhop: Literal["artifact"]
    format: int
    created: str
    versions: dict[str, str]
    program: Saved
    lms: dict[str, str | None]
    agents: dict[str, str]
    provenance: Provenance
    state: str
    hash: str = ""


class _Signature(_Record):
    instructions: str
    fields: list[dict[str, str]]


class _Agent(_Record):
    """The state of an agent. DSPy would also load models, which may name addresses and classes."""

    signature: _Signature
    demos: list[dict[str, Any]]
    fields: dict[str, Any] = {}


@dataclass(frozen=True)
class Artifact:
    """The content of a folder: complete, unchanged, and of this format. Loading checks whether it fits a program."""

    path: Path
    manifest: Manifest
    state: State = field(repr=False)


# --- saving ----------------------------------------------------------------------------------------------------------


def save(program: dspy.Module, dir: str | Path, *, provenance: Provenance | None = None) -> Path:
    """Write a program's prompts, demos, exemplars and tunables to a folder; of language models only the names.

    The new files are complete before they replace those of an older artifact; if the process is killed in between,
    `load` reads the older one.

    Args:
        dir: A new or empty folder, or an artifact, which is replaced.

    Returns:
        The folder.

    Raises:
        ArtifactError: the folder has other content or cannot be written, or what is saved would contain a key.
    """
    target = Path(dir).absolute().resolve()
    models = {role: predictors[0].lm or dspy.settings.lm for role, predictors in roles(program).items()}
    data = _encode(dump(program), "the program")
    manifest = Manifest(
        polyhop="artifact",
        format=FORMAT,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={package: version(package) for package in PACKAGES},
        program=Saved(name=name_of(program), kind=type(program).__qualname__, retriever=retriever_kind(program)),
        lms={role: getattr(model, "model", None) for role, model in models.items()},
        agents=_shapes(program),
        provenance=provenance or Provenance(),
        state=sha256(data).hexdigest(),
    ).model_dump(exclude={"hash"})
    written = {STATE: data, MANIFEST: _encode({**manifest, "hash": hash_of(manifest)}, "the provenance")}
    learn_models(program)
    for name, each in written.items():
        if without_secrets(each.decode()) != each.decode():
            raise ArtifactError(f"{name} would contain a key or what looks like one: check the demos and provenance")
    new, old = target.with_name(f".{target.name}.new"), _old(target)
    try:
        names = {entry.name for entry in target.iterdir()} if target.exists() else set()
        if names - {MANIFEST, STATE} or (names and MANIFEST not in names):  # a damaged artifact is replaced, too
            raise ArtifactError(f"{target} is not an artifact or contains other files: choose another folder")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        for name, each in written.items():
            (new / name).write_bytes(each)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        new.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise ArtifactError(f"cannot write the artifact {target}: {error.strerror or error}") from error
    return Path(dir)


def dump(program: dspy.Module) -> State:
    """The state of every parameter as JSON, without models. Passages in demos become the text that prompts show."""
    state: State = {}
    for name, parameter in program.named_parameters():
        if isinstance(parameter, dspy.Predict):
            demos = [
                {key: each.format() if isinstance(each, NumberedPassages) else each for key, each in demo.items()}
                for demo in parameter.demos
            ]
            fields = {"fields": parameter.fields} if parameter.fields else {}
            state[name] = {"signature": parameter.signature.dump_state(), "demos": demos, **fields}
        else:
            state[name] = parameter.dump_state()
    found: State = json.loads(_encode(state, "the program"))
    return found


def _old(target: Path) -> Path:
    """Where an artifact is while it is replaced."""
    return target.with_name(f".{target.name}.old")


# --- reading ---------------------------------------------------------------------------------------------------------


def read(dir: str | Path) -> Artifact:
    path = Path(dir)
    folder = path if os.path.isdir(path) else _old(path.absolute())
    if not os.path.isdir(folder):
        raise ArtifactError(f"there is no artifact {path}: no such folder")
    manifest = read_manifest(folder)
    state = _read(folder / STATE, manifest.state)
    if not all(isinstance(each, dict) for each in state.values()):
        raise ArtifactError(f"{folder / STATE} is damaged: a parameter is not an object")
    return Artifact(path, manifest, state)


def read_manifest(path: Path) -> Manifest:
    file = path / MANIFEST
    if not file.exists():
        raise ArtifactError(f"{path} is not an artifact: it has no {MANIFEST}")
    value = _read(file)
    if value.get("polyhop") != "artifact":
        hint = f"; its program is {path / 'best'}" if (path / "best" / MANIFEST).exists() else ""
        raise ArtifactError(f"{path} is not an artifact: its {MANIFEST} is of another kind{hint}")
    if value.get("format") != FORMAT:
        found = str(value.get("format", 1))[:20]
        advice = f"this version reads {FORMAT}: use it with that version, or tune again"
        raise ArtifactError(f"{path} was saved by another version, with format {found}; {advice}")
    try:
        manifest = Manifest.model_validate(value)
    except ValidationError as error:
        raise ArtifactError(f"{file} is damaged: {first_error(error)}") from error
    if hash_of({name: item for name, item in value.items() if name != "hash"}) != manifest.hash:
        raise ArtifactError(f"{file} was changed after it was saved: save again")
    return manifest


def _read(path: Path, hash: str | None = None) -> dict[str, Any]:
    """The JSON object in a file, whose SHA-256 may be known."""
    try:
        if path.is_symlink():
            raise OSError("it is a symbolic link")
        data = files.read_bytes(path, _MAX_BYTES)
    except FileNotFoundError:
        raise ArtifactError(f"{path.parent} is not a complete artifact: {path.name} is missing") from None
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror or error}") from error
    if hash is not None and sha256(data).hexdigest() != hash:
        raise ArtifactError(f"{path} is incomplete or was changed after it was saved: save again")
    try:
        value = from_json(data, allow_inf_nan=False)
        json.dumps(value, allow_nan=False)  # refuses 1e999
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is damaged: it is not an object")
    return value


# --- loading ---------------------------------------------------------------------------------------------------------


def load(dir: str | Path, retriever: Retriever | None = None, *, program: dspy.Module | None = None) -> dspy.Module:
    """The program of an artifact, without a language model: give it one with ``set_lm`` or ``dspy.configure``.

    Args:
        dir: The folder.
        retriever: Where the program searches, of the kind it was tuned with; None if questions bring their passages.
        program: A program of your own class to load into; it is also returned.

    Warns:
        ArtifactWarning: it fits, but was saved by another version, or tuned with another kind of retriever.

    Raises:
        ArtifactError: it is not an artifact, incomplete, changed since it was saved, of another format, or does not fit
            this version's program. The program is unchanged.
    """
    artifact = read(dir)
    if program is None:
        program = build(artifact, retriever)
    elif retriever is not None:
        raise ArtifactError("give a retriever or a program, not both: the program has its own retriever")
    differences = restore(artifact, program)
    if differences:
        warnings.warn(f"{artifact.path} differs: {'; '.join(differences)}", ArtifactWarning, stacklevel=2)
    return program


def build(artifact: Artifact, retriever: Retriever | None, sparse: Retriever | None = None) -> dspy.Module:
    """The untuned program that an artifact names."""
    of, path = artifact.manifest.program, artifact.path
    kind, name = PROGRAMS.get(of.name or ""), (of.name or of.kind)[:80]
    if kind is None:
        what = "an unknown program" if of.name else "a program of your own class"
        raise ArtifactError(
            f"{path} has {what} {name!r}: load your own with polyhop.load(dir, program=...), or on the command line as "
            f"FILE.py:NAME={path}; update polyhop for others"
        )
    if of.retriever not in (*RETRIEVERS, OTHER, "none") or (of.retriever == "none") == kind.searches:
        raise ArtifactError(f"{path / MANIFEST} is damaged: {name} has no retriever {of.retriever[:80]!r}")
    if not kind.searches:
        if retriever is not None:
            raise ArtifactError(f"{path} has the program {name}, which does not search: give it no retriever")
        return kind.over()
    if retriever is None and follows_chain(of.retriever):
        retriever = ChainRetriever()
    given = retriever_name(retriever)
    if follows_chain(of.retriever) != follows_chain(given):
        advice = "a ChainRetriever" if follows_chain(of.retriever) else "no ChainRetriever"
        raise ArtifactError(f"{path} was tuned with the retriever {of.retriever}, not {given}: give it {advice}")
    return kind.over(retriever, sparse)


def restore(artifact: Artifact, program: dspy.Module) -> list[str]:
    """Load an artifact into a program, in place; returns what is different, but harmless."""
    path, manifest, state = artifact.path, artifact.manifest, artifact.state
    known, shapes = dict(program.named_parameters()), _shapes(program)
    problems = [f"{name} is not in the artifact" for name in known if name not in state]
    problems += [f"{name} is not in this version" for name in state if name not in known]
    problems += [f"the agent {name} has other fields" for name in shapes if manifest.agents.get(name) != shapes[name]]
    if problems:
        saved = " and ".join(f"{name} {manifest.versions.get(name)}" for name in PACKAGES)
        raise ArtifactError(
            f"{path} does not fit {type(program).__name__} of this version; load it into a "
            f"{manifest.program.kind[:80]} with {saved[:80]}, or tune again: {'; '.join(problems)}"
        )
    _apply(state, program.deepcopy(), str(path))  # raises before anything is changed
    _apply(state, program, str(path))
    now = {package: version(package) for package in PACKAGES}
    told = [
        f"it was saved with {name} {manifest.versions.get(name)}, this is {now[name]}"
        for name in PACKAGES
        if manifest.versions.get(name) != now[name]
    ]
    if retriever_of(program) is not None and retriever_kind(program) != manifest.program.retriever:
        told.append(f"it was tuned with the retriever {manifest.program.retriever}, not {retriever_kind(program)}")
    return [_one_line(each) for each in told]


def _apply(state: Mapping[str, Any], program: dspy.Module, where: str) -> None:
    """Load the state of every parameter; agents keep their models."""
    for name, parameter in program.named_parameters():
        try:
            if not isinstance(parameter, dspy.Predict):
                parameter.load_state(state[name])
                continue
            agent = _Agent.model_validate(state[name])
            model, title = parameter.lm, parameter.signature.__name__
            demos = [dspy.Example(demo) for demo in agent.demos]
            parameter.load_state({**agent.model_dump(), "demos": demos, "traces": [], "train": [], "lm": None})
            parameter.lm, parameter.signature.__name__ = model, title  # DSPy forgets the name, which errors tell
        except ValidationError as error:
            raise ArtifactError(f"{where}: agent {name!r} is damaged: {first_error(error)}") from error
        except Exception as error:  # a parameter of your own class may raise anything
            raise ArtifactError(f"{where}: {name}: {error}") from error


def _shapes(program: dspy.Module) -> dict[str, str]:
    """A hash of each agent's fields: their names, types, and whether they are inputs."""
    shapes = {}
    for name, agent in program.named_predictors():
        fields, inputs = agent.signature.fields, agent.signature.input_fields
        shapes[name] = hash_of([[key, key in inputs, str(info.annotation)] for key, info in fields.items()])
    return shapes


def range_of(tunable: Mapping[str, Any]) -> str:
    """The range in the state of a tunable, as text."""
    choices, log = tunable.get("choices"), " (log)" if tunable.get("log") else ""
    return str(choices) if choices else f"{tunable.get('low')}..{tunable.get('high')}{log}"


def _encode(value: Any, what: str) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{what} cannot be saved: {error}") from error


def hash_of(value: Any) -> str:
    """The SHA-256 of a JSON value in any order of its keys."""
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _one_line(text: str) -> str:
    line = plain(text)
    return line if len(line) <= _MAX_MESSAGE else f"{line[:_MAX_MESSAGE]} …"
