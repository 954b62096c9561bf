"""The Adder: goes on with the chain of the selected evidence."""

from __future__ import annotations

from typing import Any

from ....signatures import AddEvidence, CompleteEvidence
from ..chain import read_chain
from ..engine import skill
from ..gaps import missing
from ..prompt import Prompt


@skill(AddEvidence, CompleteEvidence)
def add_evidence(prompt: Prompt) -> dict[str, Any]:
    """Add the pages that the chain needs beside the selected ones, as long as going on is likely; tell what is open."""
    chain, selected = read_chain(prompt)
    added = chain.extend(selected)
    addition = {"add": [line.id for line in chain.lines(added, selected + added)]}
    if "required" not in prompt.outputs:
        return addition
    gaps = missing(prompt.inputs.get("question", ""), prompt.listed("sub_questions"), selected + added)
    return {**addition, "required": [gap.question for gap in gaps if gap.is_ready]}
