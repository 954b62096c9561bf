"""SQuAD, as ``evaluate-v1.1.py`` has it: the best exact match and the best token F1 over the gold answers; and three
benchmarks of its shape. There is no rule for "yes" and "no"."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize as unicode_form

from ..scoring import normalize_answer, token_scores
from . import write_lines, write_object

Gold = Collection[str]
"""The accepted answers."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_TO_SPACE = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


class Prediction(NamedTuple):
    """A prediction; ``None`` is missing. The ids of NQ-open are the questions."""

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


def score_triviaqa(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """TriviaQA, as ``triviaqa_evaluation.py`` of github.com/mandarjoshi90/triviaqa has it.

    SQuAD's metrics under another normalization: punctuation, underscores and the marks ‘ ’ ´ ` become spaces instead of
    being removed: "twenty-one" is two words and "O’Neill" matches "O Neill". The gold answers are the aliases of the
    dataset and its human answers.
    """
    return score(prediction, gold, lambda text: " ".join(_ARTICLES.sub(" ", text.lower().translate(_TO_SPACE)).split()))


def score_nq_open(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """NQ-open, as ``orqa/utils/eval_utils.py`` of github.com/google-research/language has it.

    The official metric is ``accuracy``: exact match with one of the answers after SQuAD's normalization of the
    *decomposed* text (Unicode NFD). So both encodings of "é" are equal; but the last "a" of "Andréa" follows a
    combining accent, is removed as an article, and "Andréa" matches "André". ``exact_match`` and ``f1``, which papers
    also report, are SQuAD's, without that defect.
    """
    decomposed = score(prediction, gold, lambda text: normalize_answer(unicode_form("NFD", text)))
    return {"accuracy": decomposed["exact_match"], **score(prediction, gold)}


def score_popqa(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """PopQA, as ``run_model.py`` of github.com/AlexTMallen/adaptive-retrieval has it.

    ``accuracy``: the prediction contains a possible answer, as it is written, in lower case, or with a capital and the
    rest in lower case. Parts of words count.
    """
    text = prediction.answer
    forms = (form for answer in gold for form in (answer, answer.lower(), answer.capitalize()))
    return {"accuracy": float(text is not None and any(form in text for form in forms))}


def write(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write ``{id: answer}``; missing ones are left out."""
    write_object(path, {id: answer for id, answer in predictions if answer is not None})


def write_nq_open(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write one line ``{"question": ..., "prediction": ...}`` per question; missing ones are left out."""
    write_lines(path, ({"question": id, "prediction": answer} for id, answer in predictions if answer is not None))
