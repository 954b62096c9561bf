"""KAIR's state, the similarity of queries, and how facts are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.passages import Evidence, Fact
from ..data.text import content_terms, title_key
from .candidates import Candidates, split_citations


@dataclass(frozen=True)
class KnownFact:
    """A verified fact and the sentences that it cites."""

    text: str
    support: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class KairState:
    """The knowledge of one agent; immutable."""

    question: str  # the user's question
    focus: str  # what this agent pays attention to
    known: tuple[KnownFact, ...] = ()  # the paper's K
    required: tuple[str, ...] = ()  # R, the open gaps
    queries: tuple[str, ...] = ()  # Q, oldest first
    context: tuple[Evidence, ...] = ()  # D, sentences, most useful first
    number: int = 0  # of several agents with one focus, which one this is

    @property
    def inputs(self) -> dict[str, Any]:
        """The input fields that several agents share."""
        return {"question": self.question, "known": list(texts(self.known)), "required": list(self.required)}

    def score(self, query: str, alpha: float) -> float:
        """Rule (2): alpha * Div(q' | Q) + (1 - alpha) * Rel(q' | R)."""
        return alpha * (1 - nearest(query, self.queries)) + (1 - alpha) * nearest(query, self.required)

    def cites(self, item: Evidence) -> bool:
        """Whether a known fact cites a sentence or its whole passage."""
        cited = {evidence.fact for fact in self.known for evidence in fact.support}
        return item.fact in cited or Fact(item.passage.id) in cited


def distinct(facts: Iterable[KnownFact], known: Iterable[KnownFact] = ()) -> list[KnownFact]:
    """The facts that are new, each once."""
    keys = {title_key(fact.text) for fact in known}
    found: list[KnownFact] = []
    for fact in facts:
        if title_key(fact.text) not in keys:
            keys.add(title_key(fact.text))
            found.append(fact)
    return found


def texts(facts: Iterable[KnownFact]) -> tuple[str, ...]:
    return tuple(fact.text for fact in facts)


def nearest(query: str, others: Iterable[str]) -> float:
    """The cosine of topic words with the most similar of some texts, in [0, 1]; 0 if there are none."""
    return max((_cosine(query, other) for other in others), default=0.0)


def _cosine(one: str, other: str) -> float:
    """The cosine; texts without topic words are equal or not."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    if not left or not right:
        return float(title_key(one) == title_key(other))
    return len(left & right) / math.sqrt(len(left) * len(right))


# --- replies ----------------------------------------------------------------------------------------------------------


def read_facts(replied: Iterable[str], documents: Candidates) -> tuple[list[KnownFact], tuple[str, ...]]:
    """Facts with the sentences that they cite ("... (2s1)"), and the invalid citations."""
    facts, invalid = [], list[str]()
    for text in replied:
        fact, ids = split_citations(" ".join(text.split()))
        support, wrong = documents.resolve(ids)
        invalid += wrong
        facts.append(KnownFact(fact, tuple(support)))
    return [fact for fact in facts if fact.text], tuple(invalid)


def read_known(replied: Iterable[str], known: Sequence[KnownFact]) -> tuple[list[KnownFact], tuple[str, ...]]:
    """The known facts that a reply repeats, and the entries that are none."""
    by_key = {title_key(fact.text): fact for fact in known}
    found, invalid = dict[str, KnownFact](), []
    for entry in replied:
        key = title_key(split_citations(entry)[0])
        if key in by_key:
            found[key] = by_key[key]
        else:
            invalid.append(entry[:80])
    return list(found.values()), tuple(invalid)


def read_numbers(reply: Iterable[int], most: int) -> tuple[set[int], tuple[str, ...]]:
    """The numbers in 1..``most`` of a reply, and the others."""
    numbers = set(map(int, reply))
    found = numbers & set(range(1, most + 1))
    return found, tuple(map(str, sorted(numbers - found)))
