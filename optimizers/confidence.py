"""Fits how a program weighs the judgements of its answers, without a call of a model.

    values = fit(program.confidence, list(judgements(read_records("runs/polyhop-train"))))
    values                    # {"midpoint": 1.5, "threshold": ...}

A run records for each answer that was judged its accuracy, its credibility and the number of hops
(`polyhop.programs.trace.Weighed`). An answer is right if it equals a gold one. Alpha is chosen such that right answers
rank above wrong ones (AUROC), then the minima and the threshold such that fewest answers are misjudged: wrong ones that
pass, right ones that do not. The present values win ties. What is said of the fitted values is cross-validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from ..eval.folder import RunRecord
from ..programs.confidence import Confidence
from ..programs.prediction import UNKNOWN
from ..programs.tunable import tunables
from .tunables import with_values

Array = np.ndarray[Any, Any]

LEAST, FOLDS = 50, 5
"""Judged answers that a fit needs; and the folds of its cross-validation, each with a right and a wrong one."""

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


def judgements(records: Iterable[RunRecord]) -> Iterator[Judgement]:
    """The judgement of each question's answer, where it was judged."""
    for record in records:
        judged = [step for step in record.trace if step["step"] == "weighed" and step.get("answer") == record.answer]
        if judged and record.answer not in (None, UNKNOWN) and "answer_em" in record.scores:
            last = judged[-1]  # of steps that have the same answer: the question's comes last
            yield Judgement(last["hops"], last["accuracy"], last["credibility"], record.scores["answer_em"] == 1)


def fit(part: Confidence, judged: Sequence[Judgement]) -> dict[str, Any]:
    """The values of the tunables that fit best."""
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
    _, best = min(errors, key=lambda pair: pair[0])
    values = {name: tunable.value for name, tunable in tunables(with_values(part, best)).items()}
    for unused in ("fixed_alpha",) if values["adaptive"] else ("midpoint", "slope"):
        del values[unused]
    return values


def misjudged(part: Confidence, judged: Sequence[Judgement]) -> float:
    """The share of answers that are wrong and pass, or right and do not."""
    right = np.array([judgement.right for judgement in judged])
    return float((_weighed(part, judged)[1] != right).mean())


def misjudged_if_fitted(part: Confidence, judged: Sequence[Judgement]) -> float:
    """The same with fitted values, of answers that the fit has not seen (cross-validated)."""
    from sklearn.model_selection import StratifiedKFold

    right, wrong = [judgement.right for judgement in judged], 0.0
    for seen, rest in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(right, right):
        values, others = fit(part, [judged[n] for n in seen]), [judged[n] for n in rest]
        wrong += len(others) * misjudged(with_values(part, values), others)
    return wrong / len(judged)


def _weighed(part: Any, judged: Sequence[Judgement]) -> Array:
    """The confidence in each answer, and whether it passes: an array of shape (2, answers)."""
    weighed = [part.weigh(judgement.hops, judgement.accuracy, judgement.credibility) for judgement in judged]
    return np.array([[answer.confidence for answer in weighed], [answer.passed for answer in weighed]])


def _auroc(confidence: Array, right: Array) -> float:
    """By ranks (Mann and Whitney): scikit-learn's checks of arrays take most of the time of a fit."""
    many, few = right.sum(), len(right) - right.sum()
    return float((rankdata(confidence)[right].sum() - many * (many + 1) / 2) / (many * few)) if many and few else nan
