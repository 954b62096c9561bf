"""What the evidence does not tell yet: the sub-questions that are open, in words that can be searched for.

A reader finds some answer in any pages: its probability compares the spans at hand, which may all be about something
else. So a sub-question counts as answered where the pages tell about what it names: by a page of its own, or by a line
that has the name and half of what is asked.

`subgoals` asks for more. Here that would open sub-questions again that are answered: KAIR and polyhop searched more for
it, and found as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...data.references import references, replace_references
from ...data.text import bare_title, title_key
from .features import about
from .question import mask
from .reading import Page
from .relations import relation_terms
from .resolve import NONE, Answer, resolve

OWN_PAGE = 0.5  # least certainty that a page is about the bearer of a name
RELATED = 0.5  # share of the words of what is asked that a line beside the name has


class Gap(NamedTuple):
    """A sub-question without an answer.

    Attributes:
        number: Its place in the list, from 0.
        question: Its text with the answers to earlier ones put in place of "#n": "Where was Andrei Tarkovsky born?".
        is_ready: Whether it can be searched for: it refers to no other gap. Where it does, "#n" still stands in it.
    """

    number: int
    question: str
    is_ready: bool


def missing(question: str, sub_questions: Sequence[str], pages: Sequence[Page]) -> list[Gap]:
    """The sub-questions that some evidence does not answer, in order; the question itself counts if there are none.

    Args:
        question: The question.
        sub_questions: In order; "#n" stands for the answer to sub-question n.
        pages: The evidence; see `read_pages`.
    """
    steps = tuple(sub_questions) or (question,)
    answers: list[Answer] = []
    gaps = []
    for number, (text, answer) in enumerate(zip(steps, resolve(steps, pages), strict=True)):
        bound, given = put_in(text, answers), [answers[n - 1].text for n in references(text) if 0 < n <= number]
        told = answer.text and not references(bound) and is_told(bound, given, pages)
        answers.append(answer if told else NONE)
        if not told:
            gaps.append(Gap(number, bound, not references(bound)))
    return gaps


def is_told(question: str, given: Iterable[str], pages: Sequence[Page]) -> bool:
    """Whether some pages tell about what a question names, or about one of the answers that were put into it."""
    names = [name.strip('"“” ') for name in mask(question).names]
    keys = [(title_key(bare_title(name)), title_key(name)) for name in (*names, *given) if title_key(name)]
    if any(about(page, bare, whole) >= OWN_PAGE for page in pages for bare, whole in keys):
        return True
    asked = relation_terms(mask(question).text) - relation_terms(" ".join((*names, *given)))
    lines = (line for page in pages for line in page.lines if any(f" {bare} " in line.key for bare, _ in keys))
    return not keys or any(len(asked & relation_terms(line.text)) >= RELATED * len(asked) for line in lines)


def put_in(text: str, answers: Sequence[Answer]) -> str:
    """A sub-question with the known answers in place of the references to them."""
    known = {number: answer.text for number, answer in enumerate(answers, 1) if answer.text}
    return replace_references(text, known.get)
