"""The folder of a run: locked, with a manifest and a file of JSON lines; any process can resume it after a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TextIO, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from ..data import files
from ..data.errors import PolyhopError, first_error

M = TypeVar("M", bound=BaseModel)

MANIFEST, PREDICTIONS, SUMMARY = "manifest.json", "predictions.jsonl", "summary.json"
DIAGNOSIS = "diagnosis.json"  # what `polyhop diagnose` found
ACCOUNT = "spent"  # the stem of the file with what a run with a budget has spent
_NOT_COMPARED = ("created", "files", "metrics", "python", "platform", "servers")  # where and when, not what
_NAME = "program.name"  # a tuned program is named after its folder, which may have moved


class RunError(PolyhopError):
    """A run cannot be started, resumed or read; the message says why and what to do."""


def account(run: Path) -> Path:
    """The file with what a run has spent; creates the run's folder, private to the user."""
    try:
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.check_unlinked(run)
    except (OSError, ValueError) as error:
        raise RunError(f"{run} cannot be the folder of a run: {error}.") from error
    return run / f"{ACCOUNT}.json"


@contextmanager
def claimed(
    path: Path, manifest: Mapping[str, Any], known: Callable[[], Mapping[str, Any]], beside: Collection[str] = ()
) -> Iterator[None]:
    """Hold the folder of a run for this process alone, and write its manifest if it has none.

    Args:
        path: A new or empty folder, or that of a run with the same manifest.
        manifest: The settings of the run.
        known: Reads those that the folder has.
        beside: Stems of files that may exist before the manifest.

    Raises:
        RunError: the folder has another run or other files, or another process works on it.
    """
    account(path)
    if not (path / MANIFEST).exists():
        strangers = sorted(e.name for e in path.iterdir() if e.stem not in beside and not e.name.startswith("."))
        if strangers:
            told = f"is not the folder of a run, but contains {', '.join(strangers[:3])}"
            raise RunError(f"{path} {told}: choose another --out.")
    try:
        lock = FileLock(path / ".lock").acquire(timeout=0)
    except Timeout:
        raise RunError(f"Another process is working on the run {path}. Wait for it, or choose another --out.") from None
    with lock:
        if not (path / MANIFEST).exists():
            write_json(path / MANIFEST, manifest)
        # Compare with what JSON makes of a value (tuples, keys).
        elif different := differences(known(), json.loads(json.dumps(manifest))):
            listed = "\n  ".join(different)
            raise RunError(
                f"The run {path} was started with other settings:\n  {listed}\nRestore its settings, or choose "
                "another --out."
            )
        yield


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that differ, one line each: ``"program.tunables.search.k: 20 before, 5 now"``."""
    old, new = dict(flat(before)), dict(flat(now))
    names = [name for name in dict.fromkeys([*old, *new]) if name.partition(".")[0] not in _NOT_COMPARED]
    changed = {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}
    if [*changed] == [_NAME]:
        return []
    told = {name: ["nothing" if value is None else str(value) for value in pair] for name, pair in changed.items()}
    return [f"{name}: {was} before, {is_} now" for name, (was, is_) in told.items()]


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
    try:
        with replacing(path) as file:
            file.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except UnicodeEncodeError as error:  # such as the name of a file
        text = ascii(error.object[: error.end].rpartition("\n")[2].strip()[-80:])
        raise RunError(f"{path} cannot be written: {text} is not UTF-8. Rename that file or folder.") from error


def read_json(path: Path, missing: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        value = files.read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(missing) from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: it is not a JSON object.")
    return value


def read_model(model: type[M], path: Path) -> M:
    """Read a JSON object as a model; unknown keys are ignored, so that other versions can be read."""
    try:
        return model.model_validate(read_json(path, f"{path} is missing."))
    except ValidationError as error:
        raise RunError(f"{path} is damaged: {first_error(error)}.") from error


def cut_half_line(file: Any) -> None:
    """Truncate a file after its last line break: the rest was never finished."""
    if file.seek(0, os.SEEK_END):
        with mmap(file.fileno(), 0, access=ACCESS_READ) as whole:
            end = whole.rfind(b"\n") + 1
        file.truncate(end)
