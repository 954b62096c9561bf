"""Fits how a program weighs the judgements of its answers, to a finished run and without a call of a model.

    fitted = fit_run(program.confidence, Path("runs/polyhop-train"))
    fitted.values                    # {"midpoint": 1.5, "threshold": ...}
    fitted.before, fitted.after      # how well answers are told apart

A run records for each answer that was judged its accuracy, its credibility and the number of hops
(`polyhop.programs.trace.Weighed`). An answer is right if it equals a gold one. Alpha is chosen such that right answers
rank above wrong ones (AUROC), then the minima and the threshold such that fewest answers are misjudged: wrong ones that
pass, right ones that do not. The present values win ties. What is reported of the fitted values is cross-validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from ..data.errors import PolyhopError
from ..eval.folder import RunRecord, read_records
from ..programs.confidence import Confidence
from ..programs.prediction import UNKNOWN
from ..programs.tunable import tunables
from .tunables import with_values

Array = np.ndarray[Any, Any]

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


class Judgement(NamedTuple):
    """An answer that was judged; ``hops`` is the estimate."""

    hops: float
    accuracy: float | None
    credibility: float
    right: bool


class Figures(NamedTuple):
    """How well answers are told apart: the share that is misjudged, and the AUROC of the confidence (NaN if all answers
    are right or all are wrong)."""

    answers: int
    error: float
    auroc: float


class ConfidenceFit(NamedTuple):
    """Fitted values of a `Confidence` by tunable, and figures with its present values and with fitted ones, which are
    cross-validated."""

    values: dict[str, Any]
    before: Figures
    after: Figures

    @property
    def helps(self) -> bool:
        """Whether fitted values misjudge fewer answers that the fit has not seen, or as few and rank them better."""
        return (self.after.error, -self.after.auroc) < (self.before.error, -self.before.auroc)


def fit_run(part: Confidence, run: Path) -> ConfidenceFit:
    """Fit the values of a program's part to a finished run of the program.

    Raises:
        PolyhopError: the run has too few judged answers.
    """
    judged = list(judgements(read_records(run)))
    right = sum(judgement.right for judgement in judged)
    if len(judged) < _LEAST or min(right, len(judged) - right) < FOLDS:
        raise PolyhopError(
            f"{len(judged)} judged answers, {right} of them right, are too few: at least {_LEAST} are needed, and "
            f"{FOLDS} of both kinds (polyhop judges every answer with --set review=always)"
        )
    return fit(part, judged)


def judgements(records: Iterable[RunRecord]) -> Iterator[Judgement]:
    """The judgement of each question's answer, where it was judged."""
    for record in records:
        judged = [step for step in record.trace if step["step"] == "weighed" and step.get("answer") == record.answer]
        if judged and record.answer not in (None, UNKNOWN) and "answer_em" in record.scores:
            last = judged[-1]  # of steps that have the same answer: the question's comes last
            yield Judgement(last["hops"], last["accuracy"], last["credibility"], record.scores["answer_em"] == 1)


def fit(part: Confidence, judged: Sequence[Judgement]) -> ConfidenceFit:
    """Fit the values to judgements."""
    from sklearn.model_selection import StratifiedKFold

    right = np.array([judgement.right for judgement in judged])
    fitted = np.zeros((2, len(judged)))
    for seen, rest in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(right, right):
        fitted[:, rest] = _weighed(_fitted(part, [judged[n] for n in seen]), [judged[n] for n in rest])
    before, after = (
        Figures(len(right), float((passed != right).mean()), _auroc(confidence, right))
        for confidence, passed in (_weighed(part, judged), fitted)
    )
    values = {name: tunable.value for name, tunable in tunables(_fitted(part, judged)).items()}
    for unused in ("fixed_alpha",) if values["adaptive"] else ("midpoint", "slope"):
        del values[unused]
    return ConfidenceFit(values, before, after)


def _fitted(part: Confidence, judged: Sequence[Judgement]) -> Any:
    """A copy of the part with the values that fit."""
    right = np.array([judgement.right for judgement in judged])
    ranked = [_auroc(_weighed(with_values(part, alpha), judged)[0], right) for alpha in ({}, *_ALPHAS)]
    part = with_values(part, ({}, *_ALPHAS)[int(np.argmax(ranked))])  # the first of equals
    present = part.threshold.value
    errors: list[tuple[float, dict[str, float]]] = []
    for minima in ({}, *_MINIMA):
        confidence, enough = _weighed(with_values(part, {**minima, "threshold": 0.0}), judged)
        levels = np.unique(confidence)
        for threshold in sorted([present, *(levels[1:] + levels[:-1]) / 2], key=lambda level: abs(level - present)):
            passed = (enough > 0) & (confidence >= threshold)
            errors.append((float((passed != right).mean()), {**minima, "threshold": float(threshold)}))
    return with_values(part, min(errors, key=lambda pair: pair[0])[1])


def _weighed(part: Any, judged: Sequence[Judgement]) -> Array:
    """The confidence in each answer, and whether it passes: an array of shape (2, answers)."""
    weighed = [part.weigh(judgement.hops, judgement.accuracy, judgement.credibility) for judgement in judged]
    return np.array([[answer.confidence for answer in weighed], [answer.passed for answer in weighed]])


def _auroc(confidence: Array, right: Array) -> float:
    """By ranks (Mann and Whitney): scikit-learn's checks of arrays take most of the time of a fit."""
    many, few = right.sum(), len(right) - right.sum()
    return float((rankdata(confidence)[right].sum() - many * (many + 1) / 2) / (many * few)) if many and few else nan
