"""The files of an optimization run, for those who write and read them.

RUN/manifest.json   the settings, the program and the questions
RUN/spent.json      what was spent, by all processes
RUN/pace.json       seconds per question at the start
RUN/start/          the program at the start, as an artifact
RUN/stages.jsonl    one line per stage that has ended; the first line is the start
RUN/N-STAGE/        the files of a stage, with its proposal and, as an artifact, its candidate
RUN/test/           evaluation runs of the start and of the best program
RUN/best/           the best program, as an artifact
RUN/summary.json    written last
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from ..engines.budget import Spent
from .artifact_format import Score
from .settings import OptimizationSettings, StageName
from .tunables.result import StudyResult

STAGE_LINES, PROPOSAL, PACE = "stages.jsonl", "proposal.json", "pace.json"
START, BEST, CANDIDATE, TEST = "start", "best", "candidate", "test"


class _Record(BaseModel):
    """Part of a file. Unknown keys are ignored, so that other versions can be read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class OptimizationManifest(_Record):
    """What a run is. The program is as in the manifests of evaluations; questions are hashes by split. The manifest of
    another kind of run has no settings."""

    settings: OptimizationSettings | None = Field(None, validation_alias=AliasChoices("settings", "plan"))
    program: dict[str, Any] = {}
    questions: dict[str, Any] = {}


class StageRecord(_Record):
    """A stage that has ended: its scores and costs by validation question, the paired permutation test against the
    incumbent, and whether its candidate replaced it.
    """

    n: int
    round: int
    stage: StageName | Literal["start"]
    kept: bool
    why: str = ""
    note: str | None = None
    score: float | None = None
    gain: float | None = None
    p: float | None = None
    cost: float | None = None
    saved: float | None = None
    p_cost: float | None = None
    failures: int = 0
    scores: list[float] = []
    costs: list[dict[str, float]] = []

    @property
    def folder(self) -> str:
        """Its folder in the run."""
        return START if self.stage == START else f"{self.n}-{self.stage}"

    @property
    def artifact(self) -> str:
        """The folder of its program in the run."""
        return START if self.stage == START else f"{self.folder}/{CANDIDATE}"

    def mean_cost(self, name: str) -> float | None:
        """The mean of a cost over the questions."""
        known = [costs[name] for costs in self.costs if name in costs]
        return sum(known) / len(known) if known else None


class ProposalRecord(_Record):
    """What a stage proposed; ``spent`` is the budget that ended the stage early, if one did."""

    note: str = ""
    spent: str | None = None
    study: StudyResult | None = None


class MeasuredRecord(_Record):
    """A program on the test questions: means and 95% intervals by metric."""

    metrics: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    counts: dict[str, int]


class TestRecord(_Record):
    """Start and best program on the test questions, and the paired permutation test."""

    __test__ = False

    metric: str
    start: Score
    best: Score
    difference: Score
    p: float
    runs: dict[str, MeasuredRecord]


class OptimizationSummary(_Record):
    """The result of a run and why it ended; ``stages`` are without the scores of single questions, and ``test`` is None
    if the budget did not allow it.
    """

    ended: str
    best: dict[str, Any] = {}
    stages: list[StageRecord]
    test: TestRecord | None = None
    spent: Spent = Spent()
