"""The answering agents: the best reading of the question, with its probability."""

from __future__ import annotations

from typing import Any

from ..decompose import decompose
from ..prompt import Prompt
from ..reader import Reading, read
from ..reading import read_pages

UNKNOWN = "unknown"
SURE = 0.02  # least probability of an answer that is given at all


def answer_question(prompt: Prompt) -> dict[str, Any]:
    """Answer from whatever passages the prompt holds; where they tell nothing of what is asked, nothing is known."""
    question = prompt.inputs.get("question", "")
    pages = read_pages(prompt.inputs.get("evidence") or prompt.inputs.get("passages") or "")
    sub_questions = prompt.listed("sub_questions") or decompose(question)
    readings = read(question, sub_questions, pages)
    if not readings:
        return {"reasoning": "Nothing here tells of it.", "answer": UNKNOWN, "citations": [], "confidence": 0.0}
    best = readings[0]
    reasoning = " ".join(
        f"{text} {found.text or UNKNOWN}{f' [{found.line.id}]' if found.line else ''}."
        for text, found in zip(sub_questions, best.steps, strict=True)
    )
    if best.probability < SURE:
        return {"reasoning": reasoning, "answer": UNKNOWN, "citations": [], "confidence": 0.0}
    return {
        "reasoning": f"{reasoning} {_stated(best)}",
        "answer": best.text,
        "citations": cited(best),
        "confidence": round(best.probability, 2),
    }


def cited(best: Reading) -> list[str]:
    """The ids of the lines that the steps and the answer were read from."""
    lines = [*(step.line for step in best.steps), best.line]
    return list(dict.fromkeys(line.id for line in lines if line))


def _stated(best: Reading) -> str:
    return f"So it is {best.text}{f' [{best.line.id}]' if best.line else ''}."
