"""The Adder: follows the links of the selected evidence one hop further."""

from __future__ import annotations

from typing import Any

from ..chain import read_chain
from ..prompt import Prompt


def add_evidence(prompt: Prompt) -> dict[str, Any]:
    """Add the pages that the selected ones lead to, as long as each brings something the chain lacks."""
    chain, selected = read_chain(prompt)
    added = chain.extend(selected, follow=chain.pages)
    return {"add": [line.id for line in chain.lines(added, selected + added)], "required": []}
