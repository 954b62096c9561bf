"""The retrieve-then-read baseline: one search, the top passages, one answer."""

from __future__ import annotations

import dspy

from ..data.passages import Evidence, Retriever
from ..signatures import AnswerFromPassages
from .agent import Agent
from .candidates import Candidates
from .prediction import check_question, conclude, nothing_found, read_answer
from .program import Program, register
from .scope import abstain_below, prompt_tokens
from .search import Pool, Search
from .trace import Trace


@register("naive")
class Naive(Program):
    """Naive RAG: 1 search, 1 LM call; the evidence is the top ``k`` passages.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages to read.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 5) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.prompt_tokens = prompt_tokens()
        self.abstain_below = abstain_below()
        self.answerer = Agent(AnswerFromPassages)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
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
