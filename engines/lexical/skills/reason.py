"""IRCoT's reasoner: states the answer of one sub-question after the other."""

from __future__ import annotations

import re
from typing import Any

from ....data.text import title_key
from ..decompose import decompose
from ..prompt import Prompt
from ..question import mask
from ..reading import read_pages
from ..subgoals import SubGoal, sub_goals
from .answer import answer_question


def reason_on(prompt: Prompt) -> dict[str, Any]:
    """Say of the first sub-question of which the chain does not tell yet what its answer is, or that it is missing."""
    thoughts = {title_key(thought) for thought in prompt.listed("thoughts")}
    pages = read_pages(prompt.inputs.get("passages", ""))
    for goal in sub_goals(decompose(prompt.inputs.get("question", "")), pages):
        sentence = _sentence(goal)
        if title_key(sentence) not in thoughts:
            return {"next_thought": sentence}
    return {"next_thought": f"So the answer is: {answer_question(prompt)['answer']}."}


_NAMED = re.compile(r"(?i:who|what) (?:is|was|are|were) (.*)")
_INVERTED = re.compile(r"(?i:where|when|in which [a-z]+) (is|was|are|were|did|does|has|have) (@\d+(?:'s [a-z]+)?)(.*)")


def _sentence(goal: SubGoal) -> str:
    """A sentence that names everything that it is about, so that it can be searched for."""
    question = goal.question.rstrip("? ")
    masked = mask(question)
    said = question
    if match := _NAMED.fullmatch(masked.text):
        said = masked.unmask(match[1])
    elif match := _INVERTED.fullmatch(masked.text):
        said = masked.unmask(f"{match[2]} {match[1]}{match[3]}")
    said = said[:1].upper() + said[1:]
    if goal.answer is None:
        return f"It is missing here: {said}."
    return f"{said}: {goal.answer.text}."
