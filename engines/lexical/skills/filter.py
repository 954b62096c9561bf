"""C-3PO's filter: keeps the passages that form the chain of evidence."""

from __future__ import annotations

from typing import Any

from ..chain import Chain
from ..decompose import decompose
from ..prompt import Prompt
from ..reading import read_pages


def filter_passages(prompt: Prompt) -> dict[str, Any]:
    """Keep the chain that the question, and the objective of the step if there is one, pick out of the passages."""
    question, objective = prompt.inputs.get("question", ""), prompt.inputs.get("objective", "")
    pages = read_pages(prompt.inputs.get("passages", ""))
    asked = objective.partition(": ")[2] or objective or question
    chain = Chain(asked, tuple(decompose(asked)), pages)
    kept = chain.extend([], follow=pages)
    numbers = [page.number for page in kept]
    thoughts = "\n".join(
        f"{page.number}: {'belongs to' if page.number in numbers else 'adds nothing to'} the chain." for page in pages
    )
    return {"thoughts": thoughts, "useful": numbers}
