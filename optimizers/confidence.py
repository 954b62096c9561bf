"""Fits how a program weighs the judgements of its answers, to its finished runs and without a call of a model.

    found = fit_runs([Path("runs/par_rag-train")])
    found.values                              # {"review.confidence.midpoint": 1.5, "review.confidence.threshold": ...}
    found.before[None], found.after[None]     # over all answers; by hops: found.after[2]

A run records for each answer that was judged its accuracy, its credibility and the number of hops
(`polyhop.programs.trace.Weighed`). An answer is right if it equals a gold one. Alpha is chosen such that right answers
rank above wrong ones (AUROC), then the minima and the threshold such that fewest answers are misjudged: wrong ones that
pass, right ones that do not. The present values win ties. What is reported of the fitted values is cross-validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from ..data.errors import PolyhopError
from ..eval.records import QuestionRecord, read_manifest, read_records
from ..eval.statistics import compare
from ..programs.complexity import HOPS
from ..programs.confidence import Confidence
from ..programs.prediction import UNKNOWN
from ..programs.tunable import tunables

FOLDS = 5

_LEAST = 50  # answers, of which at least FOLDS are right, and as many wrong
_ALPHAS = [
    *({"adaptive": True, "midpoint": n / 2, "slope": slope} for n in range(2, 9) for slope in (0.5, 1.0, 2.0, 4.0)),
    *({"adaptive": False, "fixed_alpha": n / 10} for n in range(11)),
]
_MINIMA = [
    {"least_accuracy": accuracy, "least_credibility": credibility}
    for accuracy in (0.0, 0.05, 0.2, 0.4)
    for credibility in (0.0, 0.1, 0.6)  # above the contradictory, the extrapolatory
]


@dataclass(frozen=True)
class Judgement:
    """An answer that was judged; ``hops`` is the estimate, ``of`` the question's own number where it is known."""

    hops: float
    accuracy: float | None
    credibility: float
    right: bool
    of: int


@dataclass(frozen=True)
class Figures:
    """How well answers are told apart: the share that is misjudged, the AUROC of the confidence (NaN if all answers are
    right or all are wrong), and the share that does not pass and is tried again."""

    answers: int
    error: float
    auroc: float
    retries: float


@dataclass(frozen=True)
class ConfidenceFit:
    """The values of a `Confidence` by tunable, and figures over all answers (None) and by number of hops: with the
    values of the runs, and with fitted ones, which are cross-validated. ``p`` compares the two errors (two-sided)."""

    values: dict[str, Any]
    before: dict[int | None, Figures]
    after: dict[int | None, Figures]
    p: float

    @property
    def helps(self) -> bool:
        """Whether fitted values misjudge fewer answers that the fit has not seen, or as few and rank them better."""
        old, new = self.before[None], self.after[None]
        return (new.error, -new.auroc) < (old.error, -old.auroc)


def fit_runs(runs: Sequence[Path]) -> ConfidenceFit:
    """Fit the values to finished runs of one program, which had the same values.

    Raises:
        PolyhopError: the program judges no answers, the runs differ, or they have too few judged answers.
    """
    known = [read_manifest(run).program.tunables for run in runs]
    prefixes = [name.removesuffix("least_credibility") for name in known[0] if name.endswith("least_credibility")]
    if not prefixes:
        raise PolyhopError(f"{runs[0]} is a run of a program that weighs no judgements: use polyhop or par_rag")
    prefix, part = prefixes[0], Confidence()
    names = list(tunables(part))
    found = [{name: each.get(prefix + name) for name in names} for each in known]
    if any(each != found[0] for each in found):
        raise PolyhopError(f"the runs have other values of {prefix}*: fit to runs of one program")
    judged = [each for run in runs for each in judgements(read_records(run))]
    right = sum(each.right for each in judged)
    if len(judged) < _LEAST or min(right, len(judged) - right) < FOLDS:
        raise PolyhopError(
            f"{len(judged)} judged answers, {right} of them right, are too few: at least {_LEAST} are needed, and "
            f"{FOLDS} of both kinds (polyhop judges every answer with --set review=always)"
        )
    return fit(_with(part, found[0]), judged, prefix)


def judgements(records: Iterable[QuestionRecord]) -> Iterator[Judgement]:
    """The judgement of each question's answer, where it was judged."""
    for record in records:
        judged = [step for step in record.trace if step["step"] == "weighed" and step.get("answer") == record.answer]
        if judged and record.answer not in (None, UNKNOWN) and "answer_em" in record.scores:
            last = judged[-1]  # of steps that have the same answer: the question's comes last
            of = record.hops or min(max(round(last["hops"]), HOPS[0]), HOPS[-1])
            yield Judgement(last["hops"], last["accuracy"], last["credibility"], record.scores["answer_em"] == 1, of)


def fit(part: Confidence, judged: Sequence[Judgement], prefix: str = "") -> ConfidenceFit:
    """Fit the values of a `Confidence` to judgements; ``prefix`` goes before their names."""
    from sklearn.model_selection import StratifiedKFold

    right = np.array([each.right for each in judged])
    old, new = _weighed(part, judged), np.zeros((2, len(judged)))
    for seen, rest in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(right, right):
        new[:, rest] = _weighed(_fitted(part, [judged[n] for n in seen]), [judged[n] for n in rest])
    groups: dict[int | None, Any] = {None: np.full(len(judged), True)}
    groups |= {hops: np.array([each.of == hops for each in judged]) for hops in sorted({each.of for each in judged})}
    before, after = (
        {name: _figures(weighed[:, chosen], right[chosen]) for name, chosen in groups.items()} for weighed in (old, new)
    )
    wrong = [(passed != right).astype(float) for _, passed in (old, new)]
    values = {name: each.value for name, each in tunables(_fitted(part, judged)).items()}
    unused = {"fixed_alpha"} if values["adaptive"] else {"midpoint", "slope"}
    shown = {prefix + name: value for name, value in values.items() if name not in unused}
    return ConfidenceFit(shown, before, after, compare(*wrong).p_permutation)


def _fitted(part: Confidence, judged: Sequence[Judgement]) -> Confidence:
    """A copy of the part with the values that fit."""
    right = np.array([each.right for each in judged])

    def rank(alpha: dict[str, Any]) -> float:
        return _auroc(_weighed(_with(part, alpha), judged)[0], right)

    part = _with(part, max([{}, *_ALPHAS], key=rank))  # the first of equals
    found: list[tuple[float, dict[str, float]]] = []
    for minima in ({}, *_MINIMA):
        confidence, enough = _weighed(_with(part, {**minima, "threshold": 0.0}), judged)
        levels = np.unique(confidence)
        present = part.threshold.value
        thresholds = sorted([present, *(levels[1:] + levels[:-1]) / 2], key=lambda level: abs(level - present))
        for threshold in thresholds:
            passed = (enough > 0) & (confidence >= threshold)
            found.append((float((passed != right).mean()), {**minima, "threshold": float(threshold)}))
    return _with(part, min(found, key=lambda pair: pair[0])[1])


def _weighed(part: Confidence, judged: Sequence[Judgement]) -> np.ndarray[Any, Any]:
    """The confidence in each answer, and whether it passes: an array of shape (2, answers)."""
    found = [part.weigh(each.hops, each.accuracy, each.credibility) for each in judged]
    return np.array([[each.confidence for each in found], [each.passed for each in found]])


def _figures(weighed: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> Figures:
    confidence, passed = weighed
    auroc = _auroc(confidence, right)
    return Figures(len(right), float((passed != right).mean()), auroc, float(1 - passed.mean()))


def _auroc(confidence: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(right, confidence)) if 0 < right.sum() < len(right) else nan


def _with(part: Confidence, values: dict[str, Any]) -> Confidence:
    twin: Confidence = part.deepcopy()
    for name, value in values.items():
        getattr(twin, name).value = value
    return twin
