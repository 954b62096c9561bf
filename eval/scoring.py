"""The formulas: answers, evidence, rankings and token overlap. `polyhop.eval.metrics` has the metrics made of them.

Answers are compared as the official SQuAD and HotpotQA scripts compare them; `polyhop.eval.official` has what a
benchmark does differently. Evidence is scored in *passages* (right document) and in *facts* (right sentence).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import log2
from typing import NamedTuple

from ..data.passages import Evidence, Fact, Passage

CUTOFFS = (2, 5, 10, 20)
"""The k of Recall@k and all-gold@k."""

NDCG_CUTOFF = 10

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


class Scores(NamedTuple):
    """Precision, recall and their harmonic mean, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


ZERO = Scores(0.0, 0.0, 0.0)


def scores(common: int, ours: int, wanted: int) -> Scores:
    """From set sizes. Nothing in common is 0 throughout, also where both sets are empty (HotpotQA)."""
    if common == 0:
        return ZERO
    return Scores(common / ours, common / wanted, 2 * common / (ours + wanted))


def joint(*parts: Scores) -> Scores:
    """HotpotQA's joint scores: precisions and recalls multiply; F1 is made from the products."""
    precision = recall = 1.0
    for part in parts:
        precision *= part.precision
        recall *= part.recall
    total = precision + recall
    return Scores(precision, recall, 2 * precision * recall / total if total > 0 else 0.0)


def normalize_answer(text: str) -> str:
    """Lower-case, without ASCII punctuation and English articles, white space folded; accents stay."""
    text = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def exact_match(answer: str, gold: Collection[str]) -> float:
    """1.0 if the answer equals one of the gold answers after normalization, else 0.0."""
    normalized = normalize_answer(answer)
    return float(any(normalized == normalize_answer(text) for text in gold))


def answer_scores(answer: str, gold: Collection[str]) -> Scores:
    """Token scores against the gold answer with the best F1; "yes", "no" and "noanswer" must match whole (HotpotQA)."""
    normalized, golds = normalize_answer(answer), [normalize_answer(text) for text in gold]
    comparable = (text for text in golds if normalized == text or _CLOSED.isdisjoint((normalized, text)))
    return max((token_scores(normalized, text) for text in comparable), key=lambda score: score.f1, default=ZERO)


def token_scores(text: str, wanted: str) -> Scores:
    """The words that two normalized texts share, as multisets (SQuAD)."""
    ours, theirs = Counter(text.split()), Counter(wanted.split())
    return scores((ours & theirs).total(), ours.total(), theirs.total())


def mentions(text: str, answers: Collection[str]) -> float:
    """1.0 if a text contains one of the answers as whole words after normalization, else 0.0."""
    words = f" {normalize_answer(text)} "
    wanted = (normalize_answer(answer) for answer in answers)
    return float(any(answer and f" {answer} " in words for answer in wanted))


def counted(gold: Collection[str], passage: Passage) -> str:
    """The id that a passage counts as: its own if that is gold, else that of its document."""
    return passage.id if passage.id in gold else passage.document


def fact_in(gold: Collection[str], passage: Passage, sentence: int | None) -> Fact:
    """What a sentence of a passage counts as, numbered as in what the passage counts as."""
    return Fact(passage.id, sentence) if passage.id in gold else passage.fact_of(sentence)


def passage_scores(evidence: Iterable[Evidence], gold: Collection[str]) -> Scores:
    """The documents of the evidence against the ids of the gold passages, see `counted`."""
    wanted = set(gold)
    ids = {counted(wanted, item.passage) for item in evidence}
    return scores(len(ids & wanted), len(ids), len(wanted))


def fact_scores(evidence: Iterable[Evidence], gold: Collection[Fact]) -> Scores:
    """The sentences of the evidence against the gold sentences; a whole passage counts as all of its sentences."""
    wanted = set(gold)
    ids = {fact.passage_id for fact in wanted}
    facts = {fact_in(ids, passage, sentence) for passage, sentence in sentences_of(evidence)}
    return scores(len(facts & wanted), len(facts), len(wanted))


def sentences_of(evidence: Iterable[Evidence]) -> list[tuple[Passage, int]]:
    """The distinct sentences of the evidence, in its order; a whole passage counts as all of its sentences."""
    distinct: dict[Fact, tuple[Passage, int]] = {}
    for item in evidence:
        sentences = range(len(item.passage.sentences)) if item.sentence is None else (item.sentence,)
        for sentence in sentences:
            distinct.setdefault(Fact(item.passage.id, sentence), (item.passage, sentence))
    return list(distinct.values())


def token_overlap(retrieved: Iterable[str], gold: Iterable[str]) -> Scores:
    """KAIR's retrieval metric (arXiv 2503.13275): the words that the retrieved text shares with the gold documents.

    Multisets of words over all texts of a side, normalized as answers are, which the paper leaves open.
    """
    return token_scores(*(" ".join(map(normalize_answer, texts)) for texts in (retrieved, gold)))


def ranking_scores(ranking: Sequence[str], gold: Collection[str], cutoffs: Sequence[int] = CUTOFFS) -> dict[str, float]:
    """The metrics of one ranking of passage ids, best first; a repeated id counts at its first rank.

    Returns ``passage_recall@k`` (share of the gold passages in the first k), ``all_gold@k`` (1 if all of them are
    there), ``passage_mrr`` and ``passage_ndcg@10`` (binary gains), as trec_eval defines them; all 0 without gold.
    """
    wanted = set(gold)
    ranks = [rank for rank, id in enumerate(dict.fromkeys(ranking), 1) if id in wanted]
    result: dict[str, float] = {}
    for k in cutoffs:
        hits = sum(rank <= k for rank in ranks)
        result[f"passage_recall@{k}"] = hits / len(wanted) if wanted else 0.0
        result[f"all_gold@{k}"] = float(0 < len(wanted) == hits)
    result["passage_mrr"] = 1 / ranks[0] if ranks else 0.0
    ideal = range(1, min(len(wanted), NDCG_CUTOFF) + 1)
    gain, most = (sum(1 / log2(rank + 1) for rank in some if rank <= NDCG_CUTOFF) for some in (ranks, ideal))
    result[f"passage_ndcg@{NDCG_CUTOFF}"] = gain / most if gain else 0.0
    return result
