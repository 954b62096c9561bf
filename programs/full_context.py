"""The long-context baseline: everything that could be read, in one prompt."""

from __future__ import annotations

import dspy

from ..data.passages import Evidence, Hit, Retriever
from ..signatures import AnswerFromPassages
from .agent import Agent
from .candidates import Candidates
from .prediction import check_question, conclude, nothing_found, read_answer
from .program import Program, register
from .scope import abstain_below, prompt_tokens
from .search import Pool, Search, as_pool
from .trace import Trace


@register("full_context")
class FullContext(Program):
    """All passages of the question's pool, in their order; without a pool the top ``k``: 1 LM call, at most 1 search.

    A prompt that exceeds the model's context is shortened as that of any `Agent`, and the run counts it as an incident.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages to read without a pool.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 20) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.prompt_tokens = prompt_tokens()
        self.abstain_below = abstain_below()
        self.answerer = Agent(AnswerFromPassages)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question from its own ``pool``, or from the retriever's passages if it has none."""
        question, trace = check_question(question), Trace()
        if pool is None:
            hits = self.search(question, None, trace)
        else:
            hits = [Hit(passage, 0.0, rank) for rank, passage in enumerate(as_pool(pool), 1)]
        if not hits:
            return nothing_found(trace)
        passages = Candidates(hit.passage for hit in hits)
        reply = self.answerer(question=question, passages=passages.show())
        answer, confidence = read_answer(reply, trace)
        evidence = [Evidence(passage) for passage in passages.passages]
        return conclude(answer, confidence, trace, evidence=evidence, seen=hits, stop="single pass")
