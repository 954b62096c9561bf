"""KAIR's state and the rules that read it: queries, similarity, facts, and the gaps that belong together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data.form import names
from ..data.passages import Evidence, Fact, Passage
from ..data.references import references
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

    def supports(self, item: Evidence, threshold: float, rarity: Rarity) -> bool:
        """Rule (4): whether a known fact cites a sentence or says the same."""
        return self.cites(item) or relevance(item, texts(self.known), rarity) > threshold

    def asks_for(self, item: Evidence, threshold: float, rarity: Rarity) -> bool:
        """Whether a sentence bears on an open gap."""
        return relevance(item, self.required, rarity) > threshold


def joined(board: KairState, dealt: Sequence[KairState], agents: Sequence[KairState]) -> KairState:
    """The shared state after all agents: every fact that none dropped, every remaining gap, every query.

    Only the agent that a gap was dealt to can close it.
    """
    dropped = {fact for agent in agents for fact in board.known if fact not in agent.known}
    others = [frozenset(board.required) - frozenset(share.required) for share in dealt]
    gaps = (gap for agent, not_its in zip(agents, others, strict=True) for gap in agent.required if gap not in not_its)
    return replace(
        board,
        known=tuple(distinct(fact for agent in agents for fact in agent.known if fact not in dropped)),
        required=tuple(dict.fromkeys(gaps)),
        queries=tuple(dict.fromkeys(query for agent in agents for query in agent.queries)),
    )


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


# --- gaps that depend on each other -----------------------------------------------------------------------------------


def dependent(gaps: Sequence[str]) -> list[tuple[str, ...]]:
    """The gaps in groups; those of one group depend on each other.

    A gap depends on an earlier one if it refers to its answer ("#1"), shares a name with it, or has no name of its own
    ("Where was he born?": the gap before it).
    """
    group = list(range(len(gaps)))
    named = [frozenset(map(title_key, names(gap))) for gap in gaps]
    for n in range(1, len(gaps)):
        referred = [number - 1 for number in references(gaps[n])]
        needed = [m for m in range(n) if named[m] & named[n]]
        if referred:
            needed += [m if m < n else n - 1 for m in referred]
        elif not named[n]:
            needed.append(n - 1)
        for m in needed:
            old, new = group[n], group[m]
            group = [new if each == old else each for each in group]
    return [tuple(gap for gap, its in zip(gaps, group, strict=True) if its == each) for each in dict.fromkeys(group)]


# --- similarity -------------------------------------------------------------------------------------------------------


class Rarity:
    """The inverse document frequency ln(1 + N / n) of topic words in the passages seen so far."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        holders = [frozenset(content_terms(f"{each.title}\n{each.text}")) for each in passages]
        self._size = len(holders)
        self._counts = Counter(term for terms in holders for term in terms)

    def weight(self, terms: Iterable[str]) -> float:
        """The summed weight of some words; an unseen one weighs as much as one in a single passage."""
        return math.fsum(math.log1p(max(self._size, 1) / max(self._counts[term], 1)) for term in terms)


def relevance(item: Evidence, others: Iterable[str], rarity: Rarity) -> float:
    """Rel(d', k): the similarity of a sentence to the most similar of some facts or gaps, in [0, 1]; 0 without any.

    The words count by their rarity. The title of the passage tells which entity the sentence is about: where a fact
    names it, the sentence itself must say the rest of the fact. Where neither names anything that the fact names, the
    sentence is about something else.
    """
    own, title = frozenset(content_terms(item.text)), frozenset(content_terms(item.passage.title))
    return max((_relevance(own, title, other, rarity) for other in others), default=0.0)


def _relevance(own: frozenset[str], title: frozenset[str], other: str, rarity: Rarity) -> float:
    wanted, named = frozenset(content_terms(other)), frozenset(content_terms(" ".join(names(other))))
    if named and not named & (own | title):
        return 0.0
    if wanted & title and wanted - title:
        own, wanted = own - title, wanted - title
        size = min(rarity.weight(own), rarity.weight(wanted))  # a fact is much shorter than its sentence
    else:
        size = rarity.weight(wanted)
    return rarity.weight(own & wanted) / size if size else 0.0


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
