"""The Question Analyzer: decomposes by clause."""

from __future__ import annotations

from typing import Any

from ..decompose import decompose
from ..prompt import Prompt


def analyze_question(prompt: Prompt) -> dict[str, Any]:
    """The ordered sub-questions of the question."""
    return {"sub_questions": decompose(prompt.inputs.get("question", ""))}
