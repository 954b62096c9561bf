"""What a program did, as typed steps, and in words as it happens:

    with following(print):
        program(question="...").trace

All programs record the same kinds of step. A step is recorded when it is done; ``invalid`` holds the parts of an
agent's reply that could not be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import dspy
from dspy.utils.callback import BaseCallback

from ..data.passages import Fact, Reason
from ..data.text import count


@dataclass(frozen=True)
class TraceStep:
    """A step of a program. ``says`` is the step in words, with fields; of a tuple it tells how many."""

    says: ClassVar[str] = ""


@dataclass(frozen=True)
class Estimated(TraceStep):
    """The complexity of the question: the probabilities of 1, 2, 3 and 4 hops."""

    probabilities: tuple[float, ...]
    says = "estimated hops: {probabilities}"


@dataclass(frozen=True)
class Recalled(TraceStep):
    """The questions of the exemplars that the planner is shown."""

    questions: tuple[str, ...]
    says = "recalled {questions:solved question}"


@dataclass(frozen=True)
class Decomposed(TraceStep):
    """The sub-questions of an analyzer or planner, with the route where it gives one."""

    sub_questions: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    route: str = ""
    says = "asked {sub_questions:sub-question}"


@dataclass(frozen=True)
class Searched(TraceStep):
    """A query and its hits, best first."""

    query: str
    found: tuple[tuple[str, str, float], ...]  # (passage id, title, score) of each hit
    reasons: tuple[Reason, ...] = ()  # why each passage was chosen, from retrievers that say so
    offset: int = 0  # number of better hits that were skipped
    says = "found {found:passage} for “{query}”"


@dataclass(frozen=True)
class Selected(TraceStep):
    """What a Selector or filter kept in one round."""

    round: int
    kept: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    flagged: tuple[Fact, ...] = ()  # those that no known fact supports
    says = "kept {kept} in round {round}"


@dataclass(frozen=True)
class Added(TraceStep):
    """What the Adder added in one round."""

    round: int
    added: tuple[Fact, ...]
    invalid: tuple[str, ...] = ()
    says = "added {added} in round {round}"


@dataclass(frozen=True)
class Proposed(TraceStep):
    """Candidate queries with their scores, best first; the first was chosen."""

    queries: tuple[tuple[str, float], ...]
    invalid: tuple[str, ...] = ()
    diversity: float = 0.5  # the weight of diversity in the scores; the rest is that of relevance
    says = "proposed {queries} to search for"


@dataclass(frozen=True)
class Required(TraceStep):
    """What the evidence must tell or still lacks, the answers to the sub-questions so far ("unknown" if open), and the
    facts that were learned."""

    questions: tuple[str, ...]
    answers: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    says = "required {questions}"


@dataclass(frozen=True)
class Checked(TraceStep):
    """Statements checked against the passages; ``irrelevant`` ones are supported but not useful, ``contradicted`` ones
    were known before."""

    supported: tuple[str, ...]
    unsupported: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    irrelevant: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    says = "checked, {supported} supported"


@dataclass(frozen=True)
class Decided(TraceStep):
    """A route ("direct", "single", "plan") or the next action ("retrieve", "answer"), the query for it, and why."""

    action: str
    query: str = ""
    thought: str = ""
    invalid: tuple[str, ...] = ()
    says = "decided {action} {query}"


@dataclass(frozen=True)
class StepAnswered(TraceStep):
    """The answer to sub-question ``number``, from 1; ``question`` has earlier answers filled in."""

    number: int
    question: str
    answer: str
    cited: tuple[Fact, ...] = ()
    invalid: tuple[str, ...] = ()
    says = "answered #{number} {answer} ← {question}"


@dataclass(frozen=True)
class Judged(TraceStep):
    """A judge's verdict on one aspect of an answer or of the evidence ("accuracy", "attribution", ...)."""

    aspect: str
    score: float
    verdict: str = ""
    invalid: tuple[str, ...] = ()
    says = "judged {aspect} {score:.2f} {verdict}"


@dataclass(frozen=True)
class Weighed(TraceStep):
    """The combined confidence in an answer: alpha(hops) * accuracy + (1 - alpha(hops)) * credibility."""

    alpha: float
    confidence: float
    passed: bool
    hops: float = 0.0
    accuracy: float = 0.0
    credibility: float = 0.0
    answer: str = ""
    says = "weighed {confidence:.2f}"


@dataclass(frozen=True)
class Revised(TraceStep):
    """Another answer; ``accepted`` if it replaces the one before."""

    answer: str
    reason: str
    accepted: bool = True
    cited: tuple[Fact, ...] = ()
    invalid: tuple[str, ...] = ()
    says = "revised {answer}"


@dataclass(frozen=True)
class Answered(TraceStep):
    """The answer with its reasoning and confidence."""

    answer: str
    reasoning: str
    confidence: float
    invalid: tuple[str, ...] = ()
    says = "answered {answer} ({confidence:.2f})"


@dataclass(frozen=True)
class Replied(TraceStep):
    """The reply of a predictor in a program that is not polyhop's, field by field."""

    agent: str
    fields: tuple[tuple[str, str], ...]
    says = "replied {agent}"


@dataclass(frozen=True)
class Unread(TraceStep):
    """Fields of an agent's reply that were missing or could not be read: they have their defaults."""

    agent: str
    fields: tuple[str, ...]
    invalid: tuple[str, ...] = ()
    says = "could not read {fields:field} of {agent}"


@dataclass(frozen=True)
class Shortened(TraceStep):
    """Sentences of passages were left out of one call, to stay within ``prompt_tokens``."""

    agent: str
    needed: int  # tokens of all passages
    shown: int
    says = "shortened {agent}: about {needed:,} tokens to {shown:,}"


@dataclass(frozen=True)
class Stopped(TraceStep):
    """Why the program stopped: "stable" (a round changed nothing), "rounds" (the limit), "nothing found", ..."""

    reason: str
    says = "stopped {reason}"


@dataclass(frozen=True)
class Parallel(TraceStep):
    """What ran in parallel, one trace per branch."""

    branches: tuple[Trace, ...]


@dataclass
class Trace:
    """The steps of one run, in order."""

    steps: list[TraceStep] = field(default_factory=list)
    calls: int = 0  # of agents, without those in parallel branches
    branch: tuple[int, ...] = field(default=(), compare=False, repr=False)  # as an `Event` has it

    def add(self, step: TraceStep) -> None:
        self.steps.append(step)
        if (tell := _tell.get()) and not isinstance(step, Parallel):  # its steps are known
            tell(Event(describe(step)[0], step, branch=self.branch))

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
        longest = (max(trace.lm_calls_critical_path for trace in branches) for branches in self._parallel())
        return self.calls + sum(longest)

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
    def cost_units(self) -> int:
        """KAIR's: steps times agents, at one price for all models."""
        return self.rounds * max((len(branches) for branches in self._parallel()), default=1)

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


# --- in words ---------------------------------------------------------------------------------------------------------


class Event(NamedTuple):
    """What a program has done, or now waits for."""

    text: str
    step: TraceStep | None = None  # that is done; None while the program waits
    agent: str = ""  # whose reply the program waits for
    branch: tuple[int, ...] = ()  # the parallel branches in which it happened, numbered from 1, outermost first


_tell: ContextVar[Callable[[Event], None] | None] = ContextVar("tell", default=None)


@contextmanager
def following(tell: Callable[[Event], None]) -> Iterator[None]:
    """Inside, each step of a program and each agent that it asks is told, from any thread of the program.

    An exception that ``tell`` raises for a step stops the program.
    """
    token = _tell.set(tell)
    try:
        with dspy.context(callbacks=[*(dspy.settings.callbacks or ()), _Asking(tell)]):
            yield
    finally:
        _tell.reset(token)


class _Asking(BaseCallback):
    """Tells of each agent that is asked."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if isinstance(instance, dspy.Predict):
            self._tell(Event(asking(instance), agent=role_of(instance)))


def asking(agent: dspy.Predict) -> str:
    """That an agent is asked, in words."""
    return f"asking the {role_of(agent).replace('_', ' ')}"


def role_of(agent: dspy.Predict) -> str:
    """The name of an agent in its program, or of its signature."""
    return str(getattr(agent, "role", "") or agent.signature.__name__)


class _Counted(tuple[Any, ...]):
    """A tuple in a line: numbers as they are, of other items how many."""

    def __format__(self, noun: str) -> str:
        if self and all(isinstance(item, float) for item in self):
            return _text(self)
        return count(len(self), noun) if noun else str(len(self) or "nothing")


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def describe(step: TraceStep) -> tuple[str, list[str], list[Fact]]:
    """A step in words: a line that begins with a verb, what else it tells, line by line, and the evidence it is about.

    Hits and what was ignored are left to the viewer.
    """
    values = {part.name: getattr(step, part.name) for part in fields(step)}
    shown = {name: _Counted(value) if isinstance(value, tuple) else value for name, value in values.items()}
    line = " ".join(getattr(step, "says", "").format_map(shown).split()) or type(step).__name__.lower()
    details, evidence = list[str](), list[Fact]()
    for part in fields(step):
        value, name = values[part.name], part.name.replace("_", " ")
        if value == part.default or part.name in ("found", "reasons", "invalid"):
            continue
        for n, item in enumerate(value if isinstance(value, tuple) else _text(value).splitlines(), 1):
            if isinstance(item, Fact):
                evidence.append(item)
            elif (text := _text(item)) not in line:
                details.append(f"{name} {n}: {text}" if isinstance(value, tuple) else f"{name}: {text}")
    return line, details, evidence
