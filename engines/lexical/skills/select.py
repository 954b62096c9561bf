"""The Selector: keeps what the question names or needs, and what the chain so far still supports."""

from __future__ import annotations

from typing import Any

from ..chain import read_chain
from ..prompt import Prompt


def select_evidence(prompt: Prompt) -> dict[str, Any]:
    """Start anew: keep the pages with the largest direct gain, and those selected so far while links support them."""
    chain, selected = read_chain(prompt)
    kept = chain.extend([], follow=selected)
    return {"keep": [line.id for line in chain.lines(kept, kept)]}
