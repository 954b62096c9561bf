"""The upper bound of retrieval: the answerer reads the gold evidence and nothing else. Not a system."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence
from ..signatures import AnswerFromContext
from .agent import Agent
from .candidates import Candidates, whole
from .prediction import check_question, conclude, nothing_found, read_answer
from .program import Program, register
from .scope import prompt_tokens
from .search import Pool
from .trace import Trace
from .tunable import choice


@register("oracle")
class Oracle(Program):
    """Answers from the gold evidence of a question, which `polyhop.eval.evaluate` gives it: 1 LM call, no search.

    Its scores of evidence and ranking are those of the gold against itself. ``unit`` is what it reads: the gold
    passages, or their gold sentences where the benchmark has them.
    """

    searches = False
    reads_gold = True

    def __init__(self) -> None:
        super().__init__()
        self.unit = choice("passage", ("passage", "sentence"))
        self.prompt_tokens = prompt_tokens()
        self.answerer = Agent(AnswerFromContext)

    def forward(self, question: str, pool: Pool = None, gold: Sequence[Evidence] | None = None) -> dspy.Prediction:
        """Answer a question from its ``gold``; ``pool`` is accepted and not read.

        Raises:
            PolyhopError: there is no ``gold``: only an evaluation knows it.
        """
        question, trace = check_question(question), Trace()
        if gold is None:
            raise PolyhopError(
                "the oracle reads the gold evidence of a question: run it with 'polyhop evaluate --program oracle'"
            )
        evidence = list(gold) if self.unit.value == "sentence" else whole(gold)
        if not evidence:
            return nothing_found(trace)
        shown = Candidates(item.passage for item in evidence).show(evidence)
        answer, confidence = read_answer(self.answerer(question=question, evidence=shown), trace)
        return conclude(answer, confidence, trace, evidence=evidence, stop="oracle")
