"""What a program did, as typed steps: searched, kept, added, judged, answered, and why it stopped.

All programs record the same kinds of step, so one evaluator, one optimizer and one viewer serve all of them. A step is
recorded when it is done; ``invalid`` holds the parts of an agent's reply that could not be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from ..data.passages import Fact, Reason


@dataclass(frozen=True)
class TraceStep:
    """A step of a program."""


@dataclass(frozen=True)
class Estimated(TraceStep):
    """The complexity of the question: the probabilities of 1, 2, 3 and 4 hops."""

    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Recalled(TraceStep):
    """The questions of the exemplars that the planner is shown."""

    questions: tuple[str, ...]


@dataclass(frozen=True)
class Routed(TraceStep):
    """The router's choice ("direct", "single", "plan") and its query, if it wrote one."""

    route: str
    query: str = ""
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decomposed(TraceStep):
    """The sub-questions of an analyzer or planner, with the reason for each and the route where it gives them."""

    sub_questions: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    route: str = ""


@dataclass(frozen=True)
class Searched(TraceStep):
    """A query and its hits, best first."""

    query: str
    found: tuple[tuple[str, str, float], ...]  # (passage id, title, score) of each hit
    reasons: tuple[Reason, ...] = ()  # why each passage was chosen, from retrievers that say so
    offset: int = 0  # number of better hits that were skipped


@dataclass(frozen=True)
class Selected(TraceStep):
    """What a Selector or filter kept in one round."""

    round: int
    kept: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    flagged: tuple[Fact, ...] = ()  # facts that no known fact supports; those not in `kept` were discarded


@dataclass(frozen=True)
class Added(TraceStep):
    """What the Adder added in one round."""

    round: int
    added: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposed(TraceStep):
    """Candidate queries with their scores, best first; the first was chosen."""

    queries: tuple[tuple[str, float], ...]
    invalid: tuple[str, ...] = ()
    diversity: float = 0.5  # the weight of diversity in the scores; the rest is that of relevance


@dataclass(frozen=True)
class Learned(TraceStep):
    """The facts and the open gaps after an agent read passages."""

    known: tuple[str, ...]
    required: tuple[str, ...]
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Required(TraceStep):
    """What the evidence must tell or still lacks, and the answers to the sub-questions so far ("unknown" if open)."""

    questions: tuple[str, ...]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checked(TraceStep):
    """Statements checked against the passages; ``irrelevant`` ones are supported but not useful, ``contradicted`` ones
    were known before."""

    supported: tuple[str, ...]
    unsupported: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    irrelevant: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decided(TraceStep):
    """The decision maker's next action: "retrieve" with a query, or "answer"."""

    action: str
    query: str = ""
    thought: str = ""
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Thought(TraceStep):
    """One new sentence of a chain of thought."""

    text: str
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepAnswered(TraceStep):
    """The answer to sub-question ``number``, from 1; ``question`` has earlier answers filled in."""

    number: int
    question: str
    answer: str
    cited: tuple[Fact, ...] = ()
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged(TraceStep):
    """A judge's verdict on one aspect of an answer or of the evidence ("accuracy", "attribution", ...)."""

    aspect: str
    score: float
    verdict: str = ""
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored(TraceStep):
    """The credibility of an answer by a model that is no language model."""

    credibility: float


@dataclass(frozen=True)
class Weighed(TraceStep):
    """The combined confidence in an answer: alpha(hops) * accuracy + (1 - alpha(hops)) * credibility.

    ``accuracy`` is None if the judge's verdict could not be read.
    """

    alpha: float
    confidence: float
    passed: bool
    hops: float = 0.0
    accuracy: float | None = None
    credibility: float = 0.0
    answer: str = ""


@dataclass(frozen=True)
class Revised(TraceStep):
    """The reviser's answer; ``accepted`` if it replaces the draft."""

    answer: str
    reason: str
    accepted: bool
    cited: tuple[Fact, ...] = ()
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replaced(TraceStep):
    """An answer that replaced the one before, without another call."""

    answer: str
    reason: str


@dataclass(frozen=True)
class Refined(TraceStep):
    """The question of step ``number``, reworded to fit the answers before it."""

    number: int
    question: str
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answered(TraceStep):
    """The answer with its reasoning and confidence."""

    answer: str
    reasoning: str
    confidence: float
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replied(TraceStep):
    """The reply of a predictor in a program that is not polyhop's, field by field."""

    agent: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Shortened(TraceStep):
    """The last passages of one call were left out, to stay within ``prompt_tokens``."""

    agent: str
    needed: int  # tokens of all passages
    shown: int


@dataclass(frozen=True)
class Stopped(TraceStep):
    """Why the program stopped: "stable" (a round changed nothing), "rounds" (the limit), "nothing found", ..."""

    reason: str


@dataclass(frozen=True)
class Parallel(TraceStep):
    """What ran in parallel, one trace per branch."""

    branches: tuple[Trace, ...]


Listener: TypeAlias = Callable[[TraceStep, tuple[int, ...]], None]
"""Is told of a step and of the parallel branches, numbered from 1, in which it was recorded."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Inside, the listener is told of each step when it is recorded, from any thread of the program.

    An exception of the listener stops the program.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass
class Trace:
    """The steps of one run, in order."""

    steps: list[TraceStep] = field(default_factory=list)
    calls: int = 0  # of agents, without those in parallel branches
    branch: tuple[int, ...] = field(default=(), compare=False, repr=False)  # as a `Listener` is told

    def add(self, step: TraceStep) -> None:
        self.steps.append(step)
        listener = _listener.get()
        if listener and not isinstance(step, Parallel):  # its steps are known
            listener(step, self.branch)

    def flat(self) -> Iterator[TraceStep]:
        """Every step; parallel branches one after the other."""
        for step in self.steps:
            if isinstance(step, Parallel):
                for branch in step.branches:
                    yield from branch.flat()
            else:
                yield step

    @property
    def lm_calls(self) -> int:
        """Calls of agents, including replies from a cache."""
        return self.calls + sum(branch.lm_calls for branches in self._parallel() for branch in branches)

    @property
    def lm_calls_critical_path(self) -> int:
        """Calls in sequence: of parallel branches only the longest counts."""
        return self.calls + sum(max(each.lm_calls_critical_path for each in branches) for branches in self._parallel())

    def _parallel(self) -> Iterator[tuple[Trace, ...]]:
        return (step.branches for step in self.steps if isinstance(step, Parallel) and step.branches)

    @property
    def searches(self) -> int:
        return sum(isinstance(step, Searched) for step in self.flat())

    @property
    def rounds(self) -> int:
        """Rounds in which evidence was selected or added; the steps of KAIR."""
        return max((step.round for step in self.flat() if isinstance(step, Selected | Added)), default=0)

    @property
    def dropped(self) -> int:
        """Parts of agents' replies that could not be used."""
        return sum(len(getattr(step, "invalid", ())) for step in self.flat())

    def to_records(self) -> list[dict[str, Any]]:
        """The steps as JSON objects; ``step`` is the kind in lower case."""
        return [
            {"step": "parallel", "branches": [branch.to_records() for branch in step.branches]}
            if isinstance(step, Parallel)
            else {"step": type(step).__name__.lower(), **asdict(step)}
            for step in self.steps
        ]
