"""The Question Analyzer, and the planner, which routes too: by clause, and by what the demos in the prompt teach."""

from __future__ import annotations

from typing import Any

from ....signatures import AnalyzeQuestion, PlanResearch
from ..decompose import Solved, decompose
from ..engine import skill
from ..prompt import Prompt, as_list
from .route import route_question


@skill(AnalyzeQuestion, PlanResearch)
def analyze_question(prompt: Prompt) -> dict[str, Any]:
    """The ordered sub-questions of the question, and the route of who is asked for one."""
    asked = {"sub_questions": decompose(prompt.inputs.get("question", ""), solved_questions(prompt))}
    return {**asked, "route": route_question(prompt)["route"]} if "route" in prompt.outputs else asked


def solved_questions(prompt: Prompt) -> list[Solved]:
    """The demos of the prompt that show a question and its plan, in their order."""
    solved = (
        (demo.inputs.get("question", ""), tuple(as_list(demo.outputs.get("sub_questions", ""))))
        for demo in prompt.demos
    )
    return [(question, plan) for question, plan in solved if question and plan]
