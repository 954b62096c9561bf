"""The folder of an optimization, for those who write and read it.

RUN/manifest.json       the settings, the program and the questions
RUN/spent.json          what was spent, by all processes
RUN/N-STAGE/program/    the candidate of a stage, as an artifact; that of 0-start is the program at the start
RUN/N-STAGE/val/        its evaluation on the validation questions
RUN/N-STAGE/proposal.json, study.journal, shown/    how the candidate was found
RUN/N-STAGE/train/      its evaluation on the training questions, if a later stage reads it
RUN/test/N-STAGE/       evaluations of the start and of the best program on the test questions
RUN/best/               the best program, as an artifact
RUN/summary.json        written last
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..data.errors import first_error
from ..engines.budget import Spent
from ..eval.folder import MANIFEST, SUMMARY, RunError, read_json
from .artifact import Score
from .settings import OptimizationSettings
from .tunables import StudyResult

START, BEST, PROGRAM, PROPOSAL = "0-start", "best", "program", "proposal.json"
TRAIN, VAL, TEST = "train", "val", "test"

R = TypeVar("R", bound=BaseModel)


class _Record(BaseModel):
    """A part of a file; unknown keys are ignored, so that other versions can be read."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Proposal(_Record):
    """How the candidate of a stage was found; without one, why there is none. ``spent`` is the budget that ended its
    search early."""

    note: str
    study: StudyResult | None = None
    spent: str | None = None


class StageRecord(_Record):
    """A stage that has ended: means over the validation questions, the paired test against the incumbent, and whether
    its candidate replaced it. ``stage`` is "start" for the program at the start.
    """

    n: int
    round: int
    stage: str
    kept: bool = False
    why: str = ""
    note: str = ""
    score: float | None = None
    gain: float | None = None
    p: float | None = None
    cost: float | None = None
    saved: float | None = None
    p_cost: float | None = None
    failures: int = 0

    @property
    def folder(self) -> str:
        return f"{self.n}-{self.stage}"


class TestRecord(_Record):
    """Start and best program on the test questions, and the paired permutation test."""

    __test__ = False

    metric: str
    questions: int
    start: Score
    best: Score
    difference: Score
    p: float


class OptimizationSummary(_Record):
    """The result of a run and why it ended; ``test`` is None if the budget did not allow it."""

    ended: str
    best: str
    stages: list[StageRecord]
    test: TestRecord | None = None
    spent: Spent = Spent()


@dataclass(frozen=True)
class OptimizationRun:
    """What a run has so far: the proposals of its stages by folder, and the summary if it has ended."""

    path: Path
    settings: OptimizationSettings
    program: Mapping[str, Any]
    proposals: Mapping[str, Proposal]
    summary: OptimizationSummary | None


def is_optimization(path: Path) -> bool:
    """Whether a folder is that of a run of `polyhop optimize`."""
    return (path / START).is_dir()


def read_run(path: Path) -> OptimizationRun:
    """Read a run, also while it goes on."""
    manifest = read_json(path / MANIFEST, f"{path} is not a run folder: it has no {MANIFEST}.")
    settings = manifest.get("settings") or {}
    if isinstance(settings, dict):  # also of another version, which had other settings
        settings = {name: value for name, value in settings.items() if name in OptimizationSettings.model_fields}
    folders = sorted((file.parent for file in path.glob(f"*-*/{PROPOSAL}")), key=_number)
    return OptimizationRun(
        path,
        OptimizationSettings.of(settings, str(path / MANIFEST)),
        manifest.get("program") or {},
        {folder.name: read_file(Proposal, folder / PROPOSAL) for folder in folders},
        read_file(OptimizationSummary, path / SUMMARY) if (path / SUMMARY).exists() else None,
    )


def _number(folder: Path) -> tuple[int, str]:
    number = folder.name.partition("-")[0]
    return len(number), number


def read_file(model: type[R], path: Path) -> R:
    try:
        return model.model_validate(read_json(path, f"{path} is missing."))
    except ValidationError as error:
        raise RunError(f"{path} is damaged: {first_error(error)}.") from error
