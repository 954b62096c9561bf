"""Artifacts: a tuned program as a folder with one JSON file, with its provenance; and what differs between two.

    polyhop.save(program, "artifacts/hotpotqa", provenance=Provenance(dataset="hotpotqa", ...))
    program = polyhop.load("artifacts/hotpotqa", retriever)
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))

``artifact.json`` has the ``dump_state()`` of every parameter (instructions and demos of agents, tunables, exemplars),
what the program is and how it came to be, and a hash of all that. There is no code, key, endpoint or language model in
it. It may come from anywhere: loading runs nothing from it, and is tried on a copy before the program changes.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..data import files
from ..data.chain import ChainRetriever
from ..data.errors import PolyhopError, first_error
from ..data.passages import Retriever
from ..data.retrievers import follows_chain, retriever_name
from ..data.text import plain, split_sentences
from ..engines.models import roles
from ..engines.secrets import learn_models, without_secrets
from ..eval.folder import content, flat, write_json
from ..programs import PROGRAMS, name_of, new_program, retriever_of
from ..programs.agent import shown_demos
from ..programs.search import retriever_kind

FORMAT = 3
ARTIFACT = "artifact.json"
PACKAGES = ("polyhop", "dspy")

State = dict[str, dict[str, Any]]
"""The state of each parameter, by its name in the program."""


class ArtifactError(PolyhopError):
    """An artifact cannot be saved, read, or loaded into a program; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message)[:1_500])  # an artifact's names must not control the terminal, nor fill it


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
    """How a program came to be; everything is optional. ``scores`` are by split and metric, ``spent`` is such as
    ``{"lm_calls": 1200, "cost_usd": 0.8, "minutes": 12.5}``, ``settings`` are those of the run, as JSON."""

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


class Artifact(_Record):
    """The content of the file. Loading checks whether it fits a program."""

    path: Path = Field(default=Path(), exclude=True)  # the folder
    format: int = FORMAT
    created: str
    versions: dict[str, str]
    program: Saved
    lms: dict[str, str | None]
    provenance: Provenance
    state: State
    hash: str = ""


class _Signature(_Record):
    instructions: str
    fields: list[dict[str, str]]


class _Agent(_Record):
    """The state of an agent. DSPy would also load models, which may name addresses and classes."""

    signature: _Signature
    demos: list[dict[str, Any]]
    fields: dict[str, Any] = {}


def save(program: dspy.Module, dir: str | Path, *, provenance: Provenance | None = None) -> Path:
    """Write a program's prompts, demos, exemplars and tunables to a folder; of language models only the names. An older
    artifact is replaced at once: whenever the process is killed, the folder has one of the two.

    Returns:
        The folder.

    Raises:
        ArtifactError: the folder cannot be written, or what is saved would contain a key.
    """
    models = {role: predictors[0].lm or dspy.settings.lm for role, predictors in roles(program).items()}
    try:
        saved = Artifact(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={package: version(package) for package in PACKAGES},
            program=Saved(name=name_of(program), kind=type(program).__qualname__, retriever=retriever_kind(program)),
            lms={role: getattr(model, "model", None) for role, model in models.items()},
            provenance=provenance or Provenance(),
            state=dump(program),
        ).model_dump(exclude={"hash"})
        text = json.dumps(saved, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"the program cannot be saved: {error}") from error
    learn_models(program)
    if without_secrets(text) != text:
        raise ArtifactError(f"{ARTIFACT} would contain a key or what looks like one: check the demos and provenance")
    try:
        Path(dir).mkdir(parents=True, exist_ok=True)
        write_json(Path(dir, ARTIFACT), {**saved, "hash": hash_of(saved)})
    except OSError as error:
        raise ArtifactError(f"cannot write the artifact {dir}: {error.strerror or error}") from error
    return Path(dir)


def dump(program: dspy.Module) -> State:
    """The state of every parameter as JSON, without models. Of demos it has what prompts show."""
    state: State = {}
    for name, parameter in program.named_parameters():
        if isinstance(parameter, dspy.Predict):
            demos = [dict(demo) for demo in shown_demos(parameter.signature, parameter.demos)]
            fields = {"fields": parameter.fields} if parameter.fields else {}
            state[name] = {"signature": parameter.signature.dump_state(), "demos": demos, **fields}
        else:
            state[name] = parameter.dump_state()
    as_json: State = json.loads(json.dumps(state, allow_nan=False))
    return as_json


def read(dir: str | Path) -> Artifact:
    """The artifact in a folder: unchanged, and of this format.

    Raises:
        ArtifactError: there is none, or it is damaged, of another format, or was changed since it was saved.
    """
    path, file = Path(dir), Path(dir, ARTIFACT)
    try:
        files.check_unlinked(path)
        value = files.read_json(file)
        if not isinstance(value, dict) or type(value.get("format")) is not int:
            raise ArtifactError(f"{file} is damaged: it is of another kind")
        if value["format"] != FORMAT:
            advice = f"this version reads {FORMAT}: use it with that version, or tune again"
            raise ArtifactError(f"{path} was saved by another version, with format {value['format']}; {advice}")
        artifact = Artifact.model_validate(value)
        same = hash_of({name: item for name, item in value.items() if name != "hash"}) == artifact.hash
    except (FileNotFoundError, NotADirectoryError):
        run = f"; its program is {path / 'best'}" if (path / "best" / ARTIFACT).exists() else ""
        raise ArtifactError(f"{path} is not an artifact: it has no {ARTIFACT}{run}") from None
    except (OSError, ValueError, RecursionError) as error:
        why = first_error(error) if isinstance(error, ValidationError) else getattr(error, "strerror", None) or error
        raise ArtifactError(f"{file} is damaged or cannot be read: {why}") from error
    if not same:
        raise ArtifactError(f"{file} was changed after it was saved: save again")
    return artifact.model_copy(update={"path": path})


def load(dir: str | Path, retriever: Retriever | None = None, *, program: dspy.Module | None = None) -> dspy.Module:
    """The program of an artifact, without a language model: give it one with ``set_lm`` or ``dspy.configure``.

    Args:
        dir: The folder.
        retriever: Where the program searches, if it does, of the kind it was tuned with; None if questions bring their
            passages.
        program: A program of your own class to load into, with its own retriever; it is also returned.

    Warns:
        ArtifactWarning: it fits, but was saved by another version, or tuned with another kind of retriever.

    Raises:
        ArtifactError: it is none, changed since it was saved, of another format, or does not fit this version's
            program. The program is unchanged.
    """
    artifact = read(dir)
    if program is None:
        program = build(artifact, retriever)
    elif retriever is not None:
        raise ArtifactError("give a retriever or a program, not both: the program has its own retriever")
    if differences := restore(artifact, program):
        warnings.warn(f"{artifact.path} differs: {'; '.join(differences)}", ArtifactWarning, stacklevel=2)
    return program


def build(artifact: Artifact, retriever: Retriever | None) -> dspy.Module:
    """The untuned program that an artifact names."""
    of, path = artifact.program, artifact.path
    kind, name = PROGRAMS.get(of.name or ""), (of.name or of.kind)[:80]
    if kind is None:
        what = "an unknown program" if of.name else "a program of your own class"
        raise ArtifactError(
            f"{path} has {what} {name!r}: load your own with polyhop.load(dir, program=...), or on the command line as "
            f"FILE.py:NAME={path}; update polyhop for others"
        )
    if kind.searches:
        if retriever is None and follows_chain(of.retriever):
            retriever = ChainRetriever()
        other = retriever_name(retriever)
        if follows_chain(of.retriever) != follows_chain(other):
            advice = "a ChainRetriever" if follows_chain(of.retriever) else "no ChainRetriever"
            raise ArtifactError(
                f"{path} was tuned with the retriever {of.retriever[:80]}, not {other}: give it {advice}"
            )
    return new_program(str(of.name), retriever)


def restore(artifact: Artifact, program: dspy.Module) -> list[str]:
    """Load an artifact into a program, in place; returns what is different, but harmless."""
    path, state, versions = artifact.path, artifact.state, artifact.versions
    try:
        load_state(program, state)
    except ValueError as error:
        saved = " and ".join(f"{name} {versions.get(name)}" for name in PACKAGES)
        raise ArtifactError(
            f"{path} does not fit {type(program).__name__} of this version: {error}; load it into a "
            f"{artifact.program.kind[:80]} with {saved[:80]}, or tune again"
        ) from error
    differences = []
    for name in PACKAGES:
        if versions.get(name) != version(name):
            differences.append(f"it was saved with {name} {versions.get(name)}, this is {version(name)}")
    kind = retriever_kind(program)
    if retriever_of(program) is not None and kind != artifact.program.retriever:
        differences.append(f"it was tuned with the retriever {artifact.program.retriever}, not {kind}")
    return [plain(difference)[:200] for difference in differences]


def load_state(program: dspy.Module, state: State) -> None:
    """Load the state of every parameter, in place; agents keep their models. Weights of the chain that an earlier
    version did not have keep their defaults; those that only it had are left out.

    Raises:
        ValueError: it does not fit. The program is unchanged.
    """
    names = {name for name, _ in program.named_parameters()}
    if other := {name for name in names ^ state.keys() if ".chain[" not in name}:
        raise ValueError(f"only one of them has {', '.join(sorted(other))}")
    for target in (program.deepcopy(), program):  # the copy raises before anything is changed
        for name, parameter in target.named_parameters():
            if name in state:
                _load(name, parameter, state[name])


def saved_by_dspy(file: Path) -> State:
    """What DSPy's ``save`` wrote, without models, which may name addresses and classes."""
    state = json.loads(file.read_text("utf-8"))
    return {
        name: {key: value for key, value in part.items() if key in _Agent.model_fields} if "demos" in part else part
        for name, part in state.items()
        if name != "metadata"
    }


def _load(name: str, parameter: Any, state: dict[str, Any]) -> None:
    """Load the state of a parameter; an agent keeps its model."""
    try:
        if not isinstance(parameter, dspy.Predict):
            parameter.load_state(state)
            return
        agent, model, title = _Agent.model_validate(state), parameter.lm, parameter.signature.__name__
        fields = parameter.signature.dump_state()["fields"]
        if [field["prefix"] for field in fields] != [field.get("prefix") for field in agent.signature.fields]:
            raise ValueError("it has other fields")
        demos = [dspy.Example(demo) for demo in agent.demos]
        parameter.load_state({**agent.model_dump(), "demos": demos, "traces": [], "train": [], "lm": None})
        parameter.lm, parameter.signature.__name__ = model, title  # DSPy forgets the name, which errors tell
    except Exception as error:  # a parameter of your own class may raise anything
        raise ValueError(f"{name}: {first_error(error) if isinstance(error, ValidationError) else error}") from error


def hash_of(value: Any) -> str:
    """The SHA-256 of a JSON value in any order of its keys."""
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


# --- what differs ----------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """The lines of a parameter that only the one program has, and those that only the other has."""

    removed: list[str]
    added: list[str]


def diff(before: State, after: State) -> dict[str, Change]:
    """The changes from one program to another, by parameter: sentences of instructions, demos, exemplars, values.

    Raises:
        ArtifactError: a parameter is not one, as in an artifact that somebody wrote by hand.
    """
    try:
        return _changes(*({name: _lines(one) for name, one in state.items()} for state in (before, after)))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtifactError(f"a parameter cannot be compared: {error}") from None


def about(before: Artifact, after: Artifact) -> dict[str, Change]:
    """The changes in how two artifacts came to be: scores, spending, settings, versions, models."""
    records = [flat(artifact.model_dump(exclude={"hash", "state"})) for artifact in (before, after)]
    return _changes(*({name: [shown(value)] for name, value in record} for record in records))


def _changes(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> dict[str, Change]:
    changes = {}
    for name in dict.fromkeys([*before, *after]):
        old, new = Counter(before.get(name, ())), Counter(after.get(name, ()))
        if old != new:
            changes[name] = Change([*(old - new).elements()], [*(new - old).elements()])
    return changes


def _lines(parameter: Mapping[str, Any]) -> list[str]:
    if "value" in parameter:
        return [f"{shown(parameter['value'])} ({range_of(parameter)})"]
    if "exemplars" in parameter:
        return [shown(exemplar) for exemplar in parameter["exemplars"]]
    if "demos" in parameter:
        signature = parameter.get("signature", {})
        fields = [f"{field['prefix']} {field['description']}" for field in signature.get("fields", ())]
        return [*split_sentences(signature.get("instructions", "")), *fields, *map(shown, parameter["demos"])]
    return [f"{name}: {shown(value)}" for name, value in flat(parameter)]


def range_of(tunable: Mapping[str, Any]) -> str:
    """The range in the state of a tunable, as text."""
    choices, log = tunable.get("choices"), " (log)" if tunable.get("log") else ""
    return str(choices) if choices else f"{tunable.get('low')}..{tunable.get('high')}{log}"


def shown(value: Any) -> str:
    """A text as it is, a real number with four significant digits, anything else as JSON."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
