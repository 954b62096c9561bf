"""The Adder: follows the links of the selected evidence one hop further."""

from __future__ import annotations

from typing import Any

from ..chain import Chain
from ..prompt import Prompt
from ..reading import Page, read_pages


def add_evidence(prompt: Prompt) -> dict[str, Any]:
    """Add the pages that the selected ones lead to, as long as each brings something the chain lacks."""
    pages = read_pages(prompt.inputs.get("candidates", ""))
    chain = Chain(prompt.inputs.get("question", ""), prompt.listed("sub_questions"), pages)
    selected = {entry.split("s")[0] for entry in prompt.listed("selected")}
    base = [page for page in pages if page.number in selected]
    rest = [page for page in pages if page.number not in selected]
    added: list[Page] = []
    while rest:
        chosen = base + added
        best = max(rest, key=lambda page: chain.gain(page, chosen, links=True))
        if chain.gain(best, chosen, links=True) < chain.needed(len(chosen)):
            break
        added.append(best)
        rest.remove(best)
    return {"add": [line.id for line in chain.lines(added, base + added)]}
