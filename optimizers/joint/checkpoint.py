"""The folder of a joint run, which a process can leave at any moment and another can take up again.

RUN/manifest.json     what the run is: plan, program, questions
RUN/spent.json        what was spent, by all processes
RUN/pace.json         how long a question took at the start
RUN/start/            the program at the start, as an artifact
RUN/stages.jsonl      one line a stage, when its verdict is known; the first line is of the start
RUN/N-STAGE/          what a stage left, with pictures of its search, and its program as an artifact in ``candidate``
RUN/test/             evaluation runs of the start and of the result
RUN/best/             the result, as an artifact
RUN/summary.json      written last
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...eval.folder import ACCOUNT, LockedFolder, RunError

STAGES = "stages.jsonl"
START, BEST, CANDIDATE = "start", "best", "candidate"

Line = dict[str, Any]


class Checkpoint(LockedFolder):
    """The folder, for this process alone; use it in a ``with`` block.

    Attributes:
        lines: What is known of the stages that are over, the start first.

    Raises:
        RunError: the folder holds another run or something else, is damaged, or is in use.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        super().__init__(path, json.loads(json.dumps(manifest)), STAGES, beside=(ACCOUNT,))

    def _manifest(self) -> Mapping[str, Any]:
        manifest = super()._manifest()
        if "plan" not in manifest:
            raise RunError(f"{self.path} is the folder of another kind of run: name another --out.")
        return manifest

    def _take_up(self) -> None:
        self._file.seek(0)
        try:
            self.lines: list[Line] = [json.loads(line) for line in self._file]
        except ValueError as error:
            raise RunError(f"{self.path / STAGES} is damaged: {error}.") from error

    def append(self, line: Line) -> None:
        """A stage is over: from now on nobody plays it again."""
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self.lines.append(line)

    @property
    def kept(self) -> Line:
        """The line of the best program so far."""
        return next(line for line in reversed(self.lines) if line["kept"])
