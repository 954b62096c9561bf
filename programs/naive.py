"""The retrieve-then-read baseline: one BM25 search, the top passages, one answer."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ..data.passages import Evidence, Passage, Retriever
from ..data.pool import PassagePool
from ..signatures import AnswerFromPassages
from .agent import Agent
from .candidates import Candidates
from .prediction import check_question, conclude, nothing_found, read_answer
from .program import Program
from .search import Search
from .trace import Trace


class Naive(Program):
    """Naive RAG. 1 search, 1 LM call; the evidence is the top ``k`` passages, whole.

    Args:
        retriever: Where to search when a question brings no pool of its own.
        k: Passages to read.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 5) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.answerer = Agent(AnswerFromPassages)

    def forward(self, question: str, pool: Sequence[Passage] | PassagePool | None = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question, trace = check_question(question), Trace()
        hits = self.search(question, pool, trace)
        if not hits:
            return nothing_found(trace)
        passages = Candidates([hit.passage for hit in hits])
        reply = self.answerer(question=question, passages=passages.show())
        evidence = [Evidence(hit.passage) for hit in hits]
        answer, confidence = read_answer(reply, trace)
        return conclude(answer, confidence, trace, evidence=evidence, seen=hits, stop="single pass")
