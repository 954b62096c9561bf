"""Saving a program as an artifact: whole or not at all, and never one that could not be loaded again."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import dspy

from ...engines.endpoint import unguarded
from ...engines.models import roles
from ...engines.secrets import SECRET, SHORTEST
from ...programs import name_of, new_program, retriever_of
from ...programs.exemplars import ExemplarMemory
from ...programs.search import retriever_kind
from ...programs.tunable import Tunable
from .agents import agent_hashes, agent_state
from .files import ArtifactError, encode, hash_of, parse, read_bytes
from .loading import PACKAGES, estimator_hash, restored
from .provenance import Provenance
from .reading import read
from .schema import EXEMPLARS, EXEMPLARS_HEADER, MANIFEST, STATE, STUDY, VERSION, Manifest, State, memory_file

_PRIVATE = re.compile(f"{SECRET.pattern}|HEADER|BASE|URL|ENDPOINT", re.IGNORECASE)


def save(program: dspy.Module, dir: str | Path, *, provenance: Provenance | None = None) -> Path:
    """Write a program's prompts, demos, exemplars and tunables to a folder, with where they come from.

    The folder appears whole, in the place of the artifact that was there. Of language models only the names get in.

    Args:
        dir: A new or empty folder, or an artifact, which is replaced.

    Returns:
        The folder.

    Raises:
        ArtifactError: the folder holds something else, cannot be written, or would not load into the same program.
    """
    if not isinstance(program, dspy.Module):
        raise ArtifactError(f"only a DSPy program can be saved, not {type(program).__name__}")
    target = Path(dir).absolute().resolve()
    files = _files(program, provenance or Provenance())
    unfinished = target.with_name(f".{target.name}.{uuid4().hex[:8]}.unfinished")
    try:
        _refuse_strangers(target)
        unfinished.mkdir(parents=True)
        for name, data in files.items():
            _write(unfinished / name, data)
        _refuse_misfit(unfinished, program)
        _put(unfinished, target)
    except OSError as error:
        raise ArtifactError(f"cannot write the artifact {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)  # half of this one, or what was there before
    return Path(dir)


def dump(program: dspy.Module) -> tuple[State, dict[str, ExemplarMemory]]:
    """The parameters of a program, and its exemplar memories, by name.

    Raises:
        ArtifactError: one of them holds what JSON cannot.
    """
    return _dump(dict(program.named_parameters()))


def _dump(parameters: Mapping[str, Any]) -> tuple[State, dict[str, ExemplarMemory]]:
    found: dict[str, dict[str, Any]] = {"agents": {}, "tunables": {}, "memories": {}, "others": {}}
    memories: dict[str, ExemplarMemory] = {}
    for name, parameter in parameters.items():
        if isinstance(parameter, dspy.Predict):
            found["agents"][name] = agent_state(name, parameter)
        elif isinstance(parameter, Tunable):
            found["tunables"][name] = parameter.dump_state()
        elif isinstance(parameter, ExemplarMemory):
            memories[name] = parameter
            found["memories"][name] = EXEMPLARS if len(memories) == 1 else f"exemplars-{len(memories)}.jsonl"
        else:
            found["others"][name] = parameter.dump_state()
    return State.model_validate(found), memories


def _files(program: dspy.Module, provenance: Provenance) -> dict[str, bytes]:
    """The content of an artifact by file name, the manifest last."""
    state, memories = dump(program)
    files = {STATE: encode(state.model_dump(by_alias=True), "the program")}
    for name, memory in memories.items():
        records = [EXEMPLARS_HEADER, *(exemplar.to_record() for exemplar in memory.exemplars)]
        encode(records, f"the exemplars {name}")
        files[state.memories[name]] = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in records).encode()
    if provenance.study is not None:
        files[STUDY] = encode(dict(provenance.study), "the study")
    models = {role: predictors[0].lm or dspy.settings.lm for role, predictors in roles(program).items()}
    manifest = {
        "polyhop": "artifact",
        "version": VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in PACKAGES},
        "program": {
            "name": name_of(program),
            "class": type(program).__qualname__,
            "retriever": retriever_kind(program),
            "complexity": estimator_hash(),
        },
        "lms": {role: getattr(model, "model", None) for role, model in models.items()},
        "agents": {name: agent_hashes(agent) for name, agent in state.agents.items()},
        **provenance.to_record(),
        "files": {name: hash_of(data) for name, data in files.items()},
    }
    manifest = parse(encode(manifest, "where it comes from"), MANIFEST)
    manifest["hash"] = hash_of(manifest)
    Manifest.model_validate(manifest)
    files[MANIFEST] = encode(manifest, MANIFEST)
    _refuse_secrets(files, models.values())
    return files


def _refuse_misfit(unfinished: Path, program: dspy.Module) -> None:
    """See that what was written loads as the same, into a program of its class as it is without tuning."""
    name = name_of(program)
    fresh = program if name is None else new_program(name, retriever_of(program))
    try:
        loaded = restored(read(unfinished), dict(fresh.named_parameters()), type(program).__name__)
    except ArtifactError as error:
        reason = str(error).removeprefix(str(unfinished)).lstrip(": ")
        raise ArtifactError(f"the program cannot be saved as it is, for it could not be loaded: {reason}") from error
    if _values(loaded) != _values(dict(program.named_parameters())):
        raise ArtifactError("the program cannot be saved: what was loaded again is not the same")


def _values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All that is loaded: ranges are not, they are those of the code."""
    state = _dump(parameters)[0]
    return {**state.model_dump(), "tunables": {name: each.value for name, each in state.tunables.items()}}


def _refuse_secrets(files: Mapping[str, bytes], models: Iterable[Any]) -> None:
    """No key, header or endpoint of a model may get in, be it by way of a demo or of what is told about a run."""
    for model in map(unguarded, models):
        for setting, value in (getattr(model, "kwargs", None) or {}).items():
            texts = list(_texts(value)) if _PRIVATE.search(setting) else []
            if any(text.encode() in data for text in texts for data in files.values()):
                raise ArtifactError(
                    f"the artifact would hold the {setting} of a language model: look for it in the demos, and in what "
                    "is told about the run"
                )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) >= SHORTEST:
        yield value
        yield json.dumps(value, ensure_ascii=False)[1:-1]
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


# --- files -----------------------------------------------------------------------------------------------------------


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _refuse_strangers(target: Path) -> None:
    """Nothing but an artifact is replaced."""
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError(f"{target} is a file: name a folder")
    names = sorted(entry.name for entry in target.iterdir())
    strangers = [name for name in names if name not in (MANIFEST, STATE, STUDY) and not memory_file(name)]
    if names and (strangers or not _is_artifact(target)):
        holds = ", ".join((strangers or names)[:3])
        raise ArtifactError(f"{target} is no artifact, or holds other files too ({holds}): name another folder")


def _is_artifact(path: Path) -> bool:
    """Whether a manifest says so; a damaged one may be replaced."""
    try:
        value = parse(read_bytes(path / MANIFEST), MANIFEST)
    except ArtifactError:
        return False
    return isinstance(value, dict) and value.get("polyhop") == "artifact"


def _put(unfinished: Path, target: Path) -> None:
    """Put a folder in its place; what was there is in the other place then."""
    if not target.exists():
        os.rename(unfinished, target)
    elif not _exchange(unfinished, target):
        # Where the system cannot exchange two folders, a process that is killed just here leaves the old artifact
        # under this name.
        before = unfinished.with_suffix(".before")
        os.rename(target, before)
        os.rename(unfinished, target)
        shutil.rmtree(before)
    with suppress(OSError):  # not every system can
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, so that at no time there is none; False where the system has no such call."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
