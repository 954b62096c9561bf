"""How many hops a question needs, before anything is retrieved (PAR-RAG, arXiv 2504.16787, its complexity classifier).

    complexity = estimate_complexity("Where was the director of Solaris born?")
    complexity.hops, complexity.expected, complexity.probabilities

The paper puts BERT and four linguistic features into a small network. Here it is multinomial logistic regression over
counts of the question's form (`polyhop.data.form`): no weights to fetch, some 0.05 ms a question. Words themselves are
no features: with them the estimate is better on the benchmarks that it was trained on, and worse on any other.

The estimator that ships, `complexity.json`, holds the command that trained it, its data and its scores. Cross-validated
over questions of MuSiQue, SQuAD, Natural Questions, HotpotQA, 2WikiMultihopQA and the sample:

    hops      taken for 1     2     3     4   recall
    1                2798   323     6     6     89.3
    2                 195  1192   105    43     77.6
    3                   0     9    42    13     65.6
    4                   0     7    15   199     90.0

So 12.7% of 2 hops are taken for 1 (18.7% in the paper, on other data). Of HotpotQA's questions 20.8% have P(1 hop)
above 0.5, and 2.9% above 0.9; where training never saw HotpotQA, 37.6% and 10.6%. An estimator may also be trained on
MiniLM's vectors of the question; then it needs the extra ``dense``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.errors import PolyhopError
from ..data.form import FEATURES, features

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..data.dense import Encoder

HOPS = (1, 2, 3, 4)
SHIPPED = Path(__file__).with_name("complexity.json")
FORMAT = 1


@dataclass(frozen=True)
class Complexity:
    """How many hops a question probably needs.

    Attributes:
        probabilities: Of 1, 2, 3 and 4 hops; they sum to 1.
    """

    probabilities: tuple[float, float, float, float]

    @classmethod
    def of(cls, hops: int) -> Complexity:
        """The certainty that it is so many, where they are known or decided otherwise."""
        if hops not in HOPS:
            raise ValueError(f"a complexity is 1 to 4 hops, got {hops!r}")
        one, two, three, four = (float(hops == each) for each in HOPS)
        return cls((one, two, three, four))

    @property
    def hops(self) -> int:
        """The most probable number, 1 to 4; of equals the smallest."""
        return 1 + self.probabilities.index(max(self.probabilities))

    @property
    def expected(self) -> float:
        """The mean, 1.0 to 4.0."""
        mean = math.fsum(hops * probability for hops, probability in zip(HOPS, self.probabilities, strict=True))
        return min(max(mean, 1.0), 4.0)


@dataclass(frozen=True)
class Head:
    """A trained classifier: what is saved.

    Attributes:
        mean, scale: Of each input, by which it is standardised.
        weights: A row a class, a number an input.
        biases: One a class.
        encoder: The name of the encoder whose vector stands behind the features; None where there is none.
        training: Where it comes from, for the reader.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    biases: tuple[float, ...]
    encoder: str | None
    training: Mapping[str, Any]

    def __post_init__(self) -> None:
        width = len(self.mean)
        if (len(self.weights), len(self.biases)) != (len(HOPS), len(HOPS)):
            raise ValueError(f"must have {len(HOPS)} classes")
        if width < len(FEATURES) or {width} != {len(row) for row in (self.scale, *self.weights)}:
            raise ValueError("must have as many means, scales and weights a class as inputs")
        numbers = (*self.mean, *self.scale, *self.biases, *(weight for row in self.weights for weight in row))
        if not all(map(math.isfinite, numbers)) or not all(scale > 0 for scale in self.scale):
            raise ValueError("must consist of finite numbers, with positive scales")


class ComplexityEstimator:
    """Estimates how many hops a question needs, from its words alone. Any thread may use it.

    Args:
        head: The trained classifier.
        encoder: Turns the question into a vector, if the head was trained with one; by default the one it names.

    Raises:
        PolyhopError: the head needs an encoder that is not installed, or is another.
    """

    def __init__(self, head: Head, encoder: Encoder | None = None) -> None:
        import numpy as np

        self.head = head
        self._encoder = _encoder(head.encoder, encoder)
        # One matrix for standardising and classifying.
        self._weights = np.asarray(head.weights) / np.asarray(head.scale)
        self._biases = np.asarray(head.biases) - self._weights @ np.asarray(head.mean)

    @classmethod
    def load(cls, path: Path | None = None) -> ComplexityEstimator:
        """An estimator from its JSON file; None is the one that ships, which is read once.

        Raises:
            PolyhopError: the file is missing or holds no estimator of this version, or its encoder is not installed.
        """
        return cls(read_head(path)) if path is not None else _shipped()

    def save(self, path: Path) -> None:
        """Write the head as JSON, of which `load` makes the same estimator."""
        write_head(self.head, path)

    def __call__(self, question: str) -> Complexity:
        import numpy as np

        scores = self._weights @ inputs([question], self._encoder)[0] + self._biases
        shares = np.exp(scores - scores.max())
        one, two, three, four = (shares / shares.sum()).tolist()
        return Complexity((one, two, three, four))

    def __deepcopy__(self, memo: dict[int, Any]) -> ComplexityEstimator:
        return self  # never changes


def estimate_complexity(question: str) -> Complexity:
    """How many hops a question probably needs, by the estimator that ships."""
    return _shipped()(question)


def inputs(questions: list[str], encoder: Encoder | None) -> NDArray[np.float64]:
    """What the classifier sees, shape (questions, inputs): the features, then the vector where there is an encoder."""
    import numpy as np

    rows = np.array([features(question) for question in questions])
    return rows if encoder is None else np.hstack([rows, np.asarray(encoder(questions), np.float64)])


@cache
def _shipped() -> ComplexityEstimator:
    return ComplexityEstimator(read_head(SHIPPED))


def _encoder(name: str | None, given: Encoder | None) -> Encoder | None:
    if name is None:
        if given is not None:
            raise PolyhopError(f"this complexity estimator was trained without an encoder, not with {given.name}")
        return None
    from ..data.dense import MiniLM

    if given is None and name == MiniLM.name:
        return MiniLM()
    if given is None or given.name != name:
        raise PolyhopError(f"this complexity estimator was trained with the encoder {name}: give it that one")
    return given


# --- the file --------------------------------------------------------------------------------------------------------


def write_head(head: Head, path: Path) -> None:
    """The head as JSON, a line a field."""
    names = list(FEATURES) + [f"dimension {n}" for n in range(len(head.mean) - len(FEATURES))]
    state = {
        "format": FORMAT,
        "encoder": head.encoder,
        "training": head.training,
        "hops": HOPS,
        "inputs": names,
        "mean": head.mean,
        "scale": head.scale,
        "weights": head.weights,
        "biases": head.biases,
    }
    lines = (f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in state.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_head(path: Path) -> Head:
    """The head from its file.

    Raises:
        PolyhopError: there is no such file, or it holds no head that fits the features of this version.
    """
    try:
        state = json.loads(path.read_bytes())
    except OSError as error:
        raise PolyhopError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise PolyhopError(f"{path} is not JSON: {error}") from error
    try:
        known = (state["format"], tuple(state["inputs"][: len(FEATURES)])) == (FORMAT, FEATURES)
        head = Head(
            tuple(map(float, state["mean"])),
            tuple(map(float, state["scale"])),
            tuple(tuple(map(float, row)) for row in state["weights"]),
            tuple(map(float, state["biases"])),
            state["encoder"],
            dict(state["training"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PolyhopError(f"{path} does not hold a complexity estimator: {error}") from error
    if not known:
        raise PolyhopError(
            f"{path} holds the complexity estimator of another version, with other features: train it again with "
            "python -m polyhop.scripts.training.complexity"
        )
    return head
