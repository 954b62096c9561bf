"""How far the sub-goals of a question are reached by what was read: C-3PO's decision maker and IRCoT's reasoner ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...data.references import references, replace_references
from ...data.text import title_key
from .question import mask
from .reading import Page
from .resolve import NONE, Answer, resolve


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
        referred = [number for number in references(text) if number <= len(sub_questions)]
        if all(number in reached for number in referred):
            question = replace_references(text, reached.get)
            answer = answers[n - 1] if answers else NONE
            if answer.text and answer.score >= least and _is_told(question, answer):
                reached[n] = answer.text
            yield SubGoal(question, reached.get(n, ""))


def _is_told(question: str, answer: Answer) -> bool:
    """Whether the answer stands on the page of something that the question names: its probability only compares the
    spans of the pages at hand, which may all be about something else.

    `gaps.is_told` is content with less, with any page that tells about what is named. But a sub-goal is stated and gone
    on from, so that a wrong one leads astray: by that rule IRCoT searched more, and answered somewhat fewer questions.
    """
    asked = f" {title_key(question)} "
    if not mask(question).names:
        return True
    return answer.page is not None and any(f" {name} " in asked for name in answer.page.names)
