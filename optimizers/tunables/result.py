"""The trials of a search, and which of them is best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import optuna
from optuna.trial import FrozenTrial
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, computed_field

from ...data.errors import PolyhopError
from .sampling import quiet, study_in_memory

_LEADING = 5  # trials that another search begins with


class TrialRecord(BaseModel):
    """A trial that has ended; trial 0 is the defaults. Score and costs are means over the questions that were executed,
    of which failed ones score 0. Scores by question, and the first failure (it may quote a reply), are not written to
    files.
    """

    model_config = ConfigDict(frozen=True)

    number: int = Field(validation_alias=AliasChoices("number", "slot"))
    state: Literal["complete", "pruned", "failed"]
    values: dict[str, Any]
    score: float | None = None
    costs: dict[str, float] = {}
    questions: int = 0
    failures: int = 0
    error: str | None = None
    scores: dict[int, float] = Field(default={}, exclude=True)
    failure: str | None = Field(default=None, exclude=True)


class StudySettings(BaseModel):
    """The settings that identify a search; with more trials, threads or workers it is the same. ``space`` has Optuna's
    JSON, and ``questions`` their count and hash.
    """

    model_config = ConfigDict(frozen=True)

    program: dict[str, Any] = {}
    space: dict[str, str]
    start: list[dict[str, Any]] = []
    questions: dict[str, Any]
    metric: str
    sampler: str
    points: int | None = None
    cost: str | None = None
    at_most: dict[str, float] = {}
    prune: bool = True
    parallel_trials: int = 1
    seed: int = 0
    versions: dict[str, str] = {}


class StudyResult(BaseModel):
    """The result of a search.

    Attributes:
        trials: By number; the first one is the defaults.
        best: The trial whose values the program gets; see `choose`.
        front: The Pareto front of score and cost, the cheapest first; without a cost only the best trial.
        importances: The share of the variance of the score that each tunable explains (fANOVA); empty if unknown.
    """

    model_config = ConfigDict(frozen=True)

    settings: StudySettings
    trials: list[TrialRecord]
    best: TrialRecord
    front: list[TrialRecord]
    importances: dict[str, float] = {}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def default(self) -> TrialRecord:
        return self.trials[0]

    @property
    def states(self) -> dict[str, int]:
        """How many trials are complete, pruned and failed."""
        counts = Counter(trial.state for trial in self.trials)
        return {state: counts[state] for state in ("complete", "pruned", "failed")}

    @property
    def leading(self) -> list[dict[str, Any]]:
        """The values of the best trial, and of others of the front or with high scores: five at most, none twice."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        others = sorted(complete, key=lambda trial: (-score_of(trial), trial.number))
        unique = {trial.number: trial.values for trial in [self.best, *reversed(self.front), *others]}
        return list(unique.values())[:_LEADING]

    @property
    def by_module(self) -> dict[str, float]:
        """The importance of the tunables of each part of the program together, the largest first; "" are its own."""
        found: dict[str, float] = {}
        for name, share in self.importances.items():
            part = re.match(r"\w+(?=[.\[])", name)
            module = part[0] if part else ""
            found[module] = found.get(module, 0.0) + share
        return dict(sorted(found.items(), key=lambda each: -each[1]))


def score_of(trial: TrialRecord) -> float:
    """The score of a trial that did not fail."""
    assert trial.score is not None
    return trial.score


def shown(values: Mapping[str, Any], equals: str = " ", separator: str = ", ") -> str:
    """Values of tunables as text, numbers with four digits."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in values.items()}
    return separator.join(f"{name}{equals}{text}" for name, text in texts.items())


def within(trial: TrialRecord, at_most: Mapping[str, float]) -> bool:
    """Whether the costs of a trial are within limits."""
    return all(trial.costs[name] <= limit for name, limit in at_most.items())


def pareto_front(trials: Sequence[TrialRecord], cost: str) -> list[TrialRecord]:
    """The Pareto front of some trials, the cheapest first; of equal ones the first."""
    found: list[TrialRecord] = []
    for trial in sorted(trials, key=lambda trial: (trial.costs[cost], -score_of(trial), trial.number)):
        if not found or score_of(trial) > score_of(found[-1]):
            found.append(trial)
    return found


def choose(
    trials: Sequence[TrialRecord], cost: str | None, at_most: Mapping[str, float]
) -> tuple[TrialRecord, list[TrialRecord]]:
    """The best of the complete trials within the limits, and the Pareto front.

    Without a cost, the best trial has the highest score, of equal ones the first; but the defaults are kept if they are
    within one standard error of it, since the best of many trials on the same questions is partly luck. With a cost, it
    is the cheapest trial of the front within one standard error of the highest score. The standard error is that of the
    mean paired difference.
    """
    complete = [trial for trial in trials if trial.state == "complete"]
    kept = [trial for trial in complete if within(trial, at_most)]
    if not kept:
        why = next((trial.error for trial in trials if trial.error), "no trial was completed")
        if complete:
            least = {name: f"{min(trial.costs[name] for trial in complete):g}" for name in at_most}
            why = f"no trial is within the limits {dict(at_most)}; the lowest costs are {least}"
        raise PolyhopError(f"the search found nothing: {why}")
    highest = max(kept, key=lambda trial: (score_of(trial), -trial.number))
    if cost is None:
        best = kept[0] if kept[0].number == 0 and _as_good(kept[0], highest) else highest
        return best, [best]
    front = pareto_front(kept, cost)
    return next(trial for trial in front if _as_good(trial, front[-1])), front


def _as_good(trial: TrialRecord, highest: TrialRecord) -> bool:
    differences = np.array([highest.scores[number] - score for number, score in trial.scores.items()])
    if len(differences) < 2:
        return trial.score == highest.score
    return bool(differences.mean() <= differences.std(ddof=1) / math.sqrt(len(differences)))


def importances(trials: Sequence[FrozenTrial], cost: bool) -> dict[str, float]:
    """The share of the score's variance that each tunable explains, the largest first."""
    if len({trial.values[0] for trial in trials}) < 2:
        return {}
    # Not PED-ANOVA, Optuna's default: it compares the best trials with the sampler's others, and so finds no
    # importance in a switch that the sampler settled early.
    with quiet():
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        study = study_in_memory(trials, cost)
        target = (lambda trial: trial.values[0]) if cost else None
        found = optuna.importance.get_param_importances(study, evaluator=evaluator, target=target)
    return {name: float(share) for name, share in found.items()}
