"""What the evidence does not tell yet: the sub-questions that are open, in words that can be searched for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .reading import Page
from .resolve import Answer, resolve

ANSWERED = 1.5  # least score of an answer that closes a sub-question: tells best whether its page is there

_REFERENCE = re.compile(r"#(\d+)")


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
    answers = [answer if answer.score >= ANSWERED else Answer("", 0.0) for answer in resolve(steps, pages)]
    texts = [put_in(text, answers) for text in steps]
    return [
        Gap(number, text, not _REFERENCE.search(text))
        for number, (text, answer) in enumerate(zip(texts, answers, strict=True))
        if not answer.text
    ]


def put_in(text: str, answers: Sequence[Answer]) -> str:
    """A sub-question with the known answers in place of the references to them."""

    def answer(match: re.Match[str]) -> str:
        number = int(match[1])
        return (answers[number - 1].text if 0 < number <= len(answers) else "") or match[0]

    return _REFERENCE.sub(answer, text)
