"""What stands in the folder of a joint run (`polyhop.optimizers.joint.checkpoint`), read without a lock.

Files are replaced as wholes and lines are added, so that a reader sees a run as it was at some moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ....eval.folder import ACCOUNT, MANIFEST, SUMMARY, RunError
from ...artifact import Artifact, read
from ...tunables.result import StudyResult, TrialRecord
from ..checkpoint import BEST, CANDIDATE, STAGES, START
from ..plan import StageName
from ..run import PROPOSAL


class _Record(BaseModel):
    """A part of a file; what is not reported is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


M = TypeVar("M", bound=_Record)


class Plan(_Record):
    """See `polyhop.optimizers.joint.plan.Plan`."""

    stages: tuple[StageName, ...]
    rounds: int
    metric: str
    cost: str | None
    level: float
    optimizer: str
    preset: str
    trials: int
    sampler: str
    seed: int


class Started(_Record):
    """The manifest. That of another kind of run has no plan."""

    plan: Plan | None = None
    program: dict[str, Any] = {}


class Line(_Record):
    """A stage that is over: its verdict, and what the validation questions say."""

    n: int
    round: int
    stage: StageName | Literal["start"]
    kept: bool
    why: str = ""
    note: str | None = None
    score: float | None = None
    gain: float | None = None
    p: float | None = None
    failures: int = 0
    scores: list[float] = []
    costs: list[dict[str, float]] = []

    @property
    def name(self) -> str:
        """Of its folder."""
        return START if self.stage == START else f"{self.n}-{self.stage}"


class Going(_Record):
    """A search, whether or not it has ended."""

    trials: list[TrialRecord]


class Proposal(_Record):
    study: StudyResult | None


class Mean(_Record):
    mean: float
    low: float
    high: float


class Counts(_Record):
    questions: int


class Measured(_Record):
    metrics: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    counts: Counts


class Test(_Record):
    """See `polyhop.optimizers.joint.final.measure_both`."""

    metric: str
    start: Mean
    best: Mean
    difference: Mean
    p: float
    runs: dict[str, Measured]


class Summary(_Record):
    ended: str
    stages: list[Line]
    test: Test | None


class Spent(_Record):
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """A joint run.

    Attributes:
        program: What is tuned, as manifests have it.
        lines: Of the stages that are over, the start first; empty until the start is measured.
        under_way: The name of the folder of the stage that is played, if one is.
        summary: Of a run that has ended with these stages.
    """

    path: Path
    plan: Plan
    program: Mapping[str, Any]
    lines: Sequence[Line]
    under_way: str | None
    summary: Summary | None
    spent: Spent | None

    @cached_property
    def kept(self) -> Line | None:
        """The line of the best program so far."""
        return next((line for line in reversed(self.lines) if line.kept), None)

    @cached_property
    def splits(self) -> Mapping[str, int]:
        """How many questions there are of each kind; empty until the start is saved."""
        if not (self.path / START / MANIFEST).exists():
            return {}
        return {name: split.count for name, split in self.artifact(START).manifest.splits.items()}

    @cached_property
    def dataset(self) -> str | None:
        return self.artifact(START).manifest.dataset if self.splits else None

    def program_of(self, line: Line) -> Artifact:
        """The program of a stage; that of the result has the scores of all."""
        if self.summary is not None and line is self.kept and (self.path / BEST).is_dir():
            return self.artifact(BEST)
        return self.artifact(line.name if line.stage == START else f"{line.name}/{CANDIDATE}")

    def artifact(self, folder: str) -> Artifact:
        """
        Raises:
            ArtifactError: it is damaged.
        """
        return read(self.path / folder)

    def searches(self) -> Iterator[tuple[str, StudyResult | Going]]:
        """The searches that were made and the one that goes on, by the names of their stages' folders."""
        for name in [*(line.name for line in self.lines if line.n), *([self.under_way] if self.under_way else [])]:
            proposal = _read(Proposal, self.path / name / PROPOSAL)
            if proposal is not None and proposal.study is not None:
                yield name, proposal.study
            elif proposal is None:
                trials = _tried(self.path / name / f"{name.partition('-')[2]}.journal")
                if trials:
                    yield name, Going(trials=trials)


def read_run(path: Path) -> Run:
    """
    Raises:
        RunError: it is not the folder of a joint run, or damaged.
    """
    manifest = _read(Started, path / MANIFEST)
    if manifest is None:
        raise RunError(f"{path} is not the folder of a run: it has no {MANIFEST}.")
    plan = manifest.plan
    if plan is None:
        raise RunError(f"{path} is not the folder of an optimization, but of another kind of run.")
    lines = list(_lines(path / STAGES))
    summary = _read(Summary, path / SUMMARY)
    if summary is not None and len(summary.stages) < len(lines):
        summary = None  # it was ended, and taken up again with a larger budget
    under_way = None
    if summary is None and 0 < len(lines) <= plan.rounds * len(plan.stages):
        name = f"{len(lines)}-{plan.stages[(len(lines) - 1) % len(plan.stages)]}"
        under_way = name if (path / name).is_dir() else None
    spent = _read(Spent, path / f"{ACCOUNT}.json")
    return Run(path, plan, manifest.program, lines, under_way, summary, spent)


def _read(model: type[M], path: Path) -> M | None:
    """
    Raises:
        RunError: the file is damaged.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        raise RunError(_damage(path, error)) from error


def _lines(path: Path) -> Iterator[Line]:
    """The whole lines of the stages that are over."""
    try:
        texts = path.read_bytes().split(b"\n")[:-1]  # what follows the last line break is being written
    except FileNotFoundError:
        return
    for number, text in enumerate(texts, 1):
        try:
            yield Line.model_validate_json(text)
        except ValidationError as error:
            raise RunError(_damage(f"{path}, line {number}", error)) from error


def _damage(where: object, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "its content"
    return f"{where} is damaged: {place}: {first['msg'].lower()}."


def _tried(journal: Path) -> list[TrialRecord]:
    """The trials of a running search."""
    if not journal.exists():
        return []
    from ...tunables.storage import read_trials

    return read_trials(journal)
