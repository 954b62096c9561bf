"""The learned part of the reader: ranks the candidate spans of a question, and rates answers.

A network with one small hidden layer and a linear part scores every candidate by its `features`; the softmax over all
candidates gives their probabilities. The weights in ``ranker.json`` were fitted on train and dev questions in version
0.1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from .span_table import Matrix, Vector


class Ranker(NamedTuple):
    """The weights: ``hidden`` is features x units, ``bias`` and ``out`` go by units, ``linear`` by features."""

    hidden: Matrix
    bias: Vector
    out: Vector
    linear: Vector

    def probabilities(self, features: Matrix) -> Vector:
        """The probability of each candidate to be the answer."""
        if not len(features):
            return np.zeros(0, np.float32)
        with _blas().limit(limits=1):  # starting threads takes longer than these small products
            scores = np.maximum(features @ self.hidden + self.bias, 0) @ self.out + features @ self.linear
        odds = np.exp(scores - scores.max())
        share: Vector = odds / odds.sum()
        return share


@cache
def ranker(name: str) -> Ranker:
    """A fitted ranker.

    Args:
        name: ``hop`` ranks the answers of a sub-question by `features`, ``bare`` those of a whole question, ``whole``
            the same by `whole_features`, which include the chain of sub-questions.
    """
    weights = _fitted()[name]  # in thousandths
    return Ranker(*(np.array(weights[part], np.float32) / np.float32(1000) for part in Ranker._fields))


def calibrated(way: str, inputs: Sequence[float]) -> float:
    """The probability that an answer is right: logistic regression on the log-odds of the inputs.

    Args:
        way: How the answer was reached: ``span``, ``comparison``, ``same`` or ``claim``.
    """
    *weights, offset = _fitted()["calibration"][way]
    total = offset + sum(weight * log_odds(value) for weight, value in zip(weights, inputs, strict=True))
    return 1 / (1 + math.exp(-total))


def log_odds(chance: float) -> float:
    """The log-odds of a probability, clipped to 0.001 and 0.999."""
    chance = min(max(chance, 0.001), 0.999)
    return math.log(chance / (1 - chance))


@cache
def _fitted() -> dict[str, Any]:
    return dict(json.loads((files(__package__) / "ranker.json").read_bytes()))


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
