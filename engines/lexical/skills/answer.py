"""The answering agents: the best reading of the question, with its probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....data.text import title_key
from ....signatures import (
    AnswerFromCollection,
    AnswerFromEvidence,
    AnswerFromKnowledge,
    AnswerFromPassages,
    AnswerWithCitations,
)
from ..decompose import decompose
from ..engine import skill
from ..prompt import Prompt
from ..reader import Reading, read
from ..reading import read_pages

UNKNOWN = "unknown"
SURE = 0.02  # least probability of an answer that is given at all


@skill(AnswerFromPassages, AnswerFromEvidence, AnswerFromKnowledge, AnswerFromCollection, AnswerWithCitations)
def answer_question(prompt: Prompt) -> dict[str, Any]:
    """Answer from whatever passages the prompt holds; where they tell nothing of what is asked, nothing is known."""
    sub_questions, readings = read_prompt(prompt)
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


def read_prompt(prompt: Prompt) -> tuple[list[str], list[Reading]]:
    """The sub-questions of a prompt, and the candidate answers in its passages.

    Where selected evidence stands beside other passages, it is read alone and together with them: alone it distracts
    less, together it lacks less. An answer's probability is the mean of both, the second counting twice.
    """
    question = prompt.inputs.get("question", "")
    sub_questions = prompt.listed("sub_questions") or decompose(question)
    pages = read_pages(prompt.inputs.get("evidence") or prompt.inputs.get("passages") or "")
    others = read_pages(prompt.inputs.get("other_passages", ""))
    alone = read(question, sub_questions, pages)
    if not others:
        return sub_questions, alone
    return sub_questions, _joined(alone, read(question, sub_questions, (*pages, *others)))


def _joined(alone: Sequence[Reading], together: Sequence[Reading]) -> list[Reading]:
    found: dict[str, Reading] = {}
    for readings, share in ((together, 2 / 3), (alone, 1 / 3)):
        for reading in readings:
            key = title_key(reading.text)
            known = found.get(key, replace(reading, probability=0.0))
            found[key] = replace(known, probability=known.probability + share * reading.probability)
    return sorted(found.values(), key=lambda reading: -reading.probability)


def cited(best: Reading) -> list[str]:
    """The ids of the lines that the steps and the answer were read from."""
    lines = [*(step.line for step in best.steps), best.line]
    return list(dict.fromkeys(line.id for line in lines if line))


def _stated(best: Reading) -> str:
    return f"So it is {best.text}{f' [{best.line.id}]' if best.line else ''}."
