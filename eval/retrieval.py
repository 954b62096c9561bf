"""How well passages were found. "Retrieval recall" is not one metric: every name here says which unit it counts.

- a *ranking* of passages: `ranking_scores` (Recall@k as HippoRAG has it, all-gold@k, MRR, nDCG);
- the final *evidence set*: `passage_scores` and `fact_scores` in `polyhop.eval.metrics`;
- the *words* of the evidence: `token_overlap` (KAIR);
- the *answer* in the evidence: `answer_in_evidence`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from math import log2

from .metrics import Scores, mentions, normalize_answer, scores

CUTOFFS = (2, 5, 10, 20)
"""The k of Recall@k and all-gold@k."""

NDCG_CUTOFF = 10


def ranking_scores(ranking: Sequence[str], gold: Collection[str], cutoffs: Sequence[int] = CUTOFFS) -> dict[str, float]:
    """The metrics of one ranking of passage ids, best first; a repeated id counts where it stands first.

    Returns ``passage_recall@k`` (the share of the gold passages among the first k), ``all_gold@k`` (1 if all of them
    are there), ``passage_mrr`` (1 / the rank of the first gold passage) and ``passage_ndcg@10`` (binary gains); all 0
    where there is no gold.

    These are trec_eval's definitions (`polyhop.eval.trec.measure` has the library's numbers for whole runs). They are
    written out because the library costs some 0.3 ms to set up for every question's own gold; this costs a hundredth.
    """
    wanted = set(gold)
    ranks = [rank for rank, id in enumerate(dict.fromkeys(ranking), 1) if id in wanted]
    result: dict[str, float] = {}
    for k in cutoffs:
        found = sum(rank <= k for rank in ranks)
        result[f"passage_recall@{k}"] = found / len(wanted) if wanted else 0.0
        result[f"all_gold@{k}"] = float(0 < len(wanted) == found)
    result["passage_mrr"] = 1 / ranks[0] if ranks else 0.0
    gain = _gain(rank for rank in ranks if rank <= NDCG_CUTOFF)
    result[f"passage_ndcg@{NDCG_CUTOFF}"] = gain / _gain(range(1, min(len(wanted), NDCG_CUTOFF) + 1)) if gain else 0.0
    return result


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)


def token_overlap(retrieved: Iterable[str], gold: Iterable[str]) -> Scores:
    """KAIR's retrieval metric (arXiv 2503.13275): the words that the retrieved text shares with the gold documents.

    Bags of words over all texts of a side, normalised as answers are, which the paper leaves open. Words such as "of"
    and "in" count like any other: unrelated texts of equal length easily share a third.
    """
    found, wanted = _bag(retrieved), _bag(gold)
    return scores((found & wanted).total(), found.total(), wanted.total())


def _bag(texts: Iterable[str]) -> Counter[str]:
    return Counter(chain.from_iterable(normalize_answer(text).split() for text in texts))


def answer_in_evidence(answers: Collection[str], texts: Iterable[str]) -> float:
    """1.0 if one of the texts contains a gold answer word for word after normalisation, else 0.0.

    It says little where the answer is "yes" or "no".
    """
    return float(any(mentions(text, answers) for text in texts))
