"""MuSiQue, as ``evaluate_v1.0.py`` of github.com/StonyBrookNLP/musique has it.

- EM and F1 are each the best over the answer and its aliases. There is no rule for "yes" and "no".
- Two answers without a word in them agree (F1 1), where HotpotQA and SQuAD say 0.
- Support is a set of paragraph numbers (``idx``), scored like HotpotQA's supporting facts, but nothing
  predicted where nothing is gold has F1 1.
- In MuSiQue-Full every id occurs twice, once answerable and once not. Answer and support are scored on the answerable
  ones; the ``group_`` metrics give an answerable question its F1 only if both versions are classified correctly.
- The file must have a line for every question, in gold order: there are no missing predictions, only empty ones.
- The script rounds to three decimals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..scoring import exact_match, normalize_answer, scores, token_scores
from . import means, write_lines


class Gold(NamedTuple):
    """The answer with its aliases, and the ``idx`` of the supporting paragraphs."""

    answers: Collection[str]
    support_idxs: Collection[int]
    answerable: bool = True


class Prediction(NamedTuple):
    """A prediction, under the names of the file."""

    id: str
    predicted_answer: str = ""
    predicted_support_idxs: Sequence[int] = ()
    predicted_answerable: bool = True


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``answer_em``, ``answer_f1``, ``support_em`` and ``support_f1`` of an answerable question."""
    answer = prediction.predicted_answer
    found, wanted = set(prediction.predicted_support_idxs), set(gold.support_idxs)
    return {
        "answer_em": exact_match(answer, gold.answers),
        "answer_f1": max((_f1(normalize_answer(answer), normalize_answer(text)) for text in gold.answers), default=0.0),
        "support_em": float(found == wanted),
        "support_f1": scores(len(found & wanted), len(found), len(wanted)).f1 if found or wanted else 1.0,
    }


def _f1(answer: str, gold: str) -> float:
    return token_scores(answer, gold).f1 if answer and gold else float(answer == gold)


@dataclass
class _Pair:
    """A question of MuSiQue-Full: whether its versions are classified correctly, and its scores."""

    seen: int = 0
    sufficient: bool = True
    answer_f1: float = 0.0
    support_f1: float = 0.0


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """``answer_f1``, ``answer_em``, ``support_f1``; with unanswerable questions also the two ``group_`` metrics.

    Raises:
        ValueError: there are no answerable questions, or there are unanswerable ones and an id does not occur twice.
    """
    groups: dict[str, _Pair] = {}
    answerable, full = [], False
    for prediction, gold in pairs:
        group = groups.setdefault(prediction.id, _Pair())
        group.seen += 1
        group.sufficient &= prediction.predicted_answerable == gold.answerable
        if gold.answerable:
            values = score(prediction, gold)
            group.answer_f1, group.support_f1 = values["answer_f1"], values["support_f1"]
            answerable.append(values)
        else:
            full = True
    total = means(answerable)
    result = {name: total[name] for name in ("answer_f1", "answer_em", "support_f1")}
    if full:
        odd = next((id for id, group in groups.items() if group.seen != 2), None)
        if odd is not None:
            raise ValueError(f"with unanswerable questions every id must occur twice; {odd!r} does not")
        result |= means(
            {
                "group_answer_sufficiency_f1": group.answer_f1 * group.sufficient,
                "group_support_sufficiency_f1": group.support_f1 * group.sufficient,
            }
            for group in groups.values()
        )
    return {name: round(value, 3) for name, value in result.items()}


def write(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write one line per gold question, in the order of the gold file, which the script compares line by line."""
    write_lines(path, (prediction._asdict() for prediction in predictions))
