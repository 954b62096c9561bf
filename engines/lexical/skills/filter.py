"""C-3PO's filter: of a whole question it keeps the chain of evidence, of one sub-goal the passage that reaches it."""

from __future__ import annotations

from typing import Any

from ..chain import Chain
from ..decompose import decompose
from ..prompt import Prompt
from ..reading import read_pages


def filter_passages(prompt: Prompt) -> dict[str, Any]:
    """The passages to keep, the most useful first, with a word on each."""
    question, objective = prompt.inputs.get("question", ""), prompt.inputs.get("objective", "")
    pages = read_pages(prompt.inputs.get("passages", ""))
    asked = objective.partition(": ")[2] or objective or question
    steps = decompose(asked)
    chain = Chain(asked, tuple(steps), pages)
    if asked != question and len(steps) == 1:
        kept = chain.extend([])[:1]
    else:
        kept = chain.extend([])
    numbers = [page.number for page in kept]
    thoughts = [f"{page.number}: {'is needed' if page.number in numbers else 'adds nothing'}." for page in pages]
    return {"thoughts": "\n".join(thoughts), "useful": numbers}
