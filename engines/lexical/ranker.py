"""The learned part of the reader: ranks the candidate spans of a question.

A network with one small hidden layer and a linear part scores every candidate by its `features`; the softmax over all
candidates gives their probabilities. The weights in ``ranker.json`` were fitted on train questions in version 0.1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from .span_table import Matrix, Vector

_PARTS = np.float32(1000)  # weights are stored as integers in thousandths


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@dataclass(frozen=True)
class Ranker:
    """The weights: ``hidden`` is features x units, ``bias`` and ``out`` go by units, ``linear`` by features."""

    hidden: Matrix
    bias: Vector
    out: Vector
    linear: Vector

    def scores(self, features: Matrix) -> Vector:
        with _blas().limit(limits=1):  # starting threads takes longer than these small products
            scores: Vector = np.maximum(features @ self.hidden + self.bias, 0) @ self.out + features @ self.linear
        return scores

    def probabilities(self, features: Matrix) -> Vector:
        """The softmax of the scores."""
        if not len(features):
            return np.zeros(0, np.float32)
        scores = self.scores(features)
        odds = np.exp(scores - scores.max())
        share: Vector = odds / odds.sum()
        return share

    @classmethod
    def mean(cls, rankers: Sequence[Ranker]) -> Ranker:
        """A ranker that gives the mean score of several."""
        return cls(
            np.concatenate([each.hidden for each in rankers], axis=1),
            np.concatenate([each.bias for each in rankers]),
            np.concatenate([each.out / np.float32(len(rankers)) for each in rankers]),
            np.mean([each.linear for each in rankers], axis=0),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Ranker:
        """Read what `to_record` wrote."""
        return cls(*(np.array(record[name], np.float32) / _PARTS for name in ("hidden", "bias", "out", "linear")))

    def to_record(self) -> dict[str, Any]:
        """The weights in thousandths, as JSON."""
        return {
            name: np.rint(getattr(self, name) * _PARTS).astype(int).tolist()
            for name in ("hidden", "bias", "out", "linear")
        }


@dataclass(frozen=True)
class Models:
    """All fitted models of the reader."""

    hop: Ranker  # ranks the answers of a sub-question by `features`
    bare: Ranker  # ranks the answers of a whole question by `features`
    whole: Ranker  # the same by `whole_features`, which include the chain of sub-questions
    calibration: Mapping[str, Sequence[float]]  # for each way to reach an answer: the weights of its inputs, the offset

    def probability(self, way: str, inputs: Sequence[float]) -> float:
        """The calibrated probability that an answer is right: logistic regression on the log-odds of the inputs."""
        *weights, offset = self.calibration[way]
        total = offset + sum(weight * log_odds(value) for weight, value in zip(weights, inputs, strict=True))
        return 1 / (1 + math.exp(-total))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Models:
        """Read what `to_record` wrote."""
        hop, bare, whole = (Ranker.from_record(record[name]) for name in ("hop", "bare", "whole"))
        return cls(hop, bare, whole, record["calibration"])

    def to_record(self) -> dict[str, Any]:
        return {
            "hop": self.hop.to_record(),
            "bare": self.bare.to_record(),
            "whole": self.whole.to_record(),
            "calibration": {way: [round(weight, 3) for weight in weights] for way, weights in self.calibration.items()},
        }


def log_odds(chance: float) -> float:
    """The log-odds of a probability, clipped to 0.001 and 0.999."""
    chance = min(max(chance, 0.001), 0.999)
    return math.log(chance / (1 - chance))


@cache
def shipped_models() -> Models:
    """The models in ``ranker.json``."""
    return Models.from_record(json.loads((files(__package__) / "ranker.json").read_text()))
