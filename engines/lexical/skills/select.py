"""The Selector: keeps what the question names or needs, and what the chain so far still supports."""

from __future__ import annotations

from typing import Any

from ..chain import Chain
from ..prompt import Prompt
from ..reading import Page, read_pages


def select_evidence(prompt: Prompt) -> dict[str, Any]:
    """Greedily keep the pages with the largest direct gain, and selected pages while the chain supports them."""
    pages = read_pages(prompt.inputs.get("candidates", ""))
    chain = Chain(prompt.inputs.get("question", ""), prompt.listed("sub_questions"), pages)
    selected = {entry.split("s")[0] for entry in prompt.listed("selected")}
    kept: list[Page] = []
    rest = list(pages)
    while rest:
        best = max(rest, key=lambda page: chain.gain(page, kept, links=page.number in selected))
        if kept and chain.gain(best, kept, links=best.number in selected) < chain.needed(len(kept)):
            break
        kept.append(best)
        rest.remove(best)
    return {"keep": [line.id for line in chain.lines(kept, kept)]}
