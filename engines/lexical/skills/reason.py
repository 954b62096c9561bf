"""IRCoT's reasoner: states the answer of one sub-question after the other."""

from __future__ import annotations

import re
from typing import Any

from ....data.text import title_key
from ....signatures import ReasonOn
from ..decompose import decompose
from ..engine import skill
from ..prompt import Prompt
from ..question import mask
from ..reading import read_pages
from ..subgoals import SubGoal, sub_goals
from .answer import answer_question

SAID = 0.1  # least probability of an answer that is stated; what turns out wrong is stated again, with the right answer


@skill(ReasonOn)
def reason_on(prompt: Prompt) -> dict[str, Any]:
    """Say of the first sub-question of which the chain does not tell yet what its answer is, or that it is missing."""
    thoughts = {title_key(thought) for thought in prompt.listed("thoughts")}
    pages = read_pages(prompt.inputs.get("passages", ""))
    for goal in sub_goals(decompose(prompt.inputs.get("question", "")), pages, SAID):
        sentence = _sentence(goal)
        if title_key(sentence) not in thoughts:
            return {"next_thought": sentence}
    return {"next_thought": f"So the answer is: {answer_question(prompt)['answer']}."}


_NAMED = re.compile(r"(?i:who|what) (is|was|are|were) (.*)")
_PLACED = re.compile(
    r"(?i:where|when|(?:in|on) which [a-z, ]+?) (is|was|are|were|did|does|has|have) (@\d+(?:[!?.]|'s [a-z]+)?)(.*)"
)


def _sentence(goal: SubGoal) -> str:
    """A sentence that names all that it is about, so that it can be searched for."""
    question = goal.question.rstrip("? ")
    if not goal.answer:
        return f"It is missing here: {question}."
    masked = mask(question)
    if match := _NAMED.fullmatch(masked.text):
        said = f"{match[2]} {match[1]} "
    elif match := _PLACED.fullmatch(masked.text):
        said = f"{match[2]} {match[1]}{match[3]} in "
    else:
        said = f"{masked.text}: "
    said = masked.unmask(said) + goal.answer.rstrip(".") + "."
    return said[:1].upper() + said[1:]
