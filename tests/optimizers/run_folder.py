"""Writes the folder of an optimization run: one search that is rejected, one change of prompts that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy

from polyhop.eval.folder import write_json
from polyhop.optimizers.artifact import Score, save
from polyhop.optimizers.optimize import OptimizationSummary, StageRecord, TestRecord
from polyhop.optimizers.settings import OptimizationSettings
from polyhop.optimizers.tunables import StudyResult, TrialRecord
from polyhop.programs.exemplars import Exemplar, ExemplarMemory

from .tiny import Tiny

TEXTS = {
    "instructions": "Answer the question in few words.",
    "demo": "Oslo",
    "style": "terse",
    "question": "Who wrote Emma?",
    "note": "credit, light",
    "ended": "all stages ran",
    "name": "Tiny",
}


def write_run(path: Path, *, ended: bool = True, cost: str | None = None, **more: str) -> Path:
    """
    Args:
        more: Other texts than `TEXTS`.
    """
    texts = TEXTS | more
    start, tuned = Tiny(), Tiny()
    tuned.answerer.signature = tuned.answerer.signature.with_instructions(texts["instructions"])
    tuned.answerer.demos = [dspy.Example(question="Capital of Norway?", answer=texts["demo"])]
    tuned.exemplars.memory = ExemplarMemory([Exemplar(texts["question"], ("Who wrote Emma?",), 1)])
    tuned.effort.value = 7
    folders = [(start, "0-start/program"), (start, "1-tunables/program"), (tuned, "2-prompts/program")]
    for program, folder in [*folders, (tuned, "best")] if ended else folders:
        save(program, path / folder)
    settings = OptimizationSettings(stages=("tunables", "prompts"), metric="answer_f1", trials=3, cost=cost)
    manifest = {"settings": settings.model_dump(mode="json"), "program": {"name": texts["name"]}}
    write_json(path / "manifest.json", manifest)
    for folder, study in (("1-tunables", searched(texts["style"], cost)), ("2-prompts", None)):
        proposal = StageRecord(n=int(folder[0]), stage=folder[2:], note=texts["note"], study=study)
        write_json(path / folder / "stage.json", proposal.model_dump(mode="json", exclude_none=True))
    if not ended:
        return path
    stages = [
        StageRecord(n=0, stage="start", kept=True, score=0.25),
        StageRecord(
            n=1, stage="tunables", kept=False, why="not better", score=0.2, gain=-0.05, ends=(-0.1, 0.02), p=0.75
        ),
        StageRecord(n=2, stage="prompts", kept=True, why="better", score=0.75, gain=0.5, p=0.0312, note=texts["note"]),
    ]
    scores: dict[str, Any] = {
        name: Score(mean=mean, low=mean - 0.1, high=mean + 0.1)
        for name, mean in (("start", 0.25), ("best", 0.75), ("difference", 0.5))
    }
    test = TestRecord(metric="answer_f1", questions=16, p=0.0002, **scores)
    summary = OptimizationSummary(ended=texts["ended"], best="2-prompts", stages=stages, test=test)
    write_json(path / "summary.json", summary.model_dump(mode="json", exclude_none=True))
    return path


def searched(style: str, cost: str | None = None) -> StudyResult:
    """Trial 1 is the best one, trial 2 is pruned."""
    trials = [
        TrialRecord(
            number=n,
            values={"effort": 3 + n, "style": style if n else "florid"},
            score=0.9 if n == 1 else 0.5,
            costs={"lm_calls": 2.0 + n},
            questions=10,
            pruned=n == 2,
        )
        for n in range(3)
    ]
    front = trials[:2] if cost else [trials[1]]
    return StudyResult(trials=trials, best=trials[1], front=front, cost=cost)
