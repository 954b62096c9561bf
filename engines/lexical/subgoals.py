"""How far the sub-goals of a question are reached by what was read: C-3PO's decision maker and IRCoT's reasoner ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .reading import Page
from .resolve import NONE, resolve

_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True)
class SubGoal:
    """A sub-question with the earlier answers in place of its references, and its own answer; empty if it has none."""

    question: str
    answer: str


def sub_goals(sub_questions: Sequence[str], pages: Sequence[Page], least: float) -> Iterator[SubGoal]:
    """The sub-goals in order, without those that build on one that is not reached: no answer scores ``least``."""
    answers = resolve(sub_questions, pages) if pages else []
    reached: dict[int, str] = {}
    for n, text in enumerate(sub_questions, 1):
        referred = [int(number) for number in _REFERENCE.findall(text) if int(number) <= len(sub_questions)]
        if all(number in reached for number in referred):
            question = _REFERENCE.sub(lambda match: reached.get(int(match[1]), ""), text)
            answer = answers[n - 1] if answers else NONE
            if answer.text and answer.score >= least:
                reached[n] = answer.text
            yield SubGoal(question, reached.get(n, ""))
