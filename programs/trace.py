"""What a program did, as typed steps: asked, searched, kept, added, judged, answered, and why it stopped.

One evaluator, one optimizer and one viewer serve all programs because all record the same kinds of step. A step is
recorded when it is done; what an agent's reply held that could not be used stands under ``invalid``. Steps that ran
side by side stand in `Parallel`, so that a trace knows both what a run cost and how long it had to wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from ..data.passages import Fact, Reason


@dataclass(frozen=True)
class Estimated:
    """How complex the question looks: the probabilities of 1, 2, 3, 4 hops."""

    probabilities: tuple[float, ...]
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Recalled:
    """The solved questions whose plans the planner is shown."""

    questions: tuple[str, ...]
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Routed:
    """The router chose how to go on: "direct", "single", "plan", ...

    Attributes:
        query: What to search for, if it said so.
    """

    route: str
    query: str = ""
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Decomposed:
    """The analyzer or planner split the question. ``invalid`` are replies of a wrong kind that were dropped.

    Attributes:
        thoughts: The reason for each sub-question, from planners that give one.
        route: How to go on, from planners that choose it.
    """

    sub_questions: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    route: str = ""
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Searched:
    """A query and what it found, best first: (passage id, title, score).

    Attributes:
        reasons: Why each passage was chosen, from a retriever that can tell; empty from others.
        offset: How many better hits were left out: they had been seen.
    """

    query: str
    found: tuple[tuple[str, str, float], ...]
    reasons: tuple[Reason, ...] = ()
    offset: int = 0
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Selected:
    """The choice of a Selector or filter in one round. ``invalid`` are ids that address nothing, or address it twice,
    or spans that stand in no document.

    Attributes:
        flagged: Those that no known fact supports; what of them is not in ``kept`` was discarded.
    """

    round: int
    kept: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    flagged: tuple[Fact, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Added:
    """The Adder's additions in one round."""

    round: int
    added: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Proposed:
    """Candidate queries with their scores; the first was chosen."""

    queries: tuple[tuple[str, float], ...]
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Learned:
    """What is known and what is still required, after an agent read something."""

    known: tuple[str, ...]
    required: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Required:
    """What the evidence still lacks, said beside another reply; nothing if it is complete."""

    questions: tuple[str, ...]
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Checked:
    """Statements that were held against the documents.

    Attributes:
        irrelevant: Those that are supported and yet of no use.
    """

    supported: tuple[str, ...]
    unsupported: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    irrelevant: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Decided:
    """The decision maker's next action: "retrieve" with a query, or "answer"."""

    action: str
    query: str = ""
    thought: str = ""
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Thought:
    """One new sentence of a chain of thought. ``invalid`` is what else the reply said."""

    text: str
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class StepAnswered:
    """An intermediate answer.

    Attributes:
        number: Of the sub-question, from 1.
        question: As it was asked, with earlier answers in it.
    """

    number: int
    question: str
    answer: str
    cited: tuple[Fact, ...] = ()
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Judged:
    """A judge's verdict on an answer or on the evidence; ``aspect`` is what was judged ("accuracy", ...)."""

    aspect: str
    score: float
    verdict: str = ""
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Weighed:
    """The verdicts joined to one confidence: alpha * accuracy + (1 - alpha) * credibility."""

    alpha: float
    confidence: float
    passed: bool
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Revised:
    """A second look at an answer that did not pass; ``accepted`` if it replaces the old one."""

    answer: str
    reason: str
    accepted: bool
    cited: tuple[Fact, ...] = ()
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Replaced:
    """Another answer, known already, took the place of the one before."""

    answer: str
    reason: str
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Refined:
    """The next question in other words, after an earlier answer changed."""

    number: int
    question: str
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Answered:
    """The answer with the words that led to it. ``invalid`` tells what was cut off."""

    answer: str
    reasoning: str
    confidence: float
    invalid: tuple[str, ...] = ()
    lm_calls: ClassVar[int] = 1


@dataclass(frozen=True)
class Stopped:
    """Why the loop ended: "stable" (a round changed nothing), "rounds" (the budget), "nothing found", ..."""

    reason: str
    lm_calls: ClassVar[int] = 0


@dataclass(frozen=True)
class Parallel:
    """What ran side by side, one trace a branch."""

    branches: tuple[Trace, ...]

    @property
    def lm_calls(self) -> int:
        return sum(branch.lm_calls for branch in self.branches)

    @property
    def lm_calls_critical_path(self) -> int:
        return max((branch.lm_calls_critical_path for branch in self.branches), default=0)


Step = (
    Estimated | Recalled | Routed | Decomposed | Searched | Selected | Added | Proposed | Learned | Required | Checked
    | Decided | Thought | StepAnswered | Judged | Weighed | Revised | Replaced | Refined | Answered | Stopped | Parallel
)  # fmt: skip


@dataclass
class Trace:
    """The steps of one run, in order."""

    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        self.steps.append(step)

    def flat(self) -> Iterator[Step]:
        """Every step, those that ran side by side branch by branch."""
        for step in self.steps:
            if isinstance(step, Parallel):
                for branch in step.branches:
                    yield from branch.flat()
            else:
                yield step

    @property
    def lm_calls(self) -> int:
        """Calls to language models; replies that came from a cache count too."""
        return sum(step.lm_calls for step in self.steps)

    @property
    def lm_calls_critical_path(self) -> int:
        """Calls that had to wait for one another: of branches side by side only the longest counts."""
        return sum(step.lm_calls_critical_path if isinstance(step, Parallel) else step.lm_calls for step in self.steps)

    @property
    def searches(self) -> int:
        return sum(isinstance(step, Searched) for step in self.flat())

    @property
    def dropped(self) -> int:
        """How many parts of the agents' replies could not be used."""
        return sum(len(getattr(step, "invalid", ())) for step in self.flat())

    def to_records(self) -> list[dict[str, Any]]:
        """The steps as JSON objects, each with its kind under ``step``."""
        return [
            {"step": "parallel", "branches": [branch.to_records() for branch in step.branches]}
            if isinstance(step, Parallel)
            else {"step": type(step).__name__.lower(), **asdict(step)}
            for step in self.steps
        ]
