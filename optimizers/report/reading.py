"""Reads the folder of an optimization run, without a lock: files are replaced as a whole, and lines are appended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...eval.folder import ACCOUNT, MANIFEST, SUMMARY, RunError
from ..artifact import Artifact, read
from ..records import (
    BEST,
    PROPOSAL,
    STAGE_LINES,
    START,
    OptimizationManifest,
    OptimizationSummary,
    ProposalRecord,
    SpentRecord,
    StageRecord,
    TestRecord,
)
from ..settings import OptimizationSettings
from ..tunables.result import StudyResult, TrialRecord

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class OptimizationRun:
    """An optimization run.

    Attributes:
        program: The settings of the program, from the manifest.
        stages: Finished stages, the start first; empty until the start is measured.
        running: The folder of the running stage.
        ended: Why the run ended; None while it is not finished.
    """

    path: Path
    plan: OptimizationSettings
    program: Mapping[str, Any]
    stages: Sequence[StageRecord]
    running: str | None
    ended: str | None
    test: TestRecord | None
    spent: SpentRecord | None

    @property
    def name(self) -> str:
        return str(self.program.get("name") or self.program.get("class") or "A program")

    @cached_property
    def kept(self) -> StageRecord | None:
        """The stage of the best program so far."""
        return next((stage for stage in reversed(self.stages) if stage.kept), None)

    @cached_property
    def start(self) -> Artifact | None:
        """The program at the start, once it is saved."""
        return read(self.path / START) if (self.path / START / MANIFEST).exists() else None

    def program_of(self, stage: StageRecord) -> Artifact:
        """The program of a stage; the result, which has the scores of all, for the one that was kept."""
        if self.ended is not None and stage is self.kept and (self.path / BEST).is_dir():
            return read(self.path / BEST)
        return read(self.path / stage.artifact)

    def searches(self) -> Iterator[tuple[str, StudyResult | None, Sequence[TrialRecord]]]:
        """Finished searches and the running one: the folder of the stage, the result if there is one, the trials."""
        for name in [*(stage.folder for stage in self.stages if stage.n), *([self.running] if self.running else [])]:
            proposal = _read(ProposalRecord, self.path / name / PROPOSAL)
            if proposal is not None and proposal.study is not None:
                yield name, proposal.study, proposal.study.trials
            elif proposal is None and (trials := _trials(self.path / name / f"{name.partition('-')[2]}.journal")):
                yield name, None, trials


def read_run(path: Path) -> OptimizationRun:
    """
    Raises:
        RunError: the folder is not an optimization run, or is damaged.
    """
    manifest = _read(OptimizationManifest, path / MANIFEST)
    if manifest is None:
        raise RunError(f"{path} is not a run folder: it has no {MANIFEST}.")
    plan = manifest.settings
    if plan is None:
        raise RunError(f"{path} is another kind of run, not an optimization.")
    stages = list(_stages(path / STAGE_LINES))
    summary = _read(OptimizationSummary, path / SUMMARY)
    if summary is not None and len(summary.stages) < len(stages):
        summary = None  # resumed after its end, with a larger budget
    running = None
    if summary is None and 0 < len(stages) <= plan.rounds * len(plan.stages):
        name = f"{len(stages)}-{plan.stages[(len(stages) - 1) % len(plan.stages)]}"
        running = name if (path / name).is_dir() else None
    return OptimizationRun(
        path,
        plan,
        manifest.program,
        stages,
        running,
        summary.ended if summary else None,
        summary.test if summary else None,
        _read(SpentRecord, path / f"{ACCOUNT}.json"),
    )


def _read(model: type[M], path: Path) -> M | None:
    """A file, or None if there is none.

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
        raise _damage(path, error) from error


def _stages(path: Path) -> Iterator[StageRecord]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # text after the last line break is still being written
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        try:
            yield StageRecord.model_validate_json(line)
        except ValidationError as error:
            raise _damage(f"{path}, line {number}", error) from error


def _damage(where: object, error: ValidationError) -> RunError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "its content"
    return RunError(f"{where} is damaged: {place}: {first['msg'].lower()}.")


def _trials(journal: Path) -> Sequence[TrialRecord]:
    """The trials of a running search."""
    if not journal.exists():
        return []
    from ..tunables.storage import read_trials

    return read_trials(journal)
