"""How right an answer, an evidence set and a ranking are: the parts that all evaluations share.

Answers are compared as the official SQuAD and HotpotQA scripts compare them; what a benchmark does differently stands
in `polyhop.eval.official`. Evidence is scored at two levels, and the unit is always in the name: *passages* (was the
right document found) and *facts* (was the right sentence found).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..data.passages import Evidence, Fact, Passage

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


class Scores(NamedTuple):
    """Precision, recall and their harmonic mean, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


ZERO = Scores(0.0, 0.0, 0.0)


def scores(common: int, found: int, wanted: int) -> Scores:
    """From set sizes. Nothing in common is 0 throughout, also where nothing was found or wanted, as HotpotQA has it."""
    if common == 0:
        return ZERO
    return Scores(common / found, common / wanted, 2 * common / (found + wanted))


def joint(*parts: Scores) -> Scores:
    """Right in all parts at once (HotpotQA): precisions and recalls multiply, F1 is made from the products."""
    precision = recall = 1.0
    for part in parts:
        precision *= part.precision
        recall *= part.recall
    total = precision + recall
    return Scores(precision, recall, 2 * precision * recall / total if total > 0 else 0.0)


# --- answers ---------------------------------------------------------------------------------------------------------


def normalize_answer(text: str) -> str:
    """Lower-case, without ASCII punctuation and English articles, white space folded; accents stay."""
    text = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def exact_match(answer: str, gold: Collection[str]) -> float:
    """1.0 if the answer equals one of the gold answers after normalisation, else 0.0."""
    normalized = normalize_answer(answer)
    return float(any(normalized == normalize_answer(text) for text in gold))


def answer_f1(answer: str, gold: Collection[str]) -> float:
    """The best token F1 against any gold answer; "yes", "no" and "noanswer" match whole or not at all (HotpotQA)."""
    return answer_scores(answer, gold).f1


def answer_scores(answer: str, gold: Collection[str]) -> Scores:
    """Token precision, recall and F1 against the gold answer with the best F1, under the same rule."""
    normalized = normalize_answer(answer)
    each = (_closed_token_scores(normalized, normalize_answer(text)) for text in gold)
    return max(each, key=lambda score: score.f1, default=ZERO)


def _closed_token_scores(answer: str, gold: str) -> Scores:
    if answer != gold and (answer in _CLOSED or gold in _CLOSED):
        return ZERO
    return token_scores(answer, gold)


def token_scores(found: str, wanted: str) -> Scores:
    """The words that two normalised texts share; a word counts as often as both have it (SQuAD)."""
    ours, theirs = Counter(found.split()), Counter(wanted.split())
    return scores((ours & theirs).total(), ours.total(), theirs.total())


def mentions(text: str, answers: Collection[str]) -> float:
    """1.0 if a text contains one of the answers word for word after normalisation, else 0.0; "no" is not in "know"."""
    words = f" {normalize_answer(text)} "
    wanted = (normalize_answer(answer) for answer in answers)
    return float(any(answer and f" {answer} " in words for answer in wanted))


# --- evidence --------------------------------------------------------------------------------------------------------


def passage_scores(evidence: Iterable[Evidence], gold: Collection[str]) -> Scores:
    """The passages that the evidence comes from, against the ids of the gold passages."""
    found, wanted = {item.passage.id for item in evidence}, set(gold)
    return scores(len(found & wanted), len(found), len(wanted))


def fact_scores(evidence: Iterable[Evidence], gold: Collection[Fact]) -> Scores:
    """The sentences of the evidence, against the gold sentences.

    A passage given whole counts for each of its sentences: who hands over a whole passage has found its gold sentence,
    and pays for the others in precision.
    """
    found = {Fact(passage.id, sentence) for passage, sentence in sentences_of(evidence)}
    wanted = set(gold)
    return scores(len(found & wanted), len(found), len(wanted))


def sentences_of(evidence: Iterable[Evidence]) -> list[tuple[Passage, int]]:
    """The sentences of the evidence, each once, in its order; a passage given whole stands for all of its sentences."""
    found: dict[Fact, tuple[Passage, int]] = {}
    for item in evidence:
        sentences = range(len(item.passage.sentences)) if item.sentence is None else (item.sentence,)
        for sentence in sentences:
            found.setdefault(Fact(item.passage.id, sentence), (item.passage, sentence))
    return list(found.values())
