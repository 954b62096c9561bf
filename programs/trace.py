"""What a program did, as typed steps: asked, searched, kept, added, answered, and why it stopped.

One evaluator, one optimizer and one viewer serve all programs because all record the same kinds of step.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from ..data.passages import Fact, Reason


@dataclass(frozen=True)
class Decomposed:
    """The analyzer split the question. ``invalid`` are replies of a wrong kind that were dropped."""

    sub_questions: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Searched:
    """A query and what it found, best first: (passage id, title, score).

    Attributes:
        reasons: Why each passage was chosen, from a retriever that can tell; empty from others.
    """

    query: str
    found: tuple[tuple[str, str, float], ...]
    reasons: tuple[Reason, ...] = ()
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Selected:
    """The Selector's choice in one round. ``invalid`` are ids that address nothing, or address it twice."""

    round: int
    kept: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Added:
    """The Adder's additions in one round."""

    round: int
    added: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Answered:
    """The answer with the words that led to it."""

    answer: str
    reasoning: str
    confidence: float
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Stopped:
    """Why the loop ended: "stable" (a round changed nothing), "rounds" (the budget), "nothing found", ..."""

    reason: str
    lm_calls: ClassVar[int] = 0


Step = Decomposed | Searched | Selected | Added | Answered | Stopped


@dataclass
class Trace:
    """The steps of one run, in order."""

    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        self.steps.append(step)

    @property
    def lm_calls(self) -> int:
        """Calls to language models; replies that came from a cache count too."""
        return sum(step.lm_calls for step in self.steps)

    @property
    def lm_calls_critical_path(self) -> int:
        """Calls that had to wait for one another: all of them, as long as no program asks several agents at once."""
        return self.lm_calls

    @property
    def searches(self) -> int:
        return sum(isinstance(step, Searched) for step in self.steps)

    def to_records(self) -> list[dict[str, Any]]:
        """The steps as JSON objects, each with its kind under ``step``."""
        return [{"step": type(step).__name__.lower(), **asdict(step)} for step in self.steps]
