"""C-3PO's filter: of a whole question it keeps the chain of evidence, of one sub-goal the passage that reaches it."""

from __future__ import annotations

from typing import Any

from ....data.text import title_key
from ....signatures import FilterForObjective, FilterPassages
from ..chain import Chain
from ..decompose import decompose
from ..engine import skill
from ..prompt import Prompt
from ..reading import Page, read_pages


@skill(FilterPassages, FilterForObjective)
def filter_passages(prompt: Prompt) -> dict[str, Any]:
    """The passages to keep, the most useful first, with a word on each."""
    question, objective = prompt.inputs.get("question", ""), prompt.inputs.get("objective", "")
    pages = read_pages(prompt.inputs.get("passages", ""))
    asked = objective.partition(": ")[2] or objective or question
    steps = decompose(asked)
    chain = Chain(asked, tuple(steps), pages)
    if asked != question and len(steps) == 1:
        kept = [page for page in chain.extend([])[:1] if _is_named(page, asked)]
    else:
        kept = chain.extend([])
    numbers = [page.number for page in kept]
    thoughts = [f"{page.number}: {'is needed' if page.number in numbers else 'adds nothing'}." for page in pages]
    return {"thoughts": "\n".join(thoughts), "useful": numbers}


def _is_named(page: Page, goal: str) -> bool:
    """Whether a sub-goal names what a page is about."""
    asked = f" {title_key(goal)} "
    return any(f" {name} " in asked for name in page.names)
