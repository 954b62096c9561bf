"""The gold of a question, read from its example: the only module that knows the fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Fact, Passage
from ..programs.prediction import UNKNOWN

if TYPE_CHECKING:
    from ..data.benchmarks import GoldFact

ABSTENTIONS = (UNKNOWN, "Insufficient information.")
"""The right answers to a question that the passages do not answer; MultiHop-RAG writes the second."""

LookUp = Callable[[str], Iterable[Passage]]
"""Finds the passages of a title, perhaps among others: ``BM25Index.titled``."""


class Gold(NamedTuple):
    """What is right."""

    answers: tuple[str, ...]  # the accepted answers
    passages: tuple[str, ...]  # ids of the passages that prove them
    facts: tuple[Fact, ...]  # sentences that prove them
    texts: tuple[str, ...] | None = None  # the texts of the gold passages; None where some of them are unknown


class ProgramOutput(NamedTuple):
    """The parts of a prediction that are scored."""

    answer: str
    evidence: tuple[Evidence, ...] = ()
    ranking: tuple[Passage, ...] = ()

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> ProgramOutput:
        evidence, ranking = prediction.get("evidence") or (), prediction.get("ranking") or ()
        return cls(prediction.answer, tuple(evidence), tuple(ranking))

    @property
    def passages(self) -> list[Passage]:
        """Every passage in the output."""
        return [*self.ranking, *(item.passage for item in self.evidence)]


def gold_of(example: dspy.Example, seen: Iterable[Passage] = ()) -> Gold:
    """Read ``answers`` (or ``answer``), and ``gold`` as the loaders have it, or ``gold_passages`` and ``gold_facts``.

    Benchmarks name passages by title, quotation or position, while passages have ids. A gold passage gets the id of the
    first passage that matches it: of the question's pool, then of ``seen``. Without a match it keeps the id that its
    text would have, or else its title, which is never the id of a passage.

    Args:
        seen: Candidates for gold passages without ids: the program's output, or better, independent of the program, all
            passages with their titles.
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


def gold_with_texts(example: dspy.Example, output: ProgramOutput, look_up: LookUp | None = None) -> Gold:
    """`gold_of` with the texts of the gold passages, from the question's pool or else from ``look_up``.

    Texts never come from the output: a metric would then skip exactly those questions where the program found little.
    """
    known = _known(example, look_up)
    gold = gold_of(example, [*known, *output.passages])
    texts = {passage.id: passage.text for passage in known}
    if not all(id in texts for id in gold.passages):
        return gold
    return gold._replace(texts=tuple(texts[id] for id in gold.passages))


def gold_evidence(example: dspy.Example, look_up: LookUp | None = None) -> list[Evidence]:
    """The gold evidence, from the question's pool or else from ``look_up``: sentences, or passages without known ones.

    Raises:
        PolyhopError: the question has no gold passages, or one of them is not at hand.
    """
    known = {passage.id: passage for passage in _known(example, look_up)}
    gold = gold_of(example, known.values())
    if not gold.passages or not all(id in known for id in gold.passages):
        raise PolyhopError(
            "the question has no gold passages, or its pool and the index lack one of them: the oracle needs a "
            "benchmark with gold passages, and their corpus"
        )
    found: list[Evidence] = []
    for id in gold.passages:
        sentences = [fact.sentence for fact in gold.facts if fact.passage_id == id]
        found += [Evidence(known[id], sentence) for sentence in sentences or (None,)]
    return found


def _known(example: dspy.Example, look_up: LookUp | None) -> list[Passage]:
    """The passages among which the gold ones are: the question's pool, or else those with their titles."""
    known = list(example.get("pool") or ())
    if look_up is not None and not known:
        titles = dict.fromkeys(fact.title for fact in example.get("gold") or ())
        known = [passage for title in titles for passage in look_up(title)]
    return known


def _id(fact: GoldFact, known: Iterable[Passage]) -> str:
    found = next((passage.id for passage in known if fact.matches(passage)), None)
    return found or fact.passage_id or f"title:{fact.title}"
