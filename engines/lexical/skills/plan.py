"""The planner of polyhop's own program: the Question Analyzer, and a router before it."""

from __future__ import annotations

from typing import Any

from ..prompt import Prompt
from .analyze import analyze_question


def plan_research(prompt: Prompt) -> dict[str, Any]:
    """The route and the ordered sub-questions."""
    return {"route": "plan", **analyze_question(prompt)}
