"""A plan: typed steps, what each needs of the others, and answers in place of its references (PAR-RAG).

    #1 Who directed Vertigo?    #2 Who directed Psycho?    #3 Where was #1 born?

Steps without references to one another are independent: here #1 and #2 make up the first level, #3 the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..data.passages import Evidence
from ..data.references import references, replace_references
from ..signatures.replies import Steps
from .prediction import UNKNOWN

MOST_STEPS = 8  # a longer list is a model that runs away


@dataclass(frozen=True)
class Step:
    """One lookup; ``number`` counts from 1."""

    number: int
    question: str
    thought: str = ""

    @property
    def needs(self) -> tuple[int, ...]:
        """The earlier steps whose answers it refers to; a reference to itself or forward is none."""
        return tuple(number for number in references(self.question) if 0 < number < self.number)


@dataclass(frozen=True)
class Claim:
    """An answer to a question as it was asked, and what it rests on."""

    question: str
    answer: str
    cited: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Steps in the order of the planner, numbered from 1."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, question: str, steps: Steps | None = None) -> tuple[Plan, tuple[str, ...]]:
        """The plan that a planner's steps make, and the questions beyond the most that a plan has.

        Steps without a question do not count; where there is no step, the question itself is the only one.
        """
        asked = [(_fold(step["question"]), _fold(step["thought"])) for step in steps or [] if step["question"].strip()]
        kept = asked[:MOST_STEPS] or [(question, "")]
        beyond = tuple(text for text, _ in asked[MOST_STEPS:])
        return cls(tuple(Step(number, *step) for number, step in enumerate(kept, 1))), beyond

    def levels(self) -> list[list[Step]]:
        """The steps in the order in which they can be taken: those of one level side by side."""
        depth: dict[int, int] = {}
        levels: dict[int, list[Step]] = {}
        for step in self.steps:
            depth[step.number] = 1 + max((depth[number] for number in step.needs), default=0)
            levels.setdefault(depth[step.number], []).append(step)
        return [levels[n] for n in sorted(levels)]


def bind(question: str, claims: Mapping[int, Claim]) -> str:
    """A question with answers in place of its references; an answer that is not known is described by its question."""

    def answer(number: int) -> str | None:
        claim = claims.get(number)
        if claim is None:
            return None
        return claim.answer if claim.answer != UNKNOWN else f"({claim.question.rstrip('?. ')})"

    return replace_references(question, answer)


def trajectory(claims: Mapping[int, Claim]) -> list[str]:
    """What was asked and answered, as agents read it, in the order of the steps."""
    return [f"#{number} {claim.question} -> {claim.answer}" for number, claim in sorted(claims.items())]


def demonstrated(sub_questions: Iterable[str]) -> list[dict[str, str]]:
    """The plan that a solved question's sub-questions make, as the planner would write it."""
    steps = [Step(number, question) for number, question in enumerate(sub_questions, 1)]
    return [{"thought": _dependence(step.needs), "question": step.question} for step in steps]


def _dependence(needs: tuple[int, ...]) -> str:
    if not needs:
        return "Needs nothing before it."
    *others, last = map(str, needs)
    return (
        f"Needs the answers of steps {', '.join(others)} and {last}." if others else f"Needs the answer of step {last}."
    )


def _fold(text: str) -> str:
    return " ".join(text.split())
