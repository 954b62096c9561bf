"""What each sign of a chain is worth: the parameters of `ChainRetriever`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _weight(value: float, low: float, high: float) -> Any:
    return field(default=value, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class ChainWeights:
    """The weights of a passage's gain, all 0 or more. The unit is a question whose every word is explained at once.

    Attributes:
        bm25: Of the BM25 score, as a share of the best passage's.
        coverage: Of the question's words in the passage that no chosen passage explains.
        sentence: Of those of them that stand in one sentence.
        explained: How far a chosen passage explains the words it has: 1 for entirely.
        named: Of a title that stands in the question.
        taken: What is left of that once a passage with an overlapping title was chosen.
        link: Of a chosen passage's mention of the title.
        back: Of a mention of a chosen passage's title.
        shared: Of a name that both a chosen passage and this one mention; the chosen passage's own is one of them.
        in_title: Factor for a shared name that stands in the title.
        cue: How much more a tie counts, for each share of the question that stands in the sentence of the mention.
        fit: How much more a tie counts, for each share of the question that only this passage explains.
        rarity: How rare a name is that counts half, where 1 is a word that a single passage has: "John" says less than
            "Zavrazhye".
        ambiguity: The power of the number of candidates that a name fits by which it loses weight.
        similarity: Of the cosine between question and passage, where the retriever has vectors.
        enough: The least gain at which the chain goes on, where its length is left to the retriever.
    """

    bm25: float = _weight(0.065, 0.0, 2.0)
    coverage: float = _weight(0.73, 0.0, 3.0)
    sentence: float = _weight(0.9, 0.0, 3.0)
    explained: float = _weight(0.56, 0.0, 1.0)
    named: float = _weight(0.9, 0.0, 3.0)
    taken: float = _weight(0.33, 0.0, 1.0)
    link: float = _weight(0.72, 0.0, 3.0)
    back: float = _weight(0.56, 0.0, 3.0)
    shared: float = _weight(0.55, 0.0, 3.0)
    in_title: float = _weight(1.54, 1.0, 5.0)
    cue: float = _weight(1.98, 0.0, 5.0)
    fit: float = _weight(0.62, 0.0, 3.0)
    rarity: float = _weight(0.6, 0.0, 3.0)
    ambiguity: float = _weight(0.28, 0.0, 2.0)
    similarity: float = _weight(0.35, 0.0, 3.0)
    enough: float = _weight(0.96, 0.0, 3.0)

    def __post_init__(self) -> None:
        for weight in fields(self):
            value, low, high = getattr(self, weight.name), weight.metadata["low"], weight.metadata["high"]
            if not low <= value <= high:  # also refuses nan
                raise ValueError(f"{weight.name} must be in {low}..{high}, got {value}")
