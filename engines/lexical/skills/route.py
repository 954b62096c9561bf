"""C-3PO's router and its roadmap: as many searches as the question has parts."""

from __future__ import annotations

import re
from typing import Any

from ....data.text import content_terms
from ....signatures import DrawRoadmap, RouteQuestion
from ..decompose import decompose
from ..engine import skill
from ..prompt import Prompt
from ..question import mask
from ..vocabulary import WH
from .known import arithmetic, small_talk

ATOMIC = 5  # words that carry a topic, beside its name, that a question about one fact has at most

_CLAUSE = re.compile(rf"\b(?:that|{WH})\b", re.IGNORECASE)
_KIN = re.compile(r"\b(?:grand|step|half-|great-)\w+|in-law\b|\b(?:nephew|niece|uncle|aunt|cousin)\b", re.IGNORECASE)


@skill(RouteQuestion)
def route_question(prompt: Prompt) -> dict[str, Any]:
    """No search for small talk and sums, one for one relation of one name, a plan for everything else."""
    question = prompt.inputs.get("question", "")
    if small_talk(question) or arithmetic(question) is not None:
        return {"route": "direct", "query": ""}
    if is_atomic(question):
        return {"route": "single", "query": question}
    return {"route": "plan", "query": ""}


def is_atomic(question: str) -> bool:
    """Whether a question asks for one relation of one thing, be it named in capitals or not.

    It has no part that is a question of its own, no second clause, and asks for no relation that is made of two, as
    "grandfather" is.
    """
    masked = mask(question)
    asked = [term for term in content_terms(masked.text) if not term.isdigit()]  # the "0" of "@0" is no word
    short = len(decompose(question)) == 1 and len(masked.names) <= 1 and len(asked) <= ATOMIC
    return short and len(_CLAUSE.findall(masked.text)) <= 1 and not _KIN.search(masked.text)


@skill(DrawRoadmap)
def draw_roadmap(prompt: Prompt) -> dict[str, Any]:
    """The sub-questions of the question."""
    return {"roadmap": decompose(prompt.inputs.get("question", ""))}
