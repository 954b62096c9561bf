"""The weights of the chain retriever's features."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _weight(value: float, low: float, high: float) -> Any:
    return field(default=value, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class ChainWeights:
    """The weights in a passage's gain. A gain of 1 is a question whose every word is explained at once.

    Attributes:
        bm25: BM25 score divided by the best passage's.
        unnamed: What BM25 weighs more if the question has no title, less for a title that is less sure: for the first
            passage, and for further ones as far as the passages have few names.
        coverage: The question's words in the passage that no chosen passage explains.
        sentence: Those of them in the best single sentence.
        explained: Share of a word's weight that a chosen passage with it takes away; 1 takes all.
        opening: Those of them in the title and the first sentence.
        pairs: Pairs of neighbours among the question's words that are neighbours in the passage and in no chosen one.
        title: Those of them in the title.
        surplus: Loss by the rarity of the title's words that the question does not have.
        length: Loss by the logarithm of the passage's number of words.
        listing: Loss by the share of the passage's words that are links, as in a table of contents.
        spread: Loss of a passage whose document has a better one in the ranking: "one hit a page" if it is large.
        named: A title that the question contains.
        inner: Factor for such a title inside a longer one that the question contains.
        taken: Factor for such a title once a passage with an overlapping title was chosen.
        later: Factor for a title in the question or in a chosen passage, if this one does not open its document.
        link: A chosen passage mentions the title.
        back: The passage mentions a chosen passage's title.
        shared: A chosen passage and this one mention the same name.
        hyperlink: A chosen passage links to this one or its document.
        linked: The passage links to a chosen one or its document.
        second: The strongest edge of another relation than the strongest one.
        others: The strongest edges to the other chosen passages, together.
        in_title: Factor for a shared name in the title.
        cue: Increase of an edge by the weight of the question's words in the sentence of the mention.
        origin: Increase of an edge by a shared name by the weight of the question's words in the sentence in which the
            chosen passage has it first.
        fit: Increase of an edge by the weight of the question's words that only this passage explains.
        rarity: Rarity at which a name counts half; 1 is a word of a single passage. "John" is less specific than
            "Zavrazhye".
        ambiguity: Exponent by which a name loses weight with the number of passages that have it, of those
            that are compared at once.
        similarity: Cosine of question and passage, if the retriever has vectors.
        enough: Least gain to continue an adaptive chain.
    """

    bm25: float = _weight(0.065, 0.0, 2.0)
    unnamed: float = _weight(0.9, 0.0, 5.0)
    coverage: float = _weight(0.73, 0.0, 3.0)
    sentence: float = _weight(0.9, 0.0, 3.0)
    explained: float = _weight(0.56, 0.0, 1.0)
    opening: float = _weight(0.6, 0.0, 3.0)
    pairs: float = _weight(1.2, 0.0, 3.0)
    title: float = _weight(0.75, 0.0, 3.0)
    surplus: float = _weight(0.07, 0.0, 1.0)
    length: float = _weight(0.1, 0.0, 1.0)
    listing: float = _weight(2.0, 0.0, 9.0)
    spread: float = _weight(1.0, 0.0, 9.0)
    inner: float = _weight(0.35, 0.0, 1.0)
    named: float = _weight(0.9, 0.0, 3.0)
    taken: float = _weight(0.33, 0.0, 1.0)
    later: float = _weight(0.65, 0.0, 1.0)
    link: float = _weight(0.72, 0.0, 3.0)
    back: float = _weight(0.62, 0.0, 3.0)
    shared: float = _weight(0.6, 0.0, 3.0)
    hyperlink: float = _weight(1.2, 0.0, 3.0)
    linked: float = _weight(0.7, 0.0, 3.0)
    second: float = _weight(0.45, 0.0, 3.0)
    others: float = _weight(0.3, 0.0, 3.0)
    in_title: float = _weight(1.54, 1.0, 5.0)
    cue: float = _weight(1.98, 0.0, 5.0)
    origin: float = _weight(1.0, 0.0, 5.0)
    fit: float = _weight(0.62, 0.0, 3.0)
    rarity: float = _weight(0.6, 0.0, 3.0)
    ambiguity: float = _weight(0.28, 0.0, 2.0)
    similarity: float = _weight(0.35, 0.0, 3.0)
    enough: float = _weight(1.38, 0.0, 3.0)

    def __post_init__(self) -> None:
        for weight in fields(self):
            value, low, high = getattr(self, weight.name), weight.metadata["low"], weight.metadata["high"]
            if not low <= value <= high:  # also refuses nan
                raise ValueError(f"{weight.name} must be in {low}..{high}, got {value}")
