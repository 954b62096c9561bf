"""2WikiMultihopQA, as ``2wikimultihop_evaluate_v1.1.py`` of github.com/Alab-NII/2wikimultihop has it.

Like HotpotQA, with these differences:

- The answer is compared with the gold answer and all of its aliases and demonyms (``id_aliases.json``); EM, F1,
  precision and recall are each the best over these, not necessarily of the same alias.
- Titles of supporting facts are lower-cased, but repetitions are removed before that: two spellings of one predicted
  fact count twice.
- Evidence triples are a third task. Triples are compared in lower case without punctuation (articles stay); subject
  and object may be any alias. Every predicted triple that matches counts: one gold triple predicted under two aliases
  gives a recall above 1, as in the script.
- Joint is answer x support x evidence, so it is 0 for systems that give no triples.
- The script prints percentages, rounded to two decimals.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..scoring import Scores, answer_scores, exact_match, scores
from .files import means
from .hotpotqa import MISSING, Part, SupportingFact, fact, together, write_sections

_PUNCTUATION = str.maketrans("", "", string.punctuation)

Triple = tuple[str, str, str]


class Gold(NamedTuple):
    """The gold, aliases included. Each evidence is a set of equally good triples."""

    answers: Collection[str]
    supporting_facts: Collection[SupportingFact]
    evidences: Sequence[Collection[Triple]]


class Prediction(NamedTuple):
    """A prediction; ``None`` is missing."""

    id: str
    answer: str | None = None
    sp: Sequence[SupportingFact] | None = None
    evidence: Sequence[Triple] | None = None


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``em``, ``f1``, ``prec``, ``recall`` of the answer; the same with ``sp_``, ``evi_`` and ``joint_``; fractions."""
    answer = None if prediction.answer is None else _answer(prediction.answer, gold.answers)
    support = None if prediction.sp is None else _support(prediction.sp, gold.supporting_facts)
    evidence = None if prediction.evidence is None else _evidence(prediction.evidence, gold.evidences)
    return {
        **(answer or MISSING).named(""),
        **(support or MISSING).named("sp_"),
        **(evidence or MISSING).named("evi_"),
        **together(answer, support, evidence).named("joint_"),
    }


def _answer(answer: str, golds: Collection[str]) -> Part:
    each = [answer_scores(answer, [text]) for text in golds]
    best = Scores(*(max(values, default=0.0) for values in zip(*each, strict=True))) if each else MISSING.scores
    return Part(exact_match(answer, golds), best)


def _support(facts: Iterable[SupportingFact], gold: Iterable[SupportingFact]) -> Part:
    found, wanted = _lowered(facts), _lowered(gold)
    right = sum(fact in wanted for fact in found)
    missed = sum(fact not in found for fact in wanted)
    return Part(float(right == len(found) and missed == 0), scores(right, len(found), right + missed))


def _lowered(facts: Iterable[SupportingFact]) -> list[SupportingFact]:
    return [(title.lower(), sentence) for title, sentence in set(map(fact, facts))]


def _evidence(triples: Iterable[Triple], gold: Sequence[Collection[Triple]]) -> Part:
    found = {_normalized(triple) for triple in triples}
    wanted = [{_normalized(triple) for triple in alternatives} for alternatives in gold]
    right = sum(any(triple in alternatives for alternatives in wanted) for triple in found)
    return Part(float(right == len(found) == len(wanted)), scores(right, len(found), len(wanted)))


def _normalized(triple: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.lower().translate(_PUNCTUATION).split()) for text in triple)


def evaluate(pairs: Iterable[tuple[Prediction, Gold]]) -> dict[str, float]:
    """The means over all gold questions in percent, rounded to two decimals."""
    total = means(score(prediction, gold) for prediction, gold in pairs)
    return {name: round(value * 100, 2) for name, value in total.items()}


def write(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write ``{"answer": {id: ..}, "sp": {id: [[title, number], ..]}, "evidence": {id: [[s, r, o], ..]}}``.

    The script needs all three sections, even empty ones.
    """
    write_sections(path, predictions, ("answer", "sp", "evidence"))
