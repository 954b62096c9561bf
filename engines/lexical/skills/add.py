"""The Adder: goes on with the chain of the selected evidence."""

from __future__ import annotations

from typing import Any

from ..chain import read_chain
from ..prompt import Prompt


def add_evidence(prompt: Prompt) -> dict[str, Any]:
    """Add the pages that the chain needs beside the selected ones, as long as going on is likelier than not."""
    chain, selected = read_chain(prompt)
    added = chain.extend(selected)
    return {"add": [line.id for line in chain.lines(added, selected + added)]}
