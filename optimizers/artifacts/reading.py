"""Reading an artifact: what stands in a folder, checked as far as that goes without a program to load it into.

Nothing is run or imported by what stands in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...programs.exemplars import Exemplar
from .files import ArtifactError, hash_of, parse, read_bytes
from .schema import EXEMPLARS_HEADER, MANIFEST, STATE, STUDY, VERSION, Manifest, State, memory_file, validate


@dataclass(frozen=True)
class Artifact:
    """What a folder holds, checked: its hashes are right and it is of this schema. Whether it fits a program of this
    version shows when it is loaded into one.

    Attributes:
        memories: The exemplars of each exemplar memory, by its name.
        study: The summary of the search that found it.
    """

    path: Path
    manifest: Manifest
    state: State
    memories: Mapping[str, tuple[Exemplar, ...]] = field(repr=False)
    study: Mapping[str, Any] | None = field(default=None, repr=False)


def read(dir: str | Path) -> Artifact:
    """
    Raises:
        ArtifactError: it is no artifact, not whole, changed since it was saved, or of a newer schema.
    """
    path = Path(dir)
    try:
        there = path.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise ArtifactError(f"there is no artifact {path}: no such folder")
    manifest = read_manifest(path)
    data = {name: read_bytes(path / name) for name in _names(manifest, path)}
    for name, content in data.items():
        if hash_of(content) != manifest.files[name]:
            raise ArtifactError(f"{path / name} was changed after it was saved, or is not whole: save the program anew")
    state = validate(State, parse(data[STATE], path / STATE), path / STATE)
    for name in state.memories.values():
        if name not in data or name in (STATE, STUDY):
            raise ArtifactError(f"{path / STATE} is damaged: there are no exemplars {name[:80]!r}")
    memories = {name: _exemplars(data[file], path / file) for name, file in state.memories.items()}
    study = parse(data[STUDY], path / STUDY) if STUDY in data else None
    if not isinstance(study, dict | None):
        raise ArtifactError(f"{path / STUDY} is damaged: it holds no object")
    return Artifact(path, manifest, state, memories, study)


def read_manifest(path: Path) -> Manifest:
    """
    Raises:
        ArtifactError: the folder has none, or not a right one.
    """
    file = path / MANIFEST
    if not file.exists():
        raise ArtifactError(f"{path} is no artifact: it has no {MANIFEST}")
    value = parse(read_bytes(file), file)
    if not isinstance(value, dict) or value.get("polyhop") != "artifact":
        hint = f"; name the program in it, {path / 'best'}" if (path / "best" / MANIFEST).exists() else ""
        raise ArtifactError(f"{path} is no artifact: its {MANIFEST} is something else's{hint}")
    if type(value.get("version")) is int and value["version"] > VERSION:
        raise ArtifactError(f"{path} has schema {value['version']}; this version reads {VERSION}: update polyhop")
    manifest = validate(Manifest, value, file)
    if manifest.version != VERSION:
        raise ArtifactError(f"{path} has schema {manifest.version}; this version reads {VERSION}")
    if hash_of({name: item for name, item in value.items() if name != "hash"}) != manifest.hash:
        raise ArtifactError(f"{file} was changed after it was saved: save the program anew")
    return manifest


def _names(manifest: Manifest, path: Path) -> Iterator[str]:
    """The files of an artifact. What the manifest names has to be right beside it, and of a kind that it may have."""
    if STATE not in manifest.files:
        raise ArtifactError(f"{path / MANIFEST} is damaged: it has no {STATE}")
    for name in manifest.files:
        if name not in (STATE, STUDY) and not memory_file(name):
            raise ArtifactError(f"{path / MANIFEST} is damaged: no artifact has a file {name[:80]!r}")
        yield name


def _exemplars(data: bytes, where: Path) -> tuple[Exemplar, ...]:
    header, *lines = data.removesuffix(b"\n").split(b"\n")
    if parse(header, where) != EXEMPLARS_HEADER:
        raise ArtifactError(f"{where} holds no exemplars of version 1")
    found = []
    for number, line in enumerate(lines, 2):
        try:
            found.append(Exemplar.from_record(parse(line, f"{where}, line {number}")))
        except (ValueError, TypeError) as error:
            raise ArtifactError(f"{where}, line {number} is damaged: {error}") from error
    return tuple(found)
