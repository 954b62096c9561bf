"""Trains a `Ranker`: maximizes the likelihood that the softmax over a question's candidates gives to correct answers.

scikit-learn has no softmax over groups of rows. Several candidates may be correct, some in part: a candidate counts by
the square of its F1, from 0.5 on, and the loss of a question is -log of the sum of count times probability. Adam
(Kingma and Ba, arXiv 1412.6980) with a rate that falls to nothing, and dropout of hidden units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....engines.lexical.ranker import Ranker
from ....engines.lexical.span_table import Matrix, Vector

LEAST = 0.5  # F1 from which a candidate counts


@dataclass(frozen=True)
class RankingTask:
    """A question's candidates: a row of features per candidate (half precision is enough), and the F1 of each."""

    features: NDArray[np.floating[Any]]
    f1: Vector
    stands_for: float = 1.0  # how many candidates each wrong one represents

    @property
    def counts(self) -> Vector:
        counts: Vector = np.where(self.f1 >= LEAST, np.square(self.f1, dtype=np.float32), 0)
        return counts

    def narrowed(self, width: int) -> RankingTask:
        """With the first features only."""
        return replace(self, features=self.features[:, :width])

    def thinned(self, rng: np.random.Generator, most: int = 150) -> RankingTask:
        """The candidates that count and a sample of the others: nearly as good, and faster."""
        counted = self.f1 >= LEAST
        others = np.flatnonzero(~counted)
        if len(others) <= most:
            return self
        kept = np.sort(np.concatenate([np.flatnonzero(counted), rng.choice(others, most, replace=False)]))
        return RankingTask(self.features[kept], self.f1[kept], len(others) / most)


@dataclass(frozen=True)
class Recipe:
    """The hyperparameters of an ensemble of networks."""

    units: int
    epochs: int
    networks: int = 1
    rate: float = 3e-3
    decay: float = 1e-4
    dropout: float = 0.15
    batch: int = 16


def train(tasks: Sequence[RankingTask], recipe: Recipe, seed: int = 0) -> Ranker:
    """Fit a ranker to the tasks that have a correct candidate."""
    return Ranker.mean([_network(tasks, recipe, seed + number) for number in range(recipe.networks)])


def _network(tasks: Sequence[RankingTask], recipe: Recipe, seed: int) -> Ranker:
    rng = np.random.default_rng(seed)
    tasks = [task.thinned(rng) for task in tasks if task.counts.any()]
    width: int = tasks[0].features.shape[1]
    weights = [
        rng.normal(0, 0.7 * math.sqrt(2 / width), (width, recipe.units)).astype(np.float32),
        np.zeros(recipe.units, np.float32),
        rng.normal(0, 0.1, recipe.units).astype(np.float32),
        rng.normal(0, 0.01, width).astype(np.float32),
    ]
    adam = _Adam(weights)
    steps = recipe.epochs * -(-len(tasks) // recipe.batch)
    step = 0
    for _ in range(recipe.epochs):
        order = rng.permutation(len(tasks))
        for start in range(0, len(order), recipe.batch):
            batch = [tasks[n] for n in order[start : start + recipe.batch]]
            kept = (rng.random(recipe.units) >= recipe.dropout) / np.float32(1 - recipe.dropout)
            adam.descend(_gradients(weights, batch, kept, recipe.decay), recipe.rate * max(0.02, 1 - step / steps))
            step += 1
    return Ranker(*weights)


def _gradients(
    weights: Sequence[Matrix], batch: Sequence[RankingTask], kept: NDArray[np.floating[Any]], decay: float
) -> list[Matrix]:
    """The gradients of the mean loss of a batch and of weight decay."""
    hidden, bias, out, linear = weights
    rows = np.concatenate([task.features for task in batch]).astype(np.float32)
    inner = rows @ hidden + bias
    active = np.maximum(inner, 0) * kept
    scores = active @ out + rows @ linear
    by_score = np.zeros_like(scores)
    at = 0
    for task in batch:
        mine = slice(at, at + len(task.features))
        counts = task.counts
        odds = np.exp(scores[mine] - scores[mine].max()) * np.where(counts > 0, 1, np.float32(task.stands_for))
        chances = odds / odds.sum()
        right = float(chances @ counts)
        if right > 1e-9:
            by_score[mine] = (chances - chances * counts / right) / len(batch)
        at = mine.stop
    by_inner = np.outer(by_score, out) * kept * (inner > 0)
    return [rows.T @ by_inner + decay * hidden, by_inner.sum(0), active.T @ by_score + decay * out, rows.T @ by_score]


class _Adam:
    def __init__(self, weights: Sequence[Matrix]) -> None:
        self.weights, self.steps = weights, 0
        self.mean = [np.zeros_like(each) for each in weights]
        self.square = [np.zeros_like(each) for each in weights]

    def descend(self, gradients: Sequence[Matrix], rate: float) -> None:
        self.steps += 1
        for weight, gradient, mean, square in zip(self.weights, gradients, self.mean, self.square, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            step = mean / (1 - 0.9**self.steps)
            weight -= rate * step / (np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8)
