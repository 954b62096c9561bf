"""The folder of a run, which any process can leave at any moment and another can take up again.

    RUN/manifest.json        what is measured, on what, with what: everything needed to repeat it
    RUN/predictions.jsonl    one line a question, in the order in which they were finished
    RUN/summary.json         written last: a run that has one is finished
    RUN/spent.json           with a budget: what was spent, by all processes that worked on the run

A line is in the file or it is not: half of one, which a killed process leaves behind, is cut off when the run is taken
up. Each line has its question's number ``n`` in the order of the dataset.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

from ..data.errors import PolyhopError
from .differences import differences
from .official.files import replacing

MANIFEST, PREDICTIONS, SUMMARY = "manifest.json", "predictions.jsonl", "summary.json"
ACCOUNT = "spent"  # the stem of the file that says what a run with a budget has spent
SCHEMA = 1
_LOCK = ".lock"

Line = dict[str, Any]


class RunError(PolyhopError):
    """A run cannot be started, continued or read; the message says why and what to do."""


def make_folder(path: Path) -> Path:
    """See that there is the folder of a run.

    Raises:
        RunError: there can be none.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be the folder of a run: {error.strerror}.") from error
    return path


def account(run: Path) -> Path:
    """The file of what a run has spent, in its folder, which there is from now on.

    Raises:
        RunError: there can be no such folder.
    """
    return make_folder(run) / f"{ACCOUNT}.json"


class LockedFolder:
    """A folder with a manifest and a file of JSON lines, on which this process alone works; use it in a ``with`` block.

    Args:
        path: A new or empty folder, or that of a run with the same manifest.
        manifest: What the run is.
        lines: The name of the file, which is opened as ``_file``: unbuffered, so that a line is handed to the system as
            it is written and outlives this process; and without the half line that a killed one may have left.
        beside: Stems of files that may be there before the manifest.

    Raises:
        RunError: the folder holds another run or something else, is damaged, or is in use by another process.
    """

    manifest_name = MANIFEST  # the file with what the run is

    def __init__(self, path: Path, manifest: Mapping[str, Any], lines: str, beside: Collection[str] = ()) -> None:
        self.path = make_folder(path)
        foreign = not (path / _LOCK).exists()
        self._lock = FileLock(path / _LOCK)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(
                f"Another process is working on the run {path}. Wait for it, or name another --out."
            ) from None
        try:
            self._claim(manifest, beside)
            self._file = (path / lines).open("a+b", buffering=0)
            cut_half_line(self._file)
            self._take_up()
        except BaseException:
            self._lock.release()
            if foreign:  # nothing of ours stays in a folder that is refused
                (path / _LOCK).unlink(missing_ok=True)
            raise

    def _claim(self, manifest: Mapping[str, Any], beside: Collection[str]) -> None:
        if (self.path / self.manifest_name).exists():
            _refuse_differences(self.path, self._manifest(), manifest)
            return
        names = [entry.name for entry in self.path.iterdir() if entry.stem not in beside]
        strangers = sorted(name for name in names if not name.startswith("."))
        if strangers:
            raise RunError(
                f"{self.path} is not the folder of a run, but holds {', '.join(strangers[:3])}: name another --out."
            )
        write_json(self.path / self.manifest_name, manifest)

    def _manifest(self) -> Mapping[str, Any]:
        """What the run was when it was started."""
        return _read_json(self.path / self.manifest_name, f"{self.path} has no {self.manifest_name}.")

    def _take_up(self) -> None:
        """Read the lines that are there."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()


class RunFolder(LockedFolder):
    """The folder of an evaluation run.

    Args:
        path, manifest: See `LockedFolder`.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.questions: int = manifest["questions"]["count"]
        super().__init__(path, manifest, PREDICTIONS, beside=(ACCOUNT,))

    def _manifest(self) -> Mapping[str, Any]:
        return read_manifest(self.path)

    def _take_up(self) -> None:
        self._offsets = np.full(self.questions, -1, dtype=np.int64)
        for offset, line in _lines(self.path / PREDICTIONS):
            self._offsets[line["n"]] = offset

    def has(self, n: int) -> bool:
        """Whether there is a line for a question."""
        return bool(self._offsets[n] >= 0)

    @property
    def done(self) -> int:
        """How many questions have a line."""
        return int((self._offsets >= 0).sum())

    @property
    def finished(self) -> bool:
        """Whether the run has a summary of the lines that it has now."""
        return (self.path / SUMMARY).exists()

    def forget(self, n: int) -> None:
        """Have a question asked again; its next line is the one that counts."""
        self._offsets[n] = -1

    def append(self, line: Line) -> Line:
        """Write a question's line and hand it back; when this returns the line outlives the process."""
        (self.path / SUMMARY).unlink(missing_ok=True)
        offset = self._file.seek(0, os.SEEK_END)
        text = memoryview(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        try:
            while text:
                text = text[self._file.write(text) :]
        except BaseException:  # a full disk, Ctrl-C: no other line may follow half of this one
            self._file.truncate(offset)
            raise
        self._offsets[line["n"]] = offset
        return line

    def lines(self) -> Iterator[Line]:
        """The lines that count, in the order of the questions; one is held in memory at a time."""
        with (self.path / PREDICTIONS).open("rb") as file:
            for offset in self._offsets[self._offsets >= 0]:
                file.seek(offset)
                yield json.loads(file.readline())


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        RunError: there is none, or of another version.
    """
    manifest = _read_json(path / MANIFEST, f"{path} is not the folder of a run: it has no {MANIFEST}.")
    if "schema" not in manifest:
        raise RunError(f"{path} is not the folder of an evaluation run: its {MANIFEST} is something else's.")
    if manifest["schema"] != SCHEMA:
        raise RunError(f"The run {path} has format {manifest['schema']}; this version reads format {SCHEMA}.")
    return manifest


def read_summary(path: Path) -> dict[str, Any]:
    """The summary of a finished run.

    Raises:
        RunError: there is none.
    """
    return _read_json(path / SUMMARY, f"The run {path} is not finished: start it again to finish it.")


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a run, one for each question that is done, in the order of the questions; also while it runs.

    Raises:
        RunError: there are none, or one is damaged.
    """
    offsets = {line["n"]: offset for offset, line in _lines(path / PREDICTIONS)}
    with (path / PREDICTIONS).open("rb") as file:
        for n in sorted(offsets):
            file.seek(offsets[n])
            yield json.loads(file.readline())


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    with replacing(path) as file:
        json.dump(value, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _refuse_differences(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    # What JSON makes of a value (tuples, keys) is no difference.
    if different := differences(before, json.loads(json.dumps(now))):
        raise RunError(
            f"The run {path} was started with other settings:\n  "
            + "\n  ".join(different)
            + "\nStart it with the settings it had, or name another --out."
        )


def _read_json(path: Path, missing: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(missing) from None
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: it holds no JSON object.")
    return value


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    """The whole lines of a file, each with its place in bytes."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith(b"\n"):
                    return  # still being written, or cut off by a kill
                try:
                    line = json.loads(text)
                    line["n"], line["id"]
                except (ValueError, KeyError, TypeError) as error:
                    raise RunError(
                        f"{path}, line {number} is damaged ({error}). Take the line out, and its question is asked "
                        "again; or name another --out."
                    ) from error
                yield offset, line
                offset += len(text)
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no {PREDICTIONS}: it is not the folder of a run.") from None


def cut_half_line(file: Any) -> None:
    """Leave only whole lines: what follows the last line break was never finished."""
    end = position = file.seek(0, os.SEEK_END)
    while position > 0:
        start = max(0, position - 65536)
        file.seek(start)
        found = file.read(position - start).rfind(b"\n")
        if found >= 0:
            position = start + found + 1
            break
        position = start
    if position < end:
        file.truncate(position)
