"""KAIR's state and its rules (arXiv 2503.13275): what is known, required, asked and kept, and how it is compared.

The paper leaves its similarities open. Here they compare sets of topic words, cheaply and deterministically. Queries
and gaps are of a size and compare by the cosine. A fact is much shorter than a sentence that states it, and their
cosine is low however well they agree; these compare by the share of the shorter one's words that the other has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data.passages import Evidence, Fact
from ..data.text import content_terms, title_key


@dataclass(frozen=True)
class Known:
    """A verified fact and the sentences that it cites."""

    text: str
    support: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Knowledge:
    """What one agent goes by; a step makes a new one.

    Attributes:
        question: The user's.
        focus: What this agent pays attention to.
        known: The paper's K.
        required: R, the open gaps.
        queries: Q, in the order they were asked.
        context: D, the refined context: sentences as they stand in their passages, most useful first.
    """

    question: str
    focus: str
    known: tuple[Known, ...] = ()
    required: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    context: tuple[Evidence, ...] = ()

    @property
    def inputs(self) -> dict[str, Any]:
        """The fields that the agents share."""
        return {
            "question": self.question,
            "known": [fact.text for fact in self.known],
            "required": list(self.required),
        }

    def worth(self, query: str, alpha: float) -> float:
        """Rule (2): alpha * Div(q' | Q) + (1 - alpha) * Rel(q' | R)."""
        return alpha * (1 - nearest(query, self.queries)) + (1 - alpha) * nearest(query, self.required)

    def supports(self, item: Evidence, threshold: float) -> bool:
        """Rule (4): whether a known fact supports a sentence: it cites it, or is close to it."""
        cited = {evidence.fact for fact in self.known for evidence in fact.support}
        if item.fact in cited or Fact(item.passage.id) in cited:
            return True
        return relevance(_read(item), [fact.text for fact in self.known]) > threshold

    def asks_for(self, item: Evidence, threshold: float) -> bool:
        """Whether a sentence bears on an open gap."""
        return relevance(_read(item), self.required) > threshold


def nearest(query: str, others: Iterable[str]) -> float:
    """The cosine with the most similar of some texts, from 0 (also if there are none) to 1."""
    return max((_agreement(query, other, lambda m, n: math.sqrt(m * n)) for other in others), default=0.0)


def relevance(segment: str, others: Iterable[str]) -> float:
    """Rel(d', k): the overlap with the most similar of some facts or gaps, from 0 (also if there are none) to 1."""
    return max((_agreement(segment, other, min) for other in others), default=0.0)


def _agreement(one: str, other: str, size: Callable[[int, int], float]) -> float:
    """The topic words that two texts share, relative to a common size; texts without any are alike or not."""
    left, right = frozenset(content_terms(one)), frozenset(content_terms(other))
    if not left or not right:
        return float(title_key(one) == title_key(other))
    return len(left & right) / size(len(left), len(right))


def _read(item: Evidence) -> str:
    """A sentence with the title of its passage, which often names what "he" or "it" stands for."""
    return f"{item.passage.title} {item.text}"


def distinct(facts: Iterable[Known], had: Iterable[Known] = ()) -> list[Known]:
    """The facts that say something else than those before them and than those one had."""
    keys = {title_key(fact.text) for fact in had}
    found: list[Known] = []
    for fact in facts:
        if title_key(fact.text) not in keys:
            keys.add(title_key(fact.text))
            found.append(fact)
    return found


def joined(board: Knowledge, dealt: Sequence[Knowledge], agents: Sequence[Knowledge]) -> Knowledge:
    """The blackboard after all agents wrote on it: every fact, every gap that is left, every query.

    A gap that was dealt to another agent is that agent's to close, whatever this one says of it.
    """
    others = [frozenset(board.required) - frozenset(share.required) for share in dealt]
    gaps = (gap for agent, not_its in zip(agents, others, strict=True) for gap in agent.required if gap not in not_its)
    return replace(
        board,
        known=tuple(distinct(fact for agent in agents for fact in agent.known)),
        required=tuple(dict.fromkeys(gaps)),
        queries=tuple(dict.fromkeys(query for agent in agents for query in agent.queries)),
    )
