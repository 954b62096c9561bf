"""NQ-open, as ``orqa/utils/eval_utils.py`` of github.com/google-research/language has it.

The official metric is accuracy: exact match with one of the answers after SQuAD's normalisation of the *decomposed*
text (Unicode NFD). So both encodings of "é" are equal; but the last "a" of "Andréa" follows a combining accent, is
removed as an article, and "Andréa" matches "André". ``exact_match`` and ``f1``, which papers also report, are SQuAD's,
without that defect.

Questions have no ids: the file is keyed by the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize as unicode_form

from ..scoring import normalize_answer
from . import squad
from .files import means, write_lines
from .squad import Gold

__all__ = ["Gold", "Prediction", "evaluate", "normalize", "score", "write"]


class Prediction(NamedTuple):
    """A prediction; ``None`` is missing."""

    question: str
    prediction: str | None = None


def normalize(text: str) -> str:
    """SQuAD's normalisation of the decomposed text."""
    return normalize_answer(unicode_form("NFD", text))


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``accuracy``, and SQuAD's ``exact_match`` and ``f1``."""
    ours = squad.Prediction(*prediction)
    return {"accuracy": squad.score(ours, gold, normalize)["exact_match"], **squad.score(ours, gold)}


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The means over all gold questions, as fractions."""
    return means(score(prediction, gold) for prediction, gold in pairs)


def write(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write one line ``{"question": ..., "prediction": ...}`` per question; missing ones are left out."""
    write_lines(path, (prediction._asdict() for prediction in predictions if prediction.prediction is not None))
