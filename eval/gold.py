"""What is right about a question, read from its example: the one place that knows the fields."""

from __future__ import annotations

from typing import NamedTuple

import dspy

from ..data.passages import Fact


class Gold(NamedTuple):
    """The answers that count as right, and the passages and sentences that prove them."""

    answers: tuple[str, ...]
    passages: tuple[str, ...]
    facts: tuple[Fact, ...]


def gold_of(example: dspy.Example) -> Gold:
    """Read ``answers``, ``gold_passages`` (ids) and ``gold_facts``; the latter two may be absent."""
    facts = tuple(Fact(*fact) for fact in example.get("gold_facts") or ())
    passages = example.get("gold_passages") or [fact.passage_id for fact in facts]
    return Gold(tuple(example.answers), tuple(dict.fromkeys(passages)), facts)
