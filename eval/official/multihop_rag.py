"""MultiHop-RAG, as ``retrieval_evaluate.py`` and ``qa_evaluate.py`` of github.com/yixuantt/MultiHop-RAG have it.

Retrieval, over the questions that are not of the type ``null_query``:

- A retrieved text is a hit if it contains a gold fact after blanks and line breaks are removed from both.
- The script reads 11 texts and counts the first 10; so do we.
- "Average precision" adds, at every hit, the gold facts *first seen there* divided by the rank, and divides the sum by
  the number of gold facts (at most 10). It is not the textbook's MAP, which counts all facts seen so far.

Answers: the script's precision, recall and F1 are one number, the share *s* of answers that have any word in common
with the gold answer, so "Insufficient information." matches "no information". It is reported as ``official_overlap``,
with exact match and containment (the answer contains the gold answer as whole words). Its "accuracy" is another
number: from April 2025 on it counts every wrong answer as false positive, as false negative and as true negative,
which makes it 1 / (3 - 2 *s*), at least 1/3. A later version prints *s* for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..scoring import exact_match, mentions
from . import write_object

DEPTH = 10
"""How many retrieved texts count."""

_QUOTED_ANSWER = re.compile(r'The answer to the question is "(.*?)"')


class Gold(NamedTuple):
    """The gold; a ``null_query`` has no facts."""

    answer: str
    facts: Sequence[str]


class Prediction(NamedTuple):
    """The answer (``None`` is missing) and the retrieved texts, best first."""

    query: str
    question_type: str
    answer: str | None = None
    retrieved: Sequence[str] = ()


def score(prediction: Prediction, gold: Gold) -> dict[str, float]:
    """The answer metrics and, unless it is a null query, the retrieval metrics; fractions."""
    values = answer_scores(prediction.answer, gold.answer)
    if prediction.question_type != "null_query":
        values |= retrieval_scores(prediction.retrieved, gold.facts)
    return values


def retrieval_scores(retrieved: Sequence[str], facts: Sequence[str]) -> dict[str, float]:
    """``Hits@10``, ``Hits@4``, ``MAP@10`` and ``MRR@10`` of one query."""
    if not facts:
        raise ValueError("a query without gold facts has no retrieval scores (is it a null_query?)")
    wanted = [_squeezed(fact) for fact in facts]
    hits, precisions, seen = [], 0.0, set[str]()
    for rank, text in enumerate(map(_squeezed, retrieved[:DEPTH]), 1):
        found = {fact for fact in wanted if fact in text}
        if found:
            hits.append(rank)
            precisions += len(found - seen) / rank
            seen |= found
    first = min(hits, default=None)
    return {
        "Hits@10": float(first is not None),
        "Hits@4": float(first is not None and first <= 4),
        "MAP@10": precisions / min(len(facts), DEPTH),
        "MRR@10": 1 / first if first else 0.0,
    }


def _squeezed(text: str) -> str:
    return text.replace(" ", "").replace("\n", "")


def answer_scores(answer: str | None, gold: str) -> dict[str, float]:
    """``official_overlap``, ``answer_em`` and ``answer_contained``."""
    if answer is None:
        return {"official_overlap": 0.0, "answer_em": 0.0, "answer_contained": 0.0}
    quoted = _QUOTED_ANSWER.search(answer)
    words = set((quoted[1] if quoted else answer).lower().split())
    return {
        "official_overlap": float(not words.isdisjoint(gold.lower().split())),
        "answer_em": exact_match(answer, [gold]),
        "answer_contained": mentions(answer, [gold]),
    }


def write_retrieval(path: Path, pairs: Iterable[tuple[Prediction, Gold]]) -> None:
    """Write the file that ``retrieval_evaluate.py`` reads; it carries the gold facts."""
    records = [
        {
            "query": prediction.query,
            "answer": gold.answer,
            "question_type": prediction.question_type,
            "retrieval_list": [{"text": text} for text in prediction.retrieved],
            "gold_list": [{"fact": fact} for fact in gold.facts],
        }
        for prediction, gold in pairs
    ]
    write_object(path, records)


def write_answers(path: Path, pairs: Iterable[tuple[Prediction, Gold]]) -> None:
    """Write the file that ``qa_evaluate.py`` reads. Missing answers are empty strings."""
    records = [
        {
            "query": prediction.query,
            "model_answer": prediction.answer or "",
            "gold_answer": gold.answer,
            "question_type": prediction.question_type,
        }
        for prediction, gold in pairs
    ]
    write_object(path, records)
