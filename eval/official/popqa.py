"""PopQA, as ``run_model.py`` of github.com/AlexTMallen/adaptive-retrieval has it.

The metric is accuracy: the prediction contains a possible answer, as it is written, in lower case, or with a capital
and the rest in lower case. Parts of words count.
"""

from __future__ import annotations

from collections.abc import Iterable

from .files import means
from .squad import Gold, Prediction, write

__all__ = ["Gold", "Prediction", "evaluate", "score", "write"]


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``accuracy`` of one question."""
    text = prediction.answer
    forms = (form for answer in gold for form in (answer, answer.lower(), answer.capitalize()))
    return {"accuracy": float(text is not None and any(form in text for form in forms))}


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The mean over all questions, as a fraction."""
    return means(score(prediction, gold) for prediction, gold in pairs)
