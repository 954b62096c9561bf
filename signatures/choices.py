"""Field types of outputs that are one of a few words: a route, an action, a verdict.

In a prompt each shows as the words that it may be. Read are also other words that papers and models use for the same
("[No Retrieval]", "[LLM]", "**Attributable.**"), with marks, the field's name or a remark around them. Anything else
stays an error.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pydantic_core import CoreSchema, core_schema

from .replies import unwrap


class _Choice(str):
    """One of a few words.

    Attributes:
        field: What may stand before the word in a reply ("Route: plan").
        words: Each word with a pattern of the ways to write it.
    """

    field: ClassVar[str]
    words: ClassVar[dict[str, str]]

    def __init_subclass__(cls) -> None:
        cls.__name__ = f"Literal[{', '.join(map(repr, cls.words))}]"  # what an adapter writes into the prompt

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_before_validator_function(cls.read, core_schema.literal_schema(list(cls.words)))

    @classmethod
    def read(cls, reply: Any) -> str:
        """The word that a reply opens with, whatever follows it.

        Raises:
            ValueError: it opens with none of them, or with one that is part of a sentence.
        """
        reply = unwrap(reply)
        if isinstance(reply, list | tuple) and len(reply) == 1:
            reply = reply[0]  # "[Retrieval] population of Paris", as dspy reads it
        if isinstance(reply, str):
            text = re.sub(rf"^\W*(?:{cls.field}\W+)?", "", reply.strip().lower())
            # A mark or the end follows the word; prose that opens with it ("Search engines are ...") is no choice.
            for word, written in cls.words.items():
                if re.match(rf"(?:{written})(?:\s*[\W_]*$|\s*[^\w\s]|\s*\n)", text):
                    return word
        raise ValueError(f"not one of {', '.join(cls.words)}: {str(reply)[:80]!r}")


class Route(_Choice):
    """ "direct", "single" or "plan", also given as C-3PO writes them: "[Retrieval] population of Paris" is "single"."""

    field = "route"
    words: ClassVar[dict[str, str]] = {
        "direct": r"direct(?:ly|[ _-]answer\w*)?|no[ _-]?retriev(?:al|e)|no[ _-]?search|none",
        "single": r"single(?:[ _-]\w+)?|retriev(?:al|e)|search",
        "plan": r"plan(?:ning)?|multi[ _-]?\w+",
    }


class Action(_Choice):
    """ "retrieve" or "answer", also given as C-3PO writes them: "[LLM]" is "answer"."""

    field = "action"
    words: ClassVar[dict[str, str]] = {
        "retrieve": r"(?:retriev(?:al|e)|search)(?:[ _-](?:again|(?:once[ _-])?more))?",
        "answer": r"(?:final[ _-]?)?answer(?:[ _-]now)?|llm|generate|stop|finish(?:ed)?|done",
    }


class Attribution(_Choice):
    """One of AttrScore's classes: "attributable", "extrapolatory" or "contradictory"."""

    field = "attribution"
    words: ClassVar[dict[str, str]] = {
        "attributable": r"attributable|attributed|supported",
        "extrapolatory": r"extrapolat(?:ory|ed|ion)|partially[ _-]attributable|unsupported|not enough information",
        "contradictory": r"contradict(?:ory|ed|s|ion)|refuted",
    }


class Revision(_Choice):
    """What PAR-RAG's reviser came to: "revised" or "unconfident"."""

    field = "verdict"
    words: ClassVar[dict[str, str]] = {
        "revised": r"revised?(?:[ _-]answer)?|confirmed|confident|supported",
        "unconfident": r"unconfident|not confident|unchanged|kept|keep(?:[ _-]the)?[ _-]draft|(?:un|not[ _-])revised",
    }
