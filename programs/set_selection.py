"""Set selection, after SetR (arXiv 2507.06838): the passages are chosen as a set, not one by one.

One call works out what the question requires and selects the passages that together meet it; another one answers from
them.

Deviations: SetR is a model trained for this; here any model is asked. The prompts are our own. If nothing is selected,
the answer is unknown, without a call.
"""

from __future__ import annotations

import dspy

from ..data.passages import Retriever
from ..signatures import AnswerFromContext, SelectSet
from .agent import Agent
from .candidates import Candidates, facts, whole
from .prediction import UNKNOWN, check_question, conclude, nothing_found, read_answer
from .program import Program, register
from .scope import abstain_below, prompt_tokens
from .search import Pool, Search
from .trace import Required, Selected, Trace


@register("set_selection")
class SetSelection(Program):
    """Select a set of passages that together cover what the question requires, then answer: 2 LM calls, 1 search.

    Args:
        retriever: For questions without a pool of their own.
        k: Candidates; 20 in the paper.
    """

    paper_retriever = "bm25"

    def __init__(self, retriever: Retriever | None = None, k: int = 20) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.prompt_tokens = prompt_tokens()
        self.abstain_below = abstain_below()
        self.selector = Agent(SelectSet)
        self.answerer = Agent(AnswerFromContext)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question, trace = check_question(question), Trace()
        hits = self.search(question, pool, trace)
        if not hits:
            return nothing_found(trace)
        candidates = Candidates(hit.passage for hit in hits)
        reply = self.selector(question=question, candidates=candidates.show())
        kept, invalid = candidates.resolve(reply.chosen)
        evidence = whole(kept)
        trace.add(Required(tuple(" ".join(text.split()) for text in reply.requirements)))
        trace.add(Selected(1, facts(evidence), invalid))
        if not evidence:
            return conclude(UNKNOWN, 0.0, trace, seen=hits, stop="nothing selected")
        answer, confidence = read_answer(self.answerer(question=question, evidence=candidates.show(evidence)), trace)
        return conclude(answer, confidence, trace, evidence=evidence, seen=hits, stop="single pass")
