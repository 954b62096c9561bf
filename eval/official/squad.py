"""SQuAD, as ``evaluate-v1.1.py`` has it: the best exact match and the best token F1 over the gold answers.

There is no rule for "yes" and "no". The script prints percentages; a missing prediction scores 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from ..scoring import normalize_answer, token_scores
from .files import means, write_object

Gold = Collection[str]
"""The accepted answers."""


class Prediction(NamedTuple):
    """A prediction; ``None`` is missing."""

    id: str
    answer: str | None = None


def score(prediction: Prediction, gold: Gold, normalize: Callable[[str], str] = normalize_answer) -> dict[str, float]:
    """``exact_match`` and ``f1``, as fractions."""
    if prediction.answer is None:
        return {"exact_match": 0.0, "f1": 0.0}
    answer, golds = normalize(prediction.answer), [normalize(text) for text in gold]
    return {
        "exact_match": float(answer in golds),
        "f1": max((token_scores(answer, text).f1 for text in golds), default=0.0),
    }


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The means over all gold questions in percent."""
    total = means(score(prediction, gold) for prediction, gold in pairs)
    return {name: 100 * value for name, value in total.items()}


def write(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write ``{id: answer}``; missing ones are left out."""
    write_object(path, {id: answer for id, answer in predictions if answer is not None})
