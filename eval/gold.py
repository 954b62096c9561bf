"""The gold of a question, read from its example."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Fact, Passage, Place
from ..programs.prediction import UNKNOWN
from ..programs.program import items_of
from ..programs.trace import Searched, Trace
from .scoring import fact_in, mentions

if TYPE_CHECKING:
    from ..data.benchmarks import GoldFact

ABSTENTIONS = (UNKNOWN, "Insufficient information.")
"""The right answers to a question that the passages do not answer; MultiHop-RAG writes the second."""

LookUp = Callable[[str], Iterable[Passage]]
"""Finds the passages of a title, perhaps among others, or of what users call a document: ``BM25Index.named``."""


class PredictionError(TypeError):
    """A program returned something that is not a prediction."""


class Gold(NamedTuple):
    """What is right."""

    answers: tuple[str, ...]  # the accepted answers
    passages: tuple[str, ...]  # ids of the passages that prove them; of a document, any passage of it counts
    facts: tuple[Fact, ...]  # sentences that prove them
    texts: tuple[str, ...] | None = None  # the texts of the gold passages; None where some of them are unknown


class ProgramOutput(NamedTuple):
    """The parts of a prediction that are scored."""

    answer: str
    evidence: tuple[Evidence, ...] = ()
    ranking: tuple[Passage, ...] = ()
    searches: tuple[tuple[str, ...], ...] = ()  # the ids of the passages that each search found, best first
    returned: frozenset[str] = frozenset({"answer", "evidence", "ranking"})  # by the program; only that is scored
    prediction: dspy.Prediction | None = None

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> ProgramOutput:
        """Raises: PredictionError: the answer is not a text, a number or a truth value."""
        evidence, ranking = items_of(prediction, "evidence", Evidence), items_of(prediction, "ranking", Passage)
        answer, trace = prediction.get("answer"), prediction.get("trace")
        if not isinstance(answer, str | int | float | None):
            raise PredictionError(f"the program must return an answer that is a string, got {answer!r}")
        steps = trace.flat() if isinstance(trace, Trace) else ()
        first = (step for step in steps if isinstance(step, Searched) and not step.offset)
        searches = tuple(tuple(id for id, *_ in step.found) for step in first)
        parts = {"answer": answer, "evidence": evidence, "ranking": ranking}
        returned = frozenset(name for name, value in parts.items() if value is not None)
        text = "" if answer is None else str(answer)
        return cls(text, evidence or (), ranking or (), searches, returned, prediction)

    @property
    def passages(self) -> list[Passage]:
        """Every passage in the output."""
        return [*self.ranking, *(item.passage for item in self.evidence)]


def gold_of(example: dspy.Example, seen: Iterable[Passage] = ()) -> Gold:
    """Read ``answers`` (or ``answer``), and ``gold`` (see `gold_facts`), or ``gold_passages`` and ``gold_facts``.

    Benchmarks name passages by title, quotation or position, while passages have ids. A gold passage gets the id of the
    first passage that matches it, or of its document: of the question's pool, then of ``seen``. Without a match it
    keeps the id that its text would have, or else its title, which is never the id of a passage.

    Args:
        seen: Candidates for gold passages without ids: the program's output, or better, independent of the program, all
            passages with their titles.
    """
    answers = ABSTENTIONS if example.get("answerable") is False else tuple(_answers(example))
    if example.get("gold") is None:
        facts = tuple(Fact(*fact) for fact in example.get("gold_facts") or ())
        passages = example.get("gold_passages") or [fact.passage_id for fact in facts]
        return Gold(answers, tuple(dict.fromkeys(passages)), facts)
    gold, candidates = gold_facts(example), [*(example.get("pool") or ()), *seen]
    ids: dict[GoldFact, str] = {}
    for wanted in dict.fromkeys(fact.passage for fact in gold):
        matches = (id for passage in candidates if (id := wanted.counts_as(passage)) is not None)
        ids[wanted] = next(matches, None) or wanted.passage_id or f"title:{wanted.title}"
    facts = tuple(Fact(ids[fact.passage], fact.sentence) for fact in gold if fact.sentence is not None)
    return Gold(answers, tuple(dict.fromkeys(ids.values())), facts)


def gold_facts(example: dspy.Example) -> tuple[GoldFact, ...]:
    """The ``gold`` of a question, as the loaders have it or as a question file writes it: ``["Title", "a/b.md"]``.

    Raises:
        PolyhopError: it is neither.
    """
    gold = example.get("gold") or ()
    if isinstance(gold, str | Mapping) or not all(hasattr(fact, "passage") for fact in gold):
        from ..data.benchmarks.own import named_facts

        return named_facts(gold)
    return tuple(gold)


def asked_hash(example: dspy.Example) -> str:
    """A hash of a question and its gold as they are written: the same in every setting and over every index."""
    gold = [(fact.title, fact.sentence, fact.text) for fact in gold_facts(example)]
    gold = gold or [example.get("gold_passages"), example.get("gold_facts")]
    asked = [example.question, *_answers(example), example.get("answerable") is not False, gold]
    return blake2b(json.dumps(asked, default=str).encode(), digest_size=8).hexdigest()


def _answers(example: dspy.Example) -> Iterable[str]:
    return example.get("answers") or filter(None, (example.get("answer"),))


def gold_with_texts(example: dspy.Example, output: ProgramOutput, look_up: LookUp | None = None) -> Gold:
    """`gold_of` with the texts of the gold passages, from the question's pool or else from ``look_up``.

    Texts never come from the output: a metric would then skip exactly those questions where the program found little.
    """
    candidates = gold_candidates(example, look_up)
    gold = gold_of(example, [*candidates, *output.passages])
    texts = [" ".join(passage.text for passage in _parts(id, candidates)) for id in gold.passages]
    return gold if not all(texts) else gold._replace(texts=tuple(texts))


def gold_evidence(example: dspy.Example, look_up: LookUp | None = None) -> list[Evidence]:
    """The gold evidence, from the question's pool or else from ``look_up``: sentences, or passages without known ones.

    Raises:
        PolyhopError: the question has no gold passages, or one of them is not at hand.
    """
    candidates = gold_candidates(example, look_up)
    gold = gold_of(example, candidates)
    evidence = [_evidence(id, gold, candidates) for id in gold.passages]
    if not evidence or not all(evidence):
        raise PolyhopError(
            "the question has no gold passages, or its pool and the index lack one of them: the oracle needs a "
            "benchmark with gold passages, and their corpus"
        )
    return [item for items in evidence for item in items]


def gold_in_passages(example: dspy.Example, candidates: Sequence[Passage]) -> Gold:
    """`gold_of` with the ids of passages in place of documents, where these are among the candidates: those with the
    gold sentences, or else the first with an answer, or the first.
    """
    gold = gold_of(example, candidates)
    passages, facts = list[str](), list[Fact]()
    for id in gold.passages:
        items = _evidence(id, gold, candidates)
        if len(items) > 1 and all(item.sentence is None for item in items):
            items = [next((item for item in items if mentions(item.text, gold.answers)), items[0])]
        passages += [item.passage.id for item in items] or [id]
        facts += [item.fact for item in items if item.sentence is not None]
        facts += [] if items else [fact for fact in gold.facts if fact.passage_id == id]
    return gold._replace(passages=tuple(dict.fromkeys(passages)), facts=tuple(facts))


def _evidence(id: str, gold: Gold, candidates: Iterable[Passage]) -> list[Evidence]:
    """What a gold id stands for: the gold sentences, or passages without known ones; empty if it is not at hand."""
    parts = _parts(id, candidates)
    sentences = [fact.sentence for fact in gold.facts if fact.passage_id == id]
    stated = [
        Evidence(passage, number)
        for sentence in sentences
        for passage in parts
        for number in range(len(passage.sentences))
        if Fact(id, sentence) == fact_in(gold.passages, passage, number)
    ]
    # Benchmarks have a few sentences that no passage has.
    missing = parts if not sentences else [] if len(parts) > 1 else parts
    return stated or [Evidence(passage, sentence) for passage in missing for sentence in sentences or (None,)]


def _parts(id: str, candidates: Iterable[Passage]) -> list[Passage]:
    """The passage with an id, or those of the document, in their order."""
    parts = {passage.id: passage for passage in candidates if id in (passage.id, passage.document)}
    return [parts[id]] if id in parts else sorted(parts.values(), key=lambda part: part.place or Place(""))


def gold_candidates(example: dspy.Example, look_up: LookUp | None = None) -> list[Passage]:
    """The passages among which the gold ones are: the question's pool, or else those with their titles."""
    titles = dict.fromkeys(fact.title for fact in gold_facts(example))
    return list(example.get("pool") or [passage for title in titles if look_up for passage in look_up(title)])
