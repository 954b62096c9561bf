"""Field types of outputs that are one of a few words: a route, an action, a verdict.

In a prompt each shows as the words that it may be. Read are also other words that papers and models use for the same
("[No Retrieval]", "[LLM]", "**Attributable.**"), with marks, the field's name or a remark around them. Anything else
stays an error.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import CoreSchema, core_schema

from .replies import unwrap

_ROUTES = {
    "direct": r"direct(?:ly|[ _-]answer\w*)?|no[ _-]?retriev(?:al|e)|no[ _-]?search|none",
    "single": r"single(?:[ _-]\w+)?|retriev(?:al|e)|search",
    "plan": r"plan(?:ning)?|multi[ _-]?\w+",
}
_ACTIONS = {
    "retrieve": r"(?:retriev(?:al|e)|search)(?:[ _-](?:again|(?:once[ _-])?more))?",
    "answer": r"(?:final[ _-]?)?answer(?:[ _-]now)?|llm|generate|stop|finish(?:ed)?|done",
}
_ATTRIBUTIONS = {
    "attributable": r"attributable|attributed|supported",
    "extrapolatory": r"extrapolat(?:ory|ed|ion)|partially[ _-]attributable|unsupported|not enough information",
    "contradictory": r"contradict(?:ory|ed|s|ion)|refuted",
}
_REVISIONS = {
    "revised": r"revised?(?:[ _-]answer)?|confirmed|confident|supported",
    "unconfident": r"unconfident|not confident|unchanged|kept|keep(?:[ _-]the)?[ _-]draft|(?:un|not[ _-])revised",
}


class Route(str):
    """ "direct", "single" or "plan", also given as C-3PO writes them: "[Retrieval] population of Paris" is "single"."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _one_of(_ROUTES, "route")


class Action(str):
    """ "retrieve" or "answer", also given as C-3PO writes them: "[LLM]" is "answer"."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _one_of(_ACTIONS, "action")


class Attribution(str):
    """One of AttrScore's classes: "attributable", "extrapolatory" or "contradictory"."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _one_of(_ATTRIBUTIONS, "attribution")


class Revision(str):
    """What PAR-RAG's reviser came to: "revised" or "unconfident"."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _one_of(_REVISIONS, "verdict")


def _one_of(words: dict[str, str], field: str) -> CoreSchema:
    return core_schema.no_info_before_validator_function(
        lambda reply: read_choice(reply, words, field), core_schema.literal_schema(list(words))
    )


def read_choice(reply: Any, words: dict[str, str], field: str) -> str:
    """The word that a reply opens with, whatever follows it.

    Args:
        words: Each word with a pattern of the ways to write it.
        field: What may stand before it ("Route: plan").

    Raises:
        ValueError: it opens with none of them, or with one that is part of a sentence.
    """
    reply = unwrap(reply)
    if isinstance(reply, list | tuple) and len(reply) == 1:
        reply = reply[0]  # "[Retrieval] population of Paris", as dspy reads it
    if isinstance(reply, str):
        text = re.sub(rf"^\W*(?:{field}\W+)?", "", reply.strip().lower())
        # A mark or the end follows the word; prose that opens with it ("Search engines are ...") is no choice.
        for word, written in words.items():
            if re.match(rf"(?:{written})(?:\s*[\W_]*$|\s*[^\w\s]|\s*\n)", text):
                return word
    raise ValueError(f"not one of {', '.join(words)}: {str(reply)[:80]!r}")


Route.__name__ = "Literal['direct', 'single', 'plan']"  # what an adapter writes into the prompt
Action.__name__ = "Literal['retrieve', 'answer']"
Attribution.__name__ = "Literal['attributable', 'extrapolatory', 'contradictory']"
Revision.__name__ = "Literal['revised', 'unconfident']"
