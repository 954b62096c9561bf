"""HotpotQA, as ``hotpot_evaluate_v1.py`` of github.com/hotpotqa/hotpot has it, and two benchmarks of its shape.

- An answer that is "yes", "no" or "noanswer", given or gold, must match whole; else F1, precision and recall are 0.
- Supporting facts are a set of (title, sentence number from 0); titles are case-sensitive.
- Joint precision and recall are products, joint F1 is made from these, joint EM is the product.
- A missing answer or a missing set of facts scores 0 for itself and for the joint; the other still counts.
- Nothing predicted where nothing is gold: EM is 1, F1 is 0.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...data.passages import Evidence
from ..scoring import ZERO, Scores, answer_scores, exact_match, joint, normalize_answer, scores, sentences_of
from . import write_object

SupportingFact = tuple[str, int]
Triple = tuple[str, str, str]

_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Gold(NamedTuple):
    """The accepted answers, the supporting facts and, for 2WikiMultihopQA, sets of equally good triples."""

    answers: Collection[str]
    supporting_facts: Collection[SupportingFact]
    evidences: Sequence[Collection[Triple]] = ()


class Prediction(NamedTuple):
    """A prediction; ``None`` is missing, which differs from an empty answer or no facts."""

    id: str
    answer: str | None = None
    sp: Sequence[SupportingFact] | None = None
    evidence: Sequence[Triple] | None = None


class Part(NamedTuple):
    """The scores of one task of a question."""

    em: float
    scores: Scores

    def named(self, prefix: str) -> dict[str, float]:
        precision, recall, f1 = self.scores
        return {f"{prefix}em": self.em, f"{prefix}f1": f1, f"{prefix}prec": precision, f"{prefix}recall": recall}


_MISSING = Part(0.0, ZERO)


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """``em``, ``f1``, ``prec``, ``recall`` of the answer; the same with ``sp_`` and ``joint_``; fractions."""
    answer = support = None
    if prediction.answer is not None:
        answer = Part(exact_match(prediction.answer, gold.answers), answer_scores(prediction.answer, gold.answers))
    if prediction.sp is not None:
        found, wanted = _facts(prediction.sp), _facts(gold.supporting_facts)
        support = Part(float(found == wanted), scores(len(found & wanted), len(found), len(wanted)))
    return _named({"": answer, "sp_": support})


def _named(parts: dict[str, Part | None]) -> dict[str, float]:
    """The scores of several tasks, and of all of them jointly; 0 where one is missing."""
    given = [part for part in parts.values() if part is not None]
    em = float(all(part.em == 1.0 for part in given))
    together = Part(em, joint(*(part.scores for part in given))) if len(given) == len(parts) else _MISSING
    each = {**parts, "joint_": together}
    return {name: value for prefix, part in each.items() for name, value in (part or _MISSING).named(prefix).items()}


def _facts(pairs: Iterable[Iterable[Any]]) -> set[tuple[Any, ...]]:
    """Supporting facts, which JSON has as lists."""
    return set(map(tuple, pairs))


# --- 2WikiMultihopQA -------------------------------------------------------------------------------------------------


def score_two_wiki(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """2WikiMultihopQA, as ``2wikimultihop_evaluate_v1.1.py`` of github.com/Alab-NII/2wikimultihop has it.

    Like HotpotQA, with a third task, ``evi_``, and these differences:

    - The answer is compared with the gold answer and all of its aliases and demonyms (``id_aliases.json``); EM, F1,
      precision and recall are each the best over these, not necessarily of the same alias.
    - Titles of supporting facts are lower-cased, but repetitions are removed before that: two spellings of one
      predicted fact count twice.
    - Evidence triples are compared in lower case without punctuation (articles stay); subject and object may be any
      alias. Every predicted triple that matches counts: one gold triple predicted under two aliases gives a recall
      above 1, as in the script.
    - Joint is answer x support x evidence, so it is 0 for systems that give no triples.
    """
    answer = support = evidence = None
    if prediction.answer is not None:
        each = [answer_scores(prediction.answer, [text]) for text in gold.answers] or [ZERO]
        best = Scores(*map(max, zip(*each, strict=True)))
        answer = Part(exact_match(prediction.answer, gold.answers), best)
    if prediction.sp is not None:
        facts, wanted = ([(t.lower(), n) for t, n in _facts(given)] for given in (prediction.sp, gold.supporting_facts))
        right, missed = sum(fact in wanted for fact in facts), sum(fact not in facts for fact in wanted)
        support = Part(float(right == len(facts) and missed == 0), scores(right, len(facts), right + missed))
    if prediction.evidence is not None:
        found = set(map(_normalized, prediction.evidence))
        alternatives = [set(map(_normalized, triples)) for triples in gold.evidences]
        right = sum(any(triple in each for each in alternatives) for triple in found)
        em = float(right == len(found) == len(alternatives))
        evidence = Part(em, scores(right, len(found), len(alternatives)))
    return _named({"": answer, "sp_": support, "evi_": evidence})


def _normalized(triple: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.lower().translate(_PUNCTUATION).split()) for text in triple)


# --- HoVer -----------------------------------------------------------------------------------------------------------

_SENTENCES = 2  # of a page
_SUPPORTED, _NOT_SUPPORTED = ("yes", "true", "supported"), ("no", "false", "not", "refuted")


def score_hover(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """HoVer, as its paper (arXiv 2011.03088, section 5.5) and its website define the metrics; there is no public
    script.

    - ``accuracy`` is that of the label, the `verdict` of the answer.
    - ``sp_em`` and ``sp_f1`` compare supporting sentences as HotpotQA does.
    - ``hover_score``: the label is right, and every gold page has at least one of its gold sentences among the
      predicted ones. Of a claim of k pages only the first k + 1 predicted pages count, with the first two sentences of
      each.
    """
    right = prediction.answer is not None and verdict(prediction.answer) is bool(verdict(*gold.answers))
    pages = {title for title, _ in gold.supporting_facts}
    shown: dict[str, list[int]] = {}
    for title, sentence in prediction.sp or ():
        shown.setdefault(title, []).append(sentence)
    first = list(shown.items())[: len(pages) + 1]
    counted = {(title, sentence) for title, sentences in first for sentence in sentences[:_SENTENCES]}
    complete = pages == {title for title, _ in counted & _facts(gold.supporting_facts)}
    facts = score(prediction, gold)
    return {
        "accuracy": float(right),
        "sp_em": facts["sp_em"],
        "sp_f1": facts["sp_f1"],
        "hover_score": float(right and complete),
    }


def verdict(answer: str) -> bool | None:
    """Whether an answer says that a claim is supported, by its first word; None if it says neither."""
    first = normalize_answer(answer).partition(" ")[0]
    return True if first in _SUPPORTED else False if first in _NOT_SUPPORTED else None


# --- predictions -----------------------------------------------------------------------------------------------------


def supporting_facts(evidence: Iterable[Evidence]) -> list[SupportingFact]:
    """Evidence as (title, number of the sentence in its document); a whole passage counts as all of its sentences."""
    facts = ((passage.title, passage.fact_of(sentence).sentence) for passage, sentence in sentences_of(evidence))
    return list(dict.fromkeys((title, number) for title, number in facts if number is not None))


def write(path: Path, predictions: Iterable[Prediction], names: Iterable[str] = ("answer", "sp")) -> None:
    """Write ``{"answer": {id: answer}, "sp": {id: [[title, number], ...]}}``; missing parts are left out.

    2WikiMultihopQA's script needs a third section, ``"evidence"``, even if it is empty.
    """
    sections: dict[str, dict[str, Any]] = {name: {} for name in names}
    for prediction in predictions:
        for name, section in sections.items():
            if (value := getattr(prediction, name)) is not None:
                section[prediction.id] = value
    write_object(path, sections)
