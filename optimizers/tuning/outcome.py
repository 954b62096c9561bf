"""What a search has found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optuna

from ...data.errors import PolyhopError
from .sampler import Seen, quiet, view
from .space import Space
from .study import Trial


@dataclass(frozen=True)
class Outcome:
    """The trials of a search and what follows from them.

    Attributes:
        settings: What the search was: program, ranges, questions, metric, sampler, seed, versions.
        trials: By slot; the first one is the defaults.
        best: The trial whose values the program was given; see `choose`.
        front: The trials that no other one beats in both score and cost, the cheapest first; of a search that goes by
            the score alone only the best.
        importances: How much of the difference between good and bad trials each tunable makes, in shares (fANOVA);
            empty where the trials do not tell.
    """

    settings: Mapping[str, Any]
    trials: Sequence[Trial]
    best: Trial
    front: Sequence[Trial]
    importances: Mapping[str, float] = field(default_factory=dict)

    @property
    def default(self) -> Trial:
        """The trial of the defaults."""
        return self.trials[0]

    @property
    def states(self) -> dict[str, int]:
        """How many trials are complete, pruned, failed; and how often one was begun again after a stop."""
        counts = Counter(trial.state for trial in self.trials)
        again = sum(trial.attempts - 1 for trial in self.trials)
        return {**{state: counts[state] for state in ("complete", "pruned", "failed")}, "retried": again}

    def as_json(self) -> dict[str, Any]:
        """Everything but the scores of single questions, as JSON has it."""
        return {
            "schema": 1,
            "settings": dict(self.settings),
            "states": self.states,
            "best": _json(self.best),
            "default": _json(self.default),
            "front": [_json(trial) for trial in self.front],
            "importances": dict(self.importances),
            "trials": [_json(trial) for trial in self.trials],
        }


def _json(trial: Trial) -> dict[str, Any]:
    told: dict[str, Any] = {"slot": trial.slot, "state": trial.state, "values": trial.values}
    if trial.scores:
        known = {name: cost for name, cost in trial.costs.items() if math.isfinite(cost)}
        told |= {"score": trial.score, "questions": len(trial.scores), "costs": known, "failures": trial.failures}
    # Why a question failed is not told: a model's own words may hold its address.
    return told | ({"error": trial.error} if trial.error and trial.state == "failed" else {})


def within(trial: Trial, at_most: Mapping[str, float]) -> bool:
    """Whether a trial keeps the limits of its costs."""
    return all(trial.costs[name] <= limit for name, limit in at_most.items())


def front(trials: Sequence[Trial], cost: str) -> list[Trial]:
    """The Pareto front of some trials, the cheapest first; of equal ones the first."""
    found: list[Trial] = []
    for trial in sorted(trials, key=lambda trial: (trial.costs[cost], -trial.score, trial.slot)):
        if not found or trial.score > found[-1].score:
            found.append(trial)
    return found


def choose(trials: Sequence[Trial], cost: str | None, at_most: Mapping[str, float]) -> tuple[Trial, list[Trial]]:
    """The best of the complete trials that keep the limits, and the front.

    Without a cost it is the one with the highest score, of equal ones the first; but if the defaults come within one
    standard error of it, they stay: many trials on the same questions always find some luck. With a cost it is the
    cheapest trial of the front that comes within one standard error of the highest score. The error is that of the mean
    of the differences between the two trials, question by question.

    Raises:
        PolyhopError: there is none.
    """
    complete = [trial for trial in trials if trial.state == "complete"]
    kept = [trial for trial in complete if within(trial, at_most)]
    if not kept:
        why = next((trial.error for trial in trials if trial.error), "none was completed")
        if complete:
            least = {name: f"{min(trial.costs[name] for trial in complete):g}" for name in at_most}
            why = f"none is within the limits {dict(at_most)}; the least that was seen is {least}"
        raise PolyhopError(f"the search has found nothing: {why}")
    highest = max(kept, key=lambda trial: (trial.score, -trial.slot))
    if cost is None:
        best = kept[0] if kept[0].slot == 0 and _as_good(kept[0], highest) else highest
        return best, [best]
    candidates = front(kept, cost)
    return next(trial for trial in candidates if _as_good(trial, candidates[-1])), candidates


def _as_good(trial: Trial, highest: Trial) -> bool:
    differences = np.array([highest.scores[number] - score for number, score in trial.scores.items()])
    if len(differences) < 2:
        return trial.score == highest.score
    return bool(differences.mean() <= differences.std(ddof=1) / math.sqrt(len(differences)))


def importances(seen: Sequence[Seen], space: Space) -> dict[str, float]:
    """What matters to the score, the most important tunable first."""
    ended = [Seen(each.values, each.results[:1]) for each in seen if each.results and space.covers(each.values)]
    if len({each.results for each in ended}) < 2:
        return {}
    # Not Optuna's default (PED-ANOVA): it compares the best trials with the others that the sampler chose, and so finds
    # nothing in a switch that the sampler has long been sure of.
    with quiet():
        judge = optuna.importance.FanovaImportanceEvaluator(seed=0)
        found = optuna.importance.get_param_importances(view(ended, space), evaluator=judge)
    return {name: float(share) for name, share in found.items()}
