"""The closed-book baseline: one call, no retrieval."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ..data.passages import Passage
from ..data.pool import PassagePool
from ..signatures import AnswerDirectly
from .agent import Agent
from .prediction import check_question, conclude, read_answer
from .program import Program
from .trace import Trace


class Direct(Program):
    """Answers from the model's own knowledge. 1 LM call, no search; evidence and ranking are empty."""

    def __init__(self) -> None:
        super().__init__()
        self.answerer = Agent(AnswerDirectly)

    def forward(self, question: str, pool: Sequence[Passage] | PassagePool | None = None) -> dspy.Prediction:
        """Answer a question; ``pool`` is accepted, as by every program, and not read."""
        trace = Trace()
        answer, confidence = read_answer(self.answerer(question=check_question(question)), trace)
        return conclude(answer, confidence, trace, stop="no retrieval")
