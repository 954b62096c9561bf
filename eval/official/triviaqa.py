"""TriviaQA, as ``triviaqa_evaluation.py`` of github.com/mandarjoshi90/triviaqa has it.

SQuAD's metrics under another normalisation: punctuation, underscores and the marks ‘ ’ ´ ` become spaces instead of
being removed: "twenty-one" is two words and "O’Neill" matches "O Neill". The gold answers are the aliases of the
dataset and its human answers. The script prints percentages; prediction files are SQuAD's.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from . import squad
from .files import means
from .squad import Gold, Prediction, write

__all__ = ["Gold", "Prediction", "evaluate", "normalize", "score", "write"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_TO_SPACE = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


def normalize(text: str) -> str:
    """Lower-case, punctuation to spaces, without English articles, white space folded."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_TO_SPACE)).split())


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``exact_match`` and ``f1``, as fractions."""
    return squad.score(prediction, gold, normalize)


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The means over all gold questions in percent."""
    total = means(score(prediction, gold) for prediction, gold in pairs)
    return {name: 100 * value for name, value in total.items()}
