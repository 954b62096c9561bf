"""Artifacts: a tuned program as a folder of JSON, with its provenance.

    polyhop.save(program, "artifacts/hotpotqa", provenance=Provenance(dataset="hotpotqa", ...))
    program = polyhop.load("artifacts/hotpotqa", retriever)
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))

It contains no code, key, endpoint or language model. Loading imports and runs nothing from it: an artifact names a
program of `polyhop.programs.PROGRAMS`, and everything is checked before a parameter changes.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import dspy

from ..data.chain import ChainRetriever
from ..data.errors import PolyhopError
from ..data.passages import Retriever
from ..data.retrievers import OTHER, RETRIEVERS, follows_chain, retriever_name
from ..engines.limits import unlimited
from ..engines.models import roles
from ..engines.secrets import SECRET, SHORTEST
from ..programs import PROGRAMS, Program, name_of, new_program, retriever_of
from ..programs.exemplars import HEADER, Exemplar, ExemplarMemory, read_exemplars
from ..programs.search import retriever_kind
from ..programs.tunable import Tunable
from .artifact_format import (
    EXEMPLARS,
    MANIFEST,
    STATE,
    STUDY,
    VERSION,
    ArtifactError,
    ArtifactWarning,
    Manifest,
    ProgramRecord,
    Provenance,
    Split,
    State,
    TunableState,
    agent_hashes,
    agent_state,
    encode,
    hash_of,
    misfits,
    one_line,
    parse,
    read_bytes,
    restore_agent,
    validate,
)

__all__ = ["Artifact", "ArtifactError", "ArtifactWarning", "Provenance", "Split", "load", "read", "save"]

PACKAGES = ("polyhop", "dspy")

_MEMORY_FILE = re.compile(r"exemplars(-\d{1,3})?\.jsonl")
_PRIVATE = re.compile(f"{SECRET.pattern}|HEADER|BASE|URL|ENDPOINT", re.IGNORECASE)
_MAX_PROBLEMS = 6  # in a message


@dataclass(frozen=True)
class Artifact:
    """The content of a folder: complete, unchanged, and of this schema. Loading checks whether it fits this version's
    program.
    """

    path: Path
    manifest: Manifest
    state: State
    memories: Mapping[str, tuple[Exemplar, ...]] = field(repr=False)
    study: Mapping[str, Any] | None = field(default=None, repr=False)


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
        ArtifactError: the folder has other content, cannot be written, or would not load into the same program.
    """
    if not isinstance(program, dspy.Module):
        raise ArtifactError(f"only a DSPy program can be saved, not {type(program).__name__}")
    target = Path(dir).absolute().resolve()
    files = _files(program, provenance or Provenance())
    new, old = target.with_name(f".{target.name}.{uuid4().hex[:8]}.new"), _old(target)
    try:
        _check_replaceable(target)
        new.mkdir(parents=True)
        for name, data in files.items():
            _write(new / name, data)
        _check_loads(new, program)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        new.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ArtifactError(f"cannot write the artifact {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return Path(dir)


def _old(target: Path) -> Path:
    """Where an artifact is while it is replaced."""
    return target.with_name(f".{target.name}.old")


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def dump(parameters: Mapping[str, Any]) -> tuple[State, dict[str, ExemplarMemory]]:
    """The parameters of a program, and its exemplar memories, by name."""
    found: dict[str, dict[str, Any]] = {"agents": {}, "tunables": {}, "memories": {}, "most": {}, "others": {}}
    memories: dict[str, ExemplarMemory] = {}
    for name, parameter in parameters.items():
        if isinstance(parameter, dspy.Predict):
            found["agents"][name] = agent_state(name, parameter)
        elif isinstance(parameter, Tunable):
            found["tunables"][name] = TunableState(**parameter.dump_state())
        elif isinstance(parameter, ExemplarMemory):
            memories[name] = parameter
            found["memories"][name] = EXEMPLARS if len(memories) == 1 else f"exemplars-{len(memories)}.jsonl"
            if most := parameter.dump_state().get("most"):
                found["most"][name] = most
        else:
            found["others"][name] = parameter.dump_state()
    return State(**found), memories


def _files(program: dspy.Module, provenance: Provenance) -> dict[str, bytes]:
    """The content of an artifact by file name, the manifest last."""
    state, memories = dump(dict(program.named_parameters()))
    files = {STATE: encode(state.model_dump(by_alias=True), "the program")}
    for name, memory in memories.items():
        records = [HEADER, *(exemplar.to_record() for exemplar in memory.exemplars)]
        files[state.memories[name]] = b"".join(encode(each, f"the exemplars {name}", None) for each in records)
    if provenance.study is not None:
        files[STUDY] = encode(provenance.study, "the study")
    models = {role: predictors[0].lm or dspy.settings.lm for role, predictors in roles(program).items()}
    manifest = Manifest(
        **provenance.model_dump(),
        polyhop="artifact",
        version=VERSION,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={package: version(package) for package in PACKAGES},
        program=ProgramRecord(
            name=name_of(program),
            **{"class": type(program).__qualname__},
            retriever=retriever_kind(program),
        ),
        lms={role: getattr(model, "model", None) for role, model in models.items()},
        agents={name: agent_hashes(agent) for name, agent in state.agents.items()},
        files={name: hash_of(data) for name, data in files.items()},
    ).model_dump(by_alias=True, exclude={"hash"})
    encode(manifest, "the provenance")
    files[MANIFEST] = encode({**manifest, "hash": hash_of(manifest)}, MANIFEST)
    _check_secrets(files, models.values())
    return files


def _check_loads(folder: Path, program: dspy.Module) -> None:
    """Check that the files load into an untuned program of the same class, with the same result."""
    name = name_of(program)
    fresh = program if name is None else new_program(name, retriever_of(program))
    try:
        loaded = _restored(read(folder), dict(fresh.named_parameters()), type(program).__name__)
    except ArtifactError as error:
        reason = str(error).removeprefix(str(folder)).lstrip(": ")
        raise ArtifactError(f"the program cannot be saved, since it would not load: {reason}") from error
    if _values(loaded) != _values(dict(program.named_parameters())):
        raise ArtifactError("the program cannot be saved, since it would load with other values")


def _values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that is loaded; ranges of tunables come from the code."""
    state = dump(parameters)[0]
    return {**state.model_dump(), "tunables": {name: each.value for name, each in state.tunables.items()}}


def _check_secrets(files: Mapping[str, bytes], models: Iterable[Any]) -> None:
    """No key, header or endpoint of a model may be written, not even as part of a demo or of the provenance."""
    for model in map(unlimited, models):
        for setting, value in (getattr(model, "kwargs", None) or {}).items():
            texts = list(_texts(value)) if _PRIVATE.search(setting) else []
            if any(text.encode() in data for text in texts for data in files.values()):
                raise ArtifactError(
                    f"the artifact would contain the {setting} of a language model: check the demos and the provenance"
                )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) >= SHORTEST:
        yield value
        yield json.dumps(value, ensure_ascii=False)[1:-1]
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _check_replaceable(target: Path) -> None:
    """Only an artifact may be replaced, a damaged one too."""
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError(f"{target} is a file: choose a folder")
    names = sorted(entry.name for entry in target.iterdir())
    foreign = [name for name in names if name not in (MANIFEST, STATE, STUDY) and not _MEMORY_FILE.fullmatch(name)]
    try:
        value = parse(read_bytes(target / MANIFEST), MANIFEST)
        ours = isinstance(value, dict) and value.get("polyhop") == "artifact"
    except ArtifactError:
        ours = False
    if names and (foreign or not ours):
        others = ", ".join((foreign or names)[:3])
        raise ArtifactError(f"{target} is not an artifact or contains other files ({others}): choose another folder")


# --- reading ---------------------------------------------------------------------------------------------------------


def read(dir: str | Path) -> Artifact:
    path = Path(dir)
    try:
        folder = path if path.is_dir() else _old(path.absolute())
        found = folder.is_dir()
    except (OSError, ValueError):
        found = False
    if not found:
        raise ArtifactError(f"there is no artifact {path}: no such folder")
    manifest = read_manifest(folder)
    for name in (STATE, *manifest.files):
        if name not in manifest.files or not (name in (STATE, STUDY) or _MEMORY_FILE.fullmatch(name)):
            raise ArtifactError(f"{folder / MANIFEST} is damaged: its files are wrong: {name[:80]!r}")
    data = {name: read_bytes(folder / name) for name in manifest.files}
    for name, content in data.items():
        if hash_of(content) != manifest.files[name]:
            raise ArtifactError(f"{folder / name} is incomplete or was changed after it was saved: save again")
    state = validate(State, parse(data[STATE], folder / STATE), folder / STATE)
    for name in state.memories.values():
        if name not in data or not _MEMORY_FILE.fullmatch(name):
            raise ArtifactError(f"{folder / STATE} is damaged: there are no exemplars {name[:80]!r}")
    memories = {name: _exemplars(data[file], folder / file) for name, file in state.memories.items()}
    study = parse(data[STUDY], folder / STUDY) if STUDY in data else None
    if not isinstance(study, dict | None):
        raise ArtifactError(f"{folder / STUDY} is damaged: it is not an object")
    return Artifact(path, manifest, state, memories, study)


def read_manifest(path: Path) -> Manifest:
    file = path / MANIFEST
    if not file.exists():
        raise ArtifactError(f"{path} is not an artifact: it has no {MANIFEST}")
    value = parse(read_bytes(file), file)
    if not isinstance(value, dict) or value.get("polyhop") != "artifact":
        hint = f"; its program is {path / 'best'}" if (path / "best" / MANIFEST).exists() else ""
        raise ArtifactError(f"{path} is not an artifact: its {MANIFEST} is of another kind{hint}")
    if type(value.get("version")) is int and value["version"] != VERSION:
        update = ": update polyhop" if value["version"] > VERSION else ""
        raise ArtifactError(f"{path} has schema {value['version']}; this version reads {VERSION}{update}")
    manifest = validate(Manifest, value, file)
    if hash_of({name: item for name, item in value.items() if name != "hash"}) != manifest.hash:
        raise ArtifactError(f"{file} was changed after it was saved: save again")
    return manifest


def _exemplars(data: bytes, where: Path) -> tuple[Exemplar, ...]:
    try:
        return read_exemplars(data, where)
    except PolyhopError as error:
        raise ArtifactError(str(error)) from error


# --- loading ---------------------------------------------------------------------------------------------------------


def load(dir: str | Path, retriever: Retriever | None = None, *, program: dspy.Module | None = None) -> dspy.Module:
    """The program of an artifact, without a language model: give it one with ``set_lm`` or ``dspy.configure``.

    Args:
        dir: The folder.
        retriever: Where the program searches, of the kind it was tuned with; None if questions bring their passages.
        program: A program of your own class to load into; it is also returned.

    Warns:
        ArtifactWarning: it fits, but was saved by another version, with another kind of retriever, or with other
            ranges of its tunables.

    Raises:
        ArtifactError: it is not an artifact, incomplete, changed since it was saved, of a newer schema, or does not fit
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


def build(
    artifact: Artifact,
    retriever: Retriever | None,
    sparse: Retriever | None = None,
    kind: type[Program] | None = None,
) -> dspy.Module:
    """The untuned program that an artifact names, or of the class ``kind``."""
    of, path = artifact.manifest.program, artifact.path
    kind = kind or _named(artifact)
    if of.retriever == "none":
        if retriever is not None:
            raise ArtifactError(
                f"{path} has the program {of.name or of.kind[:80]}, which does not search: give it no retriever"
            )
        return kind.over()
    if retriever is None and follows_chain(of.retriever):
        retriever = ChainRetriever()
    given = retriever_name(retriever)
    if follows_chain(of.retriever) != follows_chain(given):
        advice = "a ChainRetriever" if follows_chain(of.retriever) else "no ChainRetriever"
        raise ArtifactError(f"{path} was tuned with the retriever {of.retriever}, not {given}: give it {advice}")
    return kind.over(retriever, sparse)


def _named(artifact: Artifact) -> type[Program]:
    """The registered program that an artifact names."""
    of, path = artifact.manifest.program, artifact.path
    own = f"polyhop.load(dir, program=...), or on the command line as MODULE:CLASS={path}"
    if of.name is None:
        raise ArtifactError(f"{path} has a program of your own class {of.kind[:80]!r}: load it with {own}")
    if of.name not in PROGRAMS:
        raise ArtifactError(
            f"{path} has an unknown program {of.name[:80]!r}: update polyhop; or if it is your own, load it with {own}"
        )
    if of.retriever not in (*RETRIEVERS, OTHER, "none") or (of.retriever == "none") == PROGRAMS[of.name].searches:
        raise ArtifactError(f"{path / MANIFEST} is damaged: {of.name} has no retriever {of.retriever[:80]!r}")
    return PROGRAMS[of.name]


def restore(artifact: Artifact, program: dspy.Module) -> list[str]:
    """Load an artifact into a program, in place; returns harmless differences."""
    parameters = dict(program.named_parameters())
    _restored(artifact, parameters, type(program).__name__)  # raises before anything is changed
    differences = [one_line(each) for each in _differences(artifact, program, parameters)]
    for name, parameter in parameters.items():
        _restore(artifact, name, parameter)
    return differences


def _restored(artifact: Artifact, parameters: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Copies of a program's parameters with the values of an artifact."""
    problems = list(_problems(artifact, parameters))
    if problems:
        more = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
        versions = " and ".join(f"{name} {artifact.manifest.versions.get(name, '?')[:40]}" for name in PACKAGES)
        raise ArtifactError(
            f"{artifact.path} does not fit {kind} of this version: {'; '.join(problems[:_MAX_PROBLEMS])}{more}. Load "
            f"it into a {artifact.manifest.program.kind[:80]} with {versions}, or tune again"
        )
    replaced = (dspy.Predict, Tunable, ExemplarMemory)  # loading replaces their values, so a shallow copy is enough
    copies = {
        name: copy.copy(parameter) if isinstance(parameter, replaced) else copy.deepcopy(parameter)
        for name, parameter in parameters.items()
    }
    for name, parameter in copies.items():
        _restore(artifact, name, parameter)
    return copies


def _restore(artifact: Artifact, name: str, parameter: Any) -> None:
    try:
        if isinstance(parameter, dspy.Predict):
            restore_agent(parameter, artifact.state.agents[name])
        elif isinstance(parameter, Tunable):
            parameter.value = artifact.state.tunables[name].value
        elif isinstance(parameter, ExemplarMemory):
            records, most = [each.to_record() for each in artifact.memories[name]], artifact.state.most.get(name, {})
            parameter.load_state({"exemplars": records, "most": most})
        else:
            parameter.load_state(artifact.state.others[name])
    except Exception as error:  # a parameter of your own class may raise anything
        raise ArtifactError(f"{artifact.path}: {_kind(parameter)} {name!r}: {error}") from error


def _problems(artifact: Artifact, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Why an artifact does not fit a program."""
    saved = artifact.state.kinds
    for name, parameter in parameters.items():
        if saved.get(name) != (kind := _kind(parameter)):
            yield f"{kind} {name!r} is not in the artifact"
    for name, kind in saved.items():
        if name not in parameters:
            yield f"{kind} {name!r} is not in this version"
    for name, agent in artifact.state.agents.items():
        if isinstance(parameter := parameters.get(name), dspy.Predict):
            yield from misfits(name, agent.fields, parameter.signature)
    for name, tunable in artifact.state.tunables.items():
        if isinstance(parameter := parameters.get(name), Tunable):
            try:
                copy.copy(parameter).value = tunable.value
            except (ValueError, TypeError, OverflowError) as error:
                yield f"tunable {name!r} {error}"


def _differences(artifact: Artifact, program: dspy.Module, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Harmless differences from when it was saved."""
    manifest = artifact.manifest
    for package in PACKAGES:
        if (then := manifest.versions.get(package)) != (now := version(package)):
            yield f"it was saved with {package} {str(then)[:40]}, this is {now}"
    if name_of(program) != manifest.program.name or type(program).__qualname__ != manifest.program.kind:
        yield f"it was saved from {manifest.program.kind[:80]}, not from {type(program).__qualname__}"
    if retriever_of(program) is not None and retriever_kind(program) != manifest.program.retriever:
        yield f"it was tuned with the retriever {manifest.program.retriever[:80]}, not {retriever_kind(program)}"
    for name, tunable in artifact.state.tunables.items():
        if tunable.range != (now := TunableState(**parameters[name].dump_state()).range):
            yield f"the range of {name} was {tunable.range}, and is {now}"


def _kind(parameter: Any) -> str:
    kinds = {dspy.Predict: "agent", Tunable: "tunable", ExemplarMemory: "exemplar memory"}
    return next((what for kind, what in kinds.items() if isinstance(parameter, kind)), "parameter")
