"""HoVer, as its paper (arXiv 2011.03088, section 5.5) and its website define the metrics; there is no public script.

- ``accuracy`` is that of the label.
- ``sp_em`` and ``sp_f1`` compare supporting sentences as HotpotQA does.
- ``hover_score``: the label is right, and every gold page has at least one of its gold sentences among the predicted
  ones. Of a claim of k pages only the first k + 1 predicted pages count, with the first two sentences of each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ..scoring import normalize_answer
from . import hotpotqa
from .files import means
from .hotpotqa import SupportingFact

_SENTENCES = 2  # of a page
_SUPPORTED, _NOT_SUPPORTED = ("yes", "true", "supported"), ("no", "false", "not", "refuted")


class Gold(NamedTuple):
    """The gold: whether the claim is supported, and the sentences that show it."""

    supported: bool
    supporting_facts: Collection[SupportingFact]


class Prediction(NamedTuple):
    """Whether the claim is supported (``None`` is missing or unclear), and the sentences that show it, best first."""

    id: str
    supported: bool | None = None
    sp: Sequence[SupportingFact] | None = None


def verdict(answer: str) -> bool | None:
    """Whether an answer says that a claim is supported, by its first word; None if it says neither."""
    first = normalize_answer(answer).partition(" ")[0]
    return True if first in _SUPPORTED else False if first in _NOT_SUPPORTED else None


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``accuracy``, ``sp_em``, ``sp_f1`` and ``hover_score`` of one claim, as fractions."""
    right = prediction.supported is gold.supported
    facts = hotpotqa.score(
        hotpotqa.Prediction(prediction.id, sp=prediction.sp), hotpotqa.Gold("", gold.supporting_facts)
    )
    pages = {title for title, _ in gold.supporting_facts}
    shown: dict[str, list[int]] = {}
    for title, sentence in prediction.sp or ():
        shown.setdefault(title, []).append(sentence)
    counted = {
        (title, sentence)
        for title, sentences in list(shown.items())[: len(pages) + 1]
        for sentence in sentences[:_SENTENCES]
    }
    complete = pages == {title for title, _ in counted & set(gold.supporting_facts)}
    return {
        "accuracy": float(right),
        "sp_em": facts["sp_em"],
        "sp_f1": facts["sp_f1"],
        "hover_score": float(right and complete),
    }


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The means over all claims, as fractions."""
    return means(score(prediction, gold) for prediction, gold in pairs)
