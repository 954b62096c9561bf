"""The verifier: reads the evidence once more and compares."""

from __future__ import annotations

from typing import Any

from ....data.text import title_key
from ....signatures import VerifyAnswer
from ..engine import skill
from ..prompt import Prompt
from .answer import UNKNOWN, read_prompt


@skill(VerifyAnswer)
def verify_answer(prompt: Prompt) -> dict[str, Any]:
    """How likely the proposed answer is among those that the evidence gives, and the likeliest of them."""
    proposed = prompt.inputs.get("proposed_answer", "")
    _, readings = read_prompt(prompt)
    if not readings:
        return {"attribution": "extrapolatory", "accuracy": 0.0, "correction": UNKNOWN}
    best, key = readings[0], title_key(proposed)
    accuracy = sum(reading.probability for reading in readings if title_key(reading.text) == key)
    verdict = "attributable" if title_key(best.text) == key else "contradictory" if accuracy else "extrapolatory"
    return {"attribution": verdict, "accuracy": round(accuracy, 2), "correction": best.text}
