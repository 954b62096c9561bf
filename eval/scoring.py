"""Every score of one prediction, by name. What a question has no gold for is left out, not scored 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import dspy

from ..data.passages import Evidence, Passage
from . import metrics, retrieval
from .gold import Gold, gold_of

METRICS = (
    "answer_em",
    "answer_f1",
    "evidence_precision",
    "evidence_recall",
    "evidence_f1",
    "fact_precision",
    "fact_recall",
    "fact_f1",
    "joint_f1",
    *(f"passage_recall@{k}" for k in retrieval.CUTOFFS),
    *(f"all_gold@{k}" for k in retrieval.CUTOFFS),
    "passage_mrr",
    f"passage_ndcg@{retrieval.NDCG_CUTOFF}",
    "answer_in_evidence",
    "token_precision",
    "token_recall",
    "token_f1",
)
"""The names, in the order of reports. Evidence is counted in passages, facts in sentences, tokens are KAIR's."""

LookUp = Callable[[str], Iterable[Passage]]
"""Finds the passages of a title, perhaps among others: ``BM25Index.titled``."""


class Outcome(NamedTuple):
    """The parts of a prediction that are scored."""

    answer: str
    evidence: tuple[Evidence, ...] = ()
    ranking: tuple[Passage, ...] = ()


def joint_f1(gold: Gold, outcome: Outcome) -> float:
    """Answer and sentences together, as HotpotQA joins them; with passages where no sentences are known."""
    answer = metrics.answer_scores(outcome.answer, gold.answers)
    if not gold.passages:  # nothing proves it: the answer is all there is
        return answer.f1
    if gold.facts:
        return metrics.joint(answer, metrics.fact_scores(outcome.evidence, gold.facts)).f1
    return metrics.joint(answer, metrics.passage_scores(outcome.evidence, gold.passages)).f1


def score(gold: Gold, outcome: Outcome, texts: Sequence[str] | None) -> dict[str, float]:
    """The scores in [0, 1] that make sense for a question.

    Args:
        gold: With the ids of the passages that the outcome speaks of (see `gold_of`).
        texts: The texts of the gold passages; None where they are not all known.
    """
    values = {
        "answer_em": metrics.exact_match(outcome.answer, gold.answers),
        "answer_f1": metrics.answer_f1(outcome.answer, gold.answers),
        "joint_f1": joint_f1(gold, outcome),
    }
    evidence = [item.text for item in outcome.evidence]
    if gold.passages:
        values |= _three("evidence", metrics.passage_scores(outcome.evidence, gold.passages))
        values |= retrieval.ranking_scores([passage.id for passage in outcome.ranking], gold.passages)
        values["answer_in_evidence"] = retrieval.answer_in_evidence(gold.answers, evidence)
        if texts is not None:
            values |= _three("token", retrieval.token_overlap(evidence, texts))
    if gold.facts:
        values |= _three("fact", metrics.fact_scores(outcome.evidence, gold.facts))
    return values


def _three(unit: str, scores: metrics.Scores) -> dict[str, float]:
    return {f"{unit}_{name}": value for name, value in scores._asdict().items()}


def judge(
    example: dspy.Example, outcome: Outcome | None, look_up: LookUp | None
) -> tuple[Gold, dict[str, float], bool]:
    """What is right about a question, the scores of an outcome (of none, a failure, all are 0), and whether a gold
    passage was looked up in vain.

    Args:
        look_up: Where gold passages are looked up that the question does not bring along.
    """
    known = [*(example.get("pool") or ()), *_looked_up(example, look_up)]
    seen = [*outcome.ranking, *(item.passage for item in outcome.evidence)] if outcome else []
    gold = gold_of(example, [*known, *seen])
    # Only what is known without the program: else the metric would leave out just the questions where it found little.
    texts = {passage.id: passage.text for passage in known}
    gold_texts = [texts[id] for id in gold.passages] if all(id in texts for id in gold.passages) else None
    values = score(gold, outcome or Outcome(""), gold_texts)
    in_vain = gold_texts is None and look_up is not None
    return gold, values if outcome else dict.fromkeys(values, 0.0), in_vain


def _looked_up(example: dspy.Example, look_up: LookUp | None) -> list[Passage]:
    if look_up is None or example.get("pool"):
        return []
    titles = dict.fromkeys(fact.title for fact in example.get("gold") or ())
    return [passage for title in titles for passage in look_up(title)]
