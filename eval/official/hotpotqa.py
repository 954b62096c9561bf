"""HotpotQA, as ``hotpot_evaluate_v1.py`` of github.com/hotpotqa/hotpot has it.

- An answer that is "yes", "no" or "noanswer", given or gold, must match whole; else F1, precision and recall are 0.
- Supporting facts are a set of (title, sentence number from 0); titles are case-sensitive.
- Joint precision and recall are products, joint F1 is made from these, joint EM is the product.
- A missing answer or a missing set of facts scores 0 for itself and for the joint; the other still counts.
- Nothing predicted where nothing is gold: EM is 1, F1 is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...data.passages import Evidence
from ..scoring import ZERO, Scores, answer_scores, exact_match, joint, scores, sentences_of
from .files import means, write_object

SupportingFact = tuple[str, int]


class Gold(NamedTuple):
    """The gold, under the names of the dataset."""

    answer: str
    supporting_facts: Collection[SupportingFact]


class Prediction(NamedTuple):
    """A prediction; ``None`` is missing, which differs from an empty answer or no facts."""

    id: str
    answer: str | None = None
    sp: Sequence[SupportingFact] | None = None


class Part(NamedTuple):
    """The scores of one task of a question."""

    em: float
    scores: Scores

    def named(self, prefix: str) -> dict[str, float]:
        precision, recall, f1 = self.scores
        return {f"{prefix}em": self.em, f"{prefix}f1": f1, f"{prefix}prec": precision, f"{prefix}recall": recall}


MISSING = Part(0.0, ZERO)


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``em``, ``f1``, ``prec``, ``recall`` of the answer; the same with ``sp_`` and ``joint_``; fractions."""
    answer = support = None
    if prediction.answer is not None:
        golds = [gold.answer]
        answer = Part(exact_match(prediction.answer, golds), answer_scores(prediction.answer, golds))
    if prediction.sp is not None:
        found, wanted = set(map(fact, prediction.sp)), set(map(fact, gold.supporting_facts))
        support = Part(float(found == wanted), scores(len(found & wanted), len(found), len(wanted)))
    parts = (answer, support)
    return {**(answer or MISSING).named(""), **(support or MISSING).named("sp_"), **together(*parts).named("joint_")}


def together(*parts: Part | None) -> Part:
    """The joint of several tasks; 0 where one of them is missing."""
    given = [part for part in parts if part is not None]
    if len(given) < len(parts):
        return MISSING
    em = 1.0
    for part in given:
        em *= part.em
    return Part(em, joint(*(part.scores for part in given)))


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The means over all gold questions, as fractions; a question without a prediction has ``Prediction(id)``."""
    return means(score(prediction, gold) for prediction, gold in pairs)


def supporting_facts(evidence: Iterable[Evidence]) -> list[SupportingFact]:
    """Evidence as (title, number of the sentence in its document); a whole passage counts as all of its sentences."""
    facts = ((passage.title, passage.fact_of(sentence).sentence) for passage, sentence in sentences_of(evidence))
    return list(dict.fromkeys((title, number) for title, number in facts if number is not None))


def write(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write ``{"answer": {id: answer}, "sp": {id: [[title, number], ...]}}``; missing parts are left out."""
    write_sections(path, predictions, ("answer", "sp"))


def write_sections(path: Path, predictions: Iterable[Any], names: Iterable[str]) -> None:
    """Write ``{name: {id: value, ...}, ...}`` from the predictions' fields; missing ones are left out."""
    sections: dict[str, dict[str, Any]] = {name: {} for name in names}
    for prediction in predictions:
        for name, section in sections.items():
            if (value := getattr(prediction, name)) is not None:
                section[prediction.id] = value
    write_object(path, sections)


def fact(pair: Iterable[Any]) -> SupportingFact:
    """A supporting fact from its JSON list."""
    title, sentence = pair
    return title, sentence
