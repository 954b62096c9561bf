"""The verifier: reads the evidence once more and compares."""

from __future__ import annotations

from typing import Any

from ..prompt import Prompt
from ..resolve import same
from .answer import UNKNOWN, answer_question


def verify_answer(prompt: Prompt) -> dict[str, Any]:
    """Whether the proposed answer is the one that the evidence gives, and that one."""
    found = answer_question(prompt)
    proposed = prompt.inputs.get("proposed_answer", "")
    agrees = same(proposed, found["answer"])
    verdict = "attributable" if agrees else "extrapolatory"
    accuracy = found["confidence"] if agrees else 0.0
    return {
        "attribution": verdict,
        "accuracy": accuracy,
        "correction": found["answer"] if found["answer"] != UNKNOWN else proposed,
    }
