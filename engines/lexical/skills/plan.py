"""PAR-RAG's planner, and what keeps its plan in line with the answers."""

from __future__ import annotations

from typing import Any

from ....data.references import references, replace_references
from ....signatures import PlanSteps, RefineQuestion
from ..decompose import decompose
from ..engine import skill
from ..prompt import Prompt
from .answer import UNKNOWN
from .trajectory import read_trajectory


@skill(PlanSteps)
def plan_steps(prompt: Prompt) -> dict[str, Any]:
    """A step for every sub-question; its thought says what it refers to."""
    questions = decompose(prompt.inputs.get("question", ""))
    return {"steps": [{"thought": _thought(question), "question": question} for question in questions]}


def _thought(question: str) -> str:
    needed = [str(number) for number in references(question)]
    if not needed:
        return "Needs nothing before it."
    return f"Needs the answer{'s' * (len(needed) > 1)} of step{'s' * (len(needed) > 1)} {' and '.join(needed)}."


@skill(RefineQuestion)
def refine_question(prompt: Prompt) -> dict[str, Any]:
    """The next question with the answers that are known in place of its references."""
    known = {step.number: step.answer for step in read_trajectory(prompt) if step.answer != UNKNOWN}
    question = prompt.inputs.get("next_question", "")
    return {"refined_question": replace_references(question, known.get)}
