"""The number of hops that a question needs, estimated before retrieval (PAR-RAG, arXiv 2504.16787).

    estimator = ComplexityEstimator()                              # a part of a program
    complexity = estimator("Where was the director of Solaris born?")
    complexity.hops, complexity.expected, complexity.probabilities

An estimator is a DSPy parameter: artifacts hold it. `bench/complexity.py` trains another one, on your own runs or
on benchmarks.

Instead of the paper's BERT and four linguistic features, this is a multinomial logistic regression over features of the
question's form (`polyhop.data.form`): no download, 0.05 ms per question. Words are not features: they improve the
estimate on the training benchmarks and impair it on any other. ``complexity.json`` is the estimator in the package;
docs/results.md has its confusion matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from dspy.predict.parameter import Parameter
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..data.files import read_bytes
from ..data.form import FEATURES, features

HOPS = (1, 2, 3, 4)
SHIPPED = Path(__file__).with_name("complexity.json")

_Number = Annotated[float, Field(ge=-1e6, le=1e6)]  # products of larger ones could overflow


@dataclass(frozen=True)
class Complexity:
    """The probabilities of 1, 2, 3 and 4 hops; they sum to 1."""

    probabilities: tuple[float, ...]

    @classmethod
    def of(cls, hops: int) -> Complexity:
        """A known number of hops, 1 to 4."""
        return cls(tuple(float(hops == count) for count in HOPS))

    @property
    def hops(self) -> int:
        """The most probable number, 1 to 4; the smallest, if several are."""
        return 1 + self.probabilities.index(max(self.probabilities))

    @property
    def expected(self) -> float:
        """The mean, 1.0 to 4.0."""
        mean = math.fsum(hops * probability for hops, probability in zip(HOPS, self.probabilities, strict=True))
        return min(max(mean, 1.0), 4.0)


class ComplexityHead(BaseModel):
    """A trained classifier, as its JSON file holds it.

    Attributes:
        inputs: The names of the features, those of `polyhop.data.form.FEATURES`.
        mean, scale: For standardizing each of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    training: dict[str, Any]  # Command, data and scores, for the reader
    hops: tuple[int, ...] = HOPS
    inputs: tuple[str, ...] = FEATURES
    mean: tuple[_Number, ...]
    scale: tuple[Annotated[_Number, Field(ge=1e-6)], ...]
    weights: tuple[tuple[_Number, ...], ...]  # one row per class, one number per feature
    biases: tuple[_Number, ...]  # one per class

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.inputs != FEATURES:
            raise ValueError(
                "trained for another version, with other features: train it again with python -m bench.complexity"
            )
        sizes = {len(row) for row in (self.mean, self.scale, *self.weights)}
        if sizes != {len(FEATURES)} or {len(self.weights), len(self.biases)} != {len(HOPS)}:
            raise ValueError(f"must have {len(HOPS)} classes, and numbers for each feature")
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises: OSError, ValueError: there is no such file, or it does not hold a classifier."""
        return cls.model_validate_json(read_bytes(path))


class ComplexityEstimator(Parameter):
    """Estimates how many hops a question needs from its words alone. Thread-safe.

    A DSPy parameter, saved and loaded with the program's JSON state; teleprompters keep it.

    Args:
        head: By default that of the package; another one is read with `ComplexityHead.load`.
    """

    def __init__(self, head: ComplexityHead | None = None) -> None:
        self.head = head or _shipped()
        # One matrix for standardizing and classifying.
        self._weights = np.asarray(self.head.weights) / np.asarray(self.head.scale)
        self._biases = np.asarray(self.head.biases) - self._weights @ np.asarray(self.head.mean)

    def reset(self) -> None:
        """Keep the head: teleprompters call this to clear demos."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        return self.head.model_dump(mode="json")

    def load_state(self, state: dict[str, Any]) -> None:
        """Raises: ValueError: the state is not that of an estimator; this one is unchanged."""
        self.__dict__.update(vars(ComplexityEstimator(ComplexityHead.model_validate(state))))

    def __deepcopy__(self, memo: dict[int, Any]) -> ComplexityEstimator:
        return ComplexityEstimator(self.head)

    def __call__(self, question: str) -> Complexity:
        scores = self._weights @ inputs([question])[0] + self._biases
        shares = np.exp(scores - scores.max())
        return Complexity(tuple((shares / shares.sum()).tolist()))


def inputs(questions: list[str]) -> NDArray[np.float64]:
    """The features of some questions, shape (questions, features)."""
    return np.array([features(question) for question in questions])


@cache
def _shipped() -> ComplexityHead:
    return ComplexityHead.load(SHIPPED)
