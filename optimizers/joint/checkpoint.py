"""The folder of a joint run, which a process can leave at any moment and another can take up again.

RUN/manifest.json     what the run is: plan, program, questions
RUN/spent.json        what was spent, by all processes
RUN/start/            the program at the start, as an artifact
RUN/stages.jsonl      one line a stage, when its verdict is known; the first line is of the start
RUN/N-STAGE/          what a stage left, and its program as an artifact in ``candidate``
RUN/test/             evaluation runs of the start and of the result
RUN/best/, summary.json, *.svg    the result
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from ...eval.folder import MANIFEST, RunError, cut_half_line, differences, write_json

STAGES, ACCOUNT = "stages.jsonl", "spent"
START, BEST, CANDIDATE = "start", "best", "candidate"

Line = dict[str, Any]


def account(run: Path) -> Path:
    """The file of what a run has spent, whose folder there is then.

    Raises:
        RunError: there can be no such folder.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{run} cannot be the folder of a run: {error.strerror}.") from error
    return run / f"{ACCOUNT}.json"


class Checkpoint:
    """The folder, for this process alone; use it in a ``with`` block.

    Attributes:
        lines: What is known of the stages that are over, the start first.

    Raises:
        RunError: the folder holds another run or something else, is damaged, or is in use.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{path} cannot be the folder of a run: {error.strerror}.") from error
        self._lock = FileLock(path / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(
                f"Another process is working on the run {path}. Wait for it, or name another --out."
            ) from None
        try:
            self._take_up(manifest)
        except BaseException:
            self._lock.release()
            raise

    def _take_up(self, manifest: Mapping[str, Any]) -> None:
        now = json.loads(json.dumps(manifest))  # what JSON makes of a value (tuples, keys) is no difference
        if (self.path / MANIFEST).exists():
            before = _read(self.path / MANIFEST)
            if "plan" not in before:
                raise RunError(f"{self.path} is the folder of another kind of run: name another --out.")
            if different := differences(before, now):
                raise RunError(
                    f"The run {self.path} was started with other settings:\n  "
                    + "\n  ".join(different)
                    + "\nStart it with the settings it had, or name another --out."
                )
        else:
            names = [entry.name for entry in self.path.iterdir() if entry.stem != ACCOUNT]
            strangers = sorted(name for name in names if not name.startswith("."))
            if strangers:
                raise RunError(
                    f"{self.path} is not the folder of a run, but holds {', '.join(strangers[:3])}: name another --out."
                )
            write_json(self.path / MANIFEST, now)
        self._file = (self.path / STAGES).open("a+b", buffering=0)
        cut_half_line(self._file)
        self._file.seek(0)
        try:
            self.lines: list[Line] = [json.loads(line) for line in self._file]
        except ValueError as error:
            raise RunError(f"{self.path / STAGES} is damaged: {error}.") from error

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()

    def append(self, line: Line) -> None:
        """A stage is over: from now on nobody plays it again."""
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self.lines.append(line)

    @property
    def kept(self) -> Line:
        """The line of the best program so far."""
        return next(line for line in reversed(self.lines) if line["kept"])


def _read(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    return value
