"""What is right about a question, read from its example: the one place that knows the fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import dspy

from ..data.passages import Fact, Passage
from ..programs.prediction import UNKNOWN

if TYPE_CHECKING:
    from ..data.benchmarks import GoldFact

ABSTENTIONS = (UNKNOWN, "Insufficient information.")
"""The right answers to a question that the passages do not answer; the second is how MultiHop-RAG writes it."""


class Gold(NamedTuple):
    """The answers that count as right, and the passages and sentences that prove them."""

    answers: tuple[str, ...]
    passages: tuple[str, ...]
    facts: tuple[Fact, ...]


def gold_of(example: dspy.Example, seen: Iterable[Passage] = ()) -> Gold:
    """Read ``answers`` (or ``answer``), and ``gold`` as the loaders have it, or ``gold_passages`` and ``gold_facts``.

    Benchmarks address passages by title, by quoting them or by place, passages have ids. So each gold passage gets the
    id of the first passage that it matches: of the question's pool, then of those ``seen``. One that matches none is
    known by the id that its text would have, else by its title, which no passage has as its id.

    Args:
        seen: What a program came up with, or better all passages that may be meant: then nothing depends on the
            program. Only needed where the gold passages have no ids yet.
    """
    answers = ABSTENTIONS if example.get("answerable") is False else tuple(example.get("answers") or (example.answer,))
    given = example.get("gold")
    if given is None:
        facts = tuple(Fact(*fact) for fact in example.get("gold_facts") or ())
        passages = example.get("gold_passages") or [fact.passage_id for fact in facts]
        return Gold(answers, tuple(dict.fromkeys(passages)), facts)
    known = [*(example.get("pool") or ()), *seen]
    ids = {passage: _id(passage, known) for passage in dict.fromkeys(fact.passage for fact in given)}
    facts = tuple(Fact(ids[fact.passage], fact.sentence) for fact in given if fact.sentence is not None)
    return Gold(answers, tuple(dict.fromkeys(ids.values())), facts)


def passages_of(prediction: dspy.Prediction) -> list[Passage]:
    """Every passage that a prediction speaks of."""
    return [*(prediction.get("ranking") or ()), *(item.passage for item in prediction.get("evidence") or ())]


def _id(fact: GoldFact, known: Iterable[Passage]) -> str:
    found = next((passage.id for passage in known if fact.matches(passage)), None)
    return found or fact.passage_id or f"title:{fact.title}"
