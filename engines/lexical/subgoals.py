"""How far the sub-goals of a question are reached by what was read: what C-3PO's decision maker and IRCoT's reasoner share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .reading import Page
from .resolve import Answer, resolve

SURE = 1.2  # least score of an answer that a search is spared for

_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True)
class SubGoal:
    """A sub-question with the earlier answers in place of its references, and its own answer; None if there is none."""

    question: str
    answer: Answer | None


def sub_goals(sub_questions: Sequence[str], pages: Sequence[Page]) -> Iterator[SubGoal]:
    """The sub-goals in order, without those that build on one that is not reached."""
    answers = resolve(sub_questions, pages) if pages else []
    reached: dict[int, str] = {}
    for n, text in enumerate(sub_questions, 1):
        referred = [int(number) for number in _REFERENCE.findall(text) if int(number) <= len(sub_questions)]
        if all(number in reached for number in referred):
            question = _REFERENCE.sub(lambda match: reached.get(int(match[1]), ""), text)
            answer = answers[n - 1] if answers and answers[n - 1].text and answers[n - 1].score >= SURE else None
            if answer:
                reached[n] = answer.text
            yield SubGoal(question, answer)
