"""Where an artifact comes from: what it was tuned and measured on, and what that cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from ...eval.settings import content
from ...eval.statistics import Interval
from .schema import ScoreRecord, SplitRecord


@dataclass(frozen=True)
class Split:
    """Questions, by what tells whether they are the same.

    Attributes:
        file: The name of their file, without folders.
        count: How many were used.
        hash: Of what is asked, what is right, and what comes with it.
    """

    file: str
    count: int
    hash: str

    @classmethod
    def of(cls, file: Path | str, questions: Iterable[dspy.Example]) -> Split:
        """
        Raises:
            RunError: one of them is no question with an answer.
        """
        return cls(Path(file).name, *content(questions))

    def to_record(self) -> SplitRecord:
        return SplitRecord(file=Path(self.file).name, count=self.count, hash=self.hash)


@dataclass(frozen=True)
class Provenance:
    """What is known about how a program came to be; all of it is optional.

    Attributes:
        dataset: The benchmark.
        splits: What it was tuned on, chosen by, and measured on, by name ("train", "val", "test").
        metric: What was tuned for, by name.
        scores: Split -> metric -> the mean with its interval (`polyhop.eval.statistics`). NaN is left out.
        seed: Of the run that made it.
        spent: What that took, such as ``{"lm_calls": 1200, "cost_usd": 0.8, "minutes": 12.5}``.
        settings: How the run was set up: stages, optimizers, limits. JSON; without keys or addresses.
        study: The summary of its search over the tunables, in a file of its own. JSON.
    """

    dataset: str | None = None
    splits: Mapping[str, Split] = field(default_factory=dict)
    metric: str | None = None
    scores: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    seed: int | None = None
    spent: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    study: Mapping[str, Any] | None = None

    def to_record(self) -> dict[str, Any]:
        """The part of a manifest that this is."""
        return {
            "dataset": self.dataset,
            "splits": {name: split.to_record().model_dump() for name, split in self.splits.items()},
            "metric": self.metric,
            "scores": {split: _records(scores) for split, scores in self.scores.items()},
            "seed": self.seed,
            "spent": {name: float(value) for name, value in self.spent.items()},
            "settings": dict(self.settings),
        }


def _records(scores: Mapping[str, Interval]) -> dict[str, Any]:
    return {
        name: ScoreRecord(mean=score.mean, low=score.low, high=score.high).model_dump()
        for name, score in scores.items()
        if not math.isnan(score.mean)
    }
