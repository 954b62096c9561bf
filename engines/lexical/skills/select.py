"""The Selector: keeps the pages that form the chain, and of those the lines that carry it."""

from __future__ import annotations

from typing import Any

from ....signatures import SelectEvidence
from ..chain import read_chain
from ..engine import skill
from ..prompt import Prompt


@skill(SelectEvidence)
def select_evidence(prompt: Prompt) -> dict[str, Any]:
    """Start anew: what was selected so far has to compete with all candidates."""
    chain, _ = read_chain(prompt)
    kept = chain.extend([])
    return {"keep": [line.id for line in chain.lines(kept, kept)]}
