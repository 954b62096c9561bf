"""C-3PO's router and its roadmap: as many searches as the question has parts."""

from __future__ import annotations

from typing import Any

from ....data.text import content_terms
from ..decompose import decompose
from ..prompt import Prompt
from ..question import mask
from .known import arithmetic, small_talk

ATOMIC = 6  # words that carry a topic, beside its name, that a question about one fact has at most


def route_question(prompt: Prompt) -> dict[str, Any]:
    """No search for small talk and sums, one for one relation of one name, a plan for everything else."""
    question = prompt.inputs.get("question", "")
    if small_talk(question) or arithmetic(question) is not None:
        return {"route": "direct", "query": ""}
    if is_atomic(question):
        return {"route": "single", "query": question}
    return {"route": "plan", "query": ""}


def is_atomic(question: str) -> bool:
    """Whether a question asks for one relation of one named thing."""
    masked = mask(question)
    asked = [term for term in content_terms(masked.text) if not term.isdigit()]
    return len(decompose(question)) == 1 and len(masked.names) == 1 and len(asked) <= ATOMIC


def draw_roadmap(prompt: Prompt) -> dict[str, Any]:
    """The sub-questions of the question."""
    return {"roadmap": decompose(prompt.inputs.get("question", ""))}
