"""The fit of the reader: cross-fitted, calibrated, measured.

The questions are parted into folds by the passages that they stand on, so that questions about the same passages, and
a question that stands in two files, are in one fold.
Rankers of sub-questions come first, one for each fold, fitted without it; the chains of all questions are read with the
ranker that does not know them, as at work, and rankers of whole questions learn from that. What is reported as
cross-validated was read with all rankers fitted, and the probability calibrated, without the question's fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from ....engines.lexical.features import FEATURES
from ....engines.lexical.hops import same
from ....engines.lexical.prompt import parse_passages
from ....engines.lexical.ranker import Models, Ranker, log_odds
from ....engines.lexical.reader import answer_chances, weighed
from ....engines.lexical.span_table import span_table
from ....eval.scoring import answer_scores, exact_match
from .examples import Example
from .network import Recipe, train
from .tasks import STEP, YES_NO, Read, hop_tasks, read_all

HOP, BARE, WHOLE = Recipe(24, epochs=7), Recipe(40, epochs=7, networks=3), Recipe(40, epochs=7)
RIGHT = 0.8  # F1 from which an answer counts as right


@dataclass(frozen=True)
class Outcome:
    """An answer with its signs and its scores."""

    source: str
    condition: str
    fold: int
    signs: tuple[str, tuple[float, ...]]
    f1: float
    exact: float


def fold_of(gold: str, folds: int) -> int:
    """The fold of an example, by its `gold`."""
    return int.from_bytes(blake2b(" ".join(gold.lower().split()).encode(), digest_size=8).digest()) % folds


class Fit:
    """Fits rankers and calibration to examples.

    Attributes:
        models: Fitted to all examples.
        held_out: Outcomes of the cross-validation.
        in_sample: Outcomes of `models`, on a part of the examples.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        folds: int = 3,
        jobs: int = 1,
        seed: int = 0,
        recipes: tuple[Recipe, Recipe, Recipe] = (HOP, BARE, WHOLE),
    ) -> None:
        self.examples, self.folds = examples, folds
        self.fold = [fold_of(example.gold, folds) for example in examples]
        everything = range(-1, folds)  # -1 leaves nothing out
        # Processes read; training, which is matrix products, goes on in threads that share the rows.
        with ProcessPoolExecutor(jobs) as pool, ThreadPoolExecutor(jobs) as threads:
            tasks = list(pool.map(hop_tasks, examples, chunksize=32))

            def fit_hop(left_out: int) -> Ranker:
                kept = [each for each, fold in zip(tasks, self.fold, strict=True) if fold != left_out]
                return train([task for each in kept for task in each], recipes[0], seed)

            hops = dict(zip(everything, threads.map(fit_hop, everything), strict=True))
            reads = [read for fold in range(folds) for read in self._read(pool, hops[fold], fold)]
            teaching = [read for read in reads if read.asked.answers[0].lower() not in YES_NO]

            def fit_wholes(left_out: int) -> tuple[Ranker, Ranker]:
                kept = [read.task for read in teaching if self.fold[read.example] != left_out]
                narrow = [task.narrowed(len(FEATURES)) for task in kept]
                return train(narrow, recipes[1], seed), train(kept, recipes[2], seed)

            wholes = dict(zip(everything, threads.map(fit_wholes, everything), strict=True))
            self.held_out = [self._outcome(read, *wholes[self.fold[read.example]]) for read in reads]
            self.models = Models(hops[-1], *wholes[-1], calibrate(self.held_out))
            again = self._read(pool, self.models.hop, None)
            self.in_sample = [self._outcome(read, *wholes[-1]) for read in again]

    def _read(self, pool: ProcessPoolExecutor, ranker: Ranker, fold: int | None) -> Iterator[Read]:
        numbered = [(n, each) for n, each in enumerate(self.examples) if fold is None or self.fold[n] == fold]
        if fold is None:
            numbered = numbered[:: self.folds]  # as many as one fold has tell enough
        parts = [numbered[n : n + 50] for n in range(0, len(numbered), 50)]
        for part in pool.map(partial(read_all, ranker), parts):
            yield from part

    def _outcome(self, read: Read, bare: Ranker, whole: Ranker) -> Outcome:
        answer, signs, asked = read.answer, read.signs, read.asked
        if signs is None:
            book = span_table(parse_passages(read.pages))
            rows = read.task.features.astype(np.float32)
            hops = 1 if read.condition == STEP else len(self.examples[read.example].sub_questions)
            chances = answer_chances(bare, whole, asked.question, rows, book, hops)
            best, said = weighed(asked.question, book, chances)[0]
            answer, signs = best.text, ("span", said)
        right = (answer,) if asked.is_country and same(answer, asked.answers[0], as_country=True) else asked.answers
        scores = answer_scores(answer, right).f1, exact_match(answer, right)
        return Outcome(self.examples[read.example].source, read.condition, self.fold[read.example], signs, *scores)


def calibrate(outcomes: Iterable[Outcome]) -> dict[str, list[float]]:
    """For each way to reach an answer, logistic regression of being right on the log-odds of its signs."""
    ways: dict[str, list[tuple[list[float], bool]]] = {}
    for outcome in outcomes:
        way, signs = outcome.signs
        ways.setdefault(way, []).append(([*map(log_odds, signs), 1.0], outcome.f1 >= RIGHT))
    return {way: _logistic(seen) for way, seen in sorted(ways.items())}


def _logistic(seen: Sequence[tuple[list[float], bool]], ridge: float = 1.0) -> list[float]:
    """Newton's method with a little shrinkage, which a way that is seldom taken needs."""
    x, y = np.array([row for row, _ in seen]), np.array([right for _, right in seen], float)
    weights = np.zeros(x.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (chance - y) + ridge * weights
        curve = (x.T * (chance * (1 - chance))) @ x + ridge * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    return [float(weight) for weight in weights]


# --- the report ------------------------------------------------------------------------------------------------------


def report(fit: Fit) -> dict[str, Any]:
    """Answer F1 and exact match by source and condition, in percent, and how good the probabilities are."""
    return {
        "answers": {
            f"{source} {condition}": {
                "questions": len(_of(fit.held_out, source, condition)),
                "cross-validated": _means(_of(fit.held_out, source, condition)),
                "in-sample": _means(_of(fit.in_sample, source, condition)),
            }
            for source, condition in sorted({(outcome.source, outcome.condition) for outcome in fit.held_out})
        },
        "probabilities": _probabilities(fit.held_out, fit.folds),
    }


def _of(outcomes: Iterable[Outcome], source: str, condition: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if (outcome.source, outcome.condition) == (source, condition)]


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    return {
        "f1": round(100 * float(np.mean([outcome.f1 for outcome in outcomes])), 1),
        "em": round(100 * float(np.mean([outcome.exact for outcome in outcomes])), 1),
    }


def _probabilities(outcomes: Sequence[Outcome], folds: int) -> dict[str, float]:
    """Calibration error (10 bins of equal width) and area under the curve, each fold calibrated on the others."""
    chances, right = [], []
    for fold in range(folds):
        calibration = calibrate(outcome for outcome in outcomes if outcome.fold != fold)
        for outcome in outcomes:
            if outcome.fold == fold and outcome.signs[0] in calibration:
                chances.append(_chance(calibration, *outcome.signs))
                right.append(outcome.f1 >= RIGHT)
    p, y = np.array(chances), np.array(right)
    bins = np.minimum((p * 10).astype(int), 9)
    error = sum(abs(p[bins == n].mean() - y[bins == n].mean()) * (bins == n).mean() for n in set(bins.tolist()))
    order = np.argsort(p, kind="stable")
    ranks = np.empty(len(p))
    ranks[order] = np.arange(1, len(p) + 1)
    area = (ranks[y].sum() - y.sum() * (y.sum() + 1) / 2) / max(y.sum() * (~y).sum(), 1)
    return {"ece": round(float(error), 3), "auc": round(float(area), 3)}


def _chance(calibration: Mapping[str, Sequence[float]], way: str, signs: Sequence[float]) -> float:
    *weights, offset = calibration[way]
    total = offset + sum(weight * log_odds(sign) for weight, sign in zip(weights, signs, strict=True))
    return float(1 / (1 + np.exp(-total)))
