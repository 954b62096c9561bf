"""The closed-book baseline: one call, no retrieval."""

from __future__ import annotations

import dspy

from ..signatures import AnswerDirectly
from .agent import Agent
from .prediction import check_question, conclude, read_answer
from .program import Program, register
from .search import Pool
from .trace import Trace


@register("direct")
class Direct(Program):
    """Answers from the model's own knowledge: 1 LM call, no search; evidence and ranking are empty."""

    searches = False

    def __init__(self) -> None:
        super().__init__()
        self.answerer = Agent(AnswerDirectly)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question; ``pool`` is accepted and not read."""
        trace = Trace()
        answer, confidence = read_answer(self.answerer(question=check_question(question)), trace)
        return conclude(answer, confidence, trace, stop="no retrieval", status="model knowledge")
