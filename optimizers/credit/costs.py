"""Which agent costs the points: the scores with a better reply of one agent, less the scores as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, isnan, nan, sqrt
from typing import TypeAlias

import dspy

from ...engines.models import roles
from ...eval.executor import Job, Window
from ...eval.gold import LookUp
from ...eval.gold_replies import GoldReplies
from ...eval.metrics import Metric, joint_f1
from ...eval.statistics import Interval
from ...programs.search import Search
from ..exemplars import in_words
from .actions import REFERENCES, reference
from .replay import Call, Replay, Rollout

RETRIEVAL = "retrieval"
"""What `diagnose` calls the searches of a program, beside the names of its agents."""

Reference: TypeAlias = str | dspy.LM
"""What an agent is compared with: "gold", the reply that the annotations ask for; "absent", an empty reply; or another
model in its place."""


@dataclass(frozen=True)
class QuestionCosts:
    """What each role costs on one question: the scores with the reference in its place, less the scores as they are.

    ``changes`` are by role and metric; NaN where the annotations do not tell what the role should have replied.
    """

    id: str
    hops: int | None
    kind: str | None
    scores: Mapping[str, float]
    changes: Mapping[str, Mapping[str, float]]
    calls: Mapping[str, int]  # by role, in the run as it is
    asked: int  # calls of language models that this took; some may be replies from a cache
    error: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What the agents of a program cost, over some questions."""

    questions: Sequence[QuestionCosts]
    metrics: Sequence[Metric]
    roles: Sequence[str]

    def costs(self, role: str, metric: str, among: Iterable[QuestionCosts] | None = None) -> Interval | None:
        """The mean change of a score with its 95% interval; None if no question tells."""
        asked = self.questions if among is None else list(among)
        changes = [one.changes[role][metric] for one in asked if role in one.changes]
        values = [change for change in changes if not isnan(change)]
        return _interval(values) if values else None

    def ranked(self, metric: str) -> list[str]:
        """The roles that are known, the most expensive first."""
        known = {role: found.mean for role in self.roles if (found := self.costs(role, metric)) is not None}
        return sorted(known, key=lambda role: -known[role])

    def groups(self, name: str) -> dict[str, list[QuestionCosts]]:
        """The questions by "hops" or "kind"."""
        found: dict[str, list[QuestionCosts]] = {}
        for one in self.questions:
            found.setdefault(str(getattr(one, name) or "unknown"), []).append(one)
        return dict(sorted(found.items()))


def _interval(values: Sequence[float]) -> Interval:
    """The mean of changes between -1 and 1, with the 95% interval of Agresti and Min for matched pairs (Statistics in
    Medicine 24, 2005): two pseudo-observations, half of them without a change. Most changes are 0, and a bootstrap of
    zeros would be certain of 0.
    """
    mean, size = fsum(values) / len(values), len(values) + 2
    shrunk = fsum(values) / size
    half = 1.96 * sqrt(((fsum(value**2 for value in values) + 1) / size - shrunk**2) / size)
    return Interval(mean, max(-1.0, min(mean, shrunk - half)), min(1.0, max(mean, shrunk + half)))


class _Diagnostician:
    """`diagnose`, question by question."""

    def __init__(
        self,
        program: dspy.Module,
        metrics: Sequence[Metric] = (joint_f1,),
        against: Reference = "gold",
        look_up: LookUp | None = None,
        alone: bool = False,
    ) -> None:
        if not isinstance(against, dspy.LM) and against not in REFERENCES:
            raise ValueError(f"against is {' or '.join(map(repr, REFERENCES))} or a language model, not {against!r}")
        self.metrics, self.against, self._look_up, self.alone = metrics, against, look_up, alone
        self._replay = Replay(program)
        self.roles = roles_of(program, against)
        self._perfect = Replay(program, perfect_search=True) if RETRIEVAL in self.roles else None

    def __call__(self, example: dspy.Example) -> QuestionCosts:
        """The costs on one question: one run as it is, and one for each role that took part."""
        start = self._replay.run(example)
        seen = start.prediction.get("ranking") or () if start.prediction is not None else ()
        titles = dict.fromkeys(fact.title for fact in example.get("gold") or ())
        named = [page for title in titles if self._look_up is not None for page in self._look_up(title)]
        oracle = GoldReplies(in_words(example), [*named, *seen])
        scores = {metric.name: start.score(example, metric) for metric in self.metrics}
        calls = Counter(call.role for call in start.calls)
        before, replaced = start, set[str]()
        changes, asked = dict[str, dict[str, float]](), start.asked
        for role in [*calls, *(role for role in self.roles if role not in calls)]:
            base, run, told = before, None, True
            if role == RETRIEVAL:
                base, told = start, bool(oracle.pages) and all(oracle.pages.values())
                run = self._perfect.run(example, start.replies, oracle=oracle) if told and self._perfect else None
            elif any(call.role == role for call in before.calls):
                run, told = self._with(role, replaced, example, start, before, oracle)
            asked += run.asked if run else 0
            changes[role] = {
                metric.name: (run.score(example, metric) - base.score(example, metric) if run else 0.0) if told else nan
                for metric in self.metrics
            }
            if not self.alone and told and role != RETRIEVAL:
                before, replaced = run or before, replaced | {role}
        why = "" if start.error is None else f"{type(start.error).__name__}: {start.error}"[:200]
        id = str(example.get("id") or example.question)
        return QuestionCosts(id, example.get("hops"), example.get("kind"), scores, changes, calls, asked, why)

    def _with(
        self,
        role: str,
        replaced: Collection[str],
        example: dspy.Example,
        start: Rollout,
        before: Rollout,
        oracle: GoldReplies,
    ) -> tuple[Rollout, bool]:
        """The run with the reference in place of a role, besides those in place before, and whether the reference knew
        a reply for it."""
        told = False

        def instead(call: Call) -> dspy.Prediction | None:
            nonlocal told
            if call.role in replaced and call.key in before.replies:
                return before.replies[call.key]
            if call.role != role and call.role not in replaced:
                return None
            if isinstance(self.against, dspy.LM):
                other: dspy.Prediction | None = call.ask(lm=self.against)
            else:
                own = start.replies.get(call.key) or call.ask()
                other = reference(call, self.against, oracle, dict(own))
            told = told or (call.role == role and other is not None)
            return other

        run = self._replay.run(example, {**before.replies, **start.replies}, instead)
        return run, told


def diagnose(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    metrics: Sequence[Metric] = (joint_f1,),
    *,
    against: Reference = "gold",
    alone: bool | None = None,
    threads: int = 1,
    look_up: LookUp | None = None,
    on_progress: Callable[[QuestionCosts], None] = lambda one: None,
) -> Diagnosis:
    """What each agent of a program costs, and what its searches cost.

    An agent costs the points that the program gains if the agent gives the best reply to what it saw. Agents are
    replaced in the order of their first calls and stay replaced, so an agent is not to blame for what those before it
    spoiled, and the costs add up to the points that better agents gain in all. Searches are replaced alone.

    Args:
        questions: With annotations.
        against: Whose replies count as the best: "gold", those of the annotations; "absent", empty ones (the change is
            what the agent adds, negative if it helps); or another language model.
        alone: Whether one agent is replaced at a time; costs then overlap where one agent could repair what another
            spoiled. By default only where the reference is not "gold".
        threads: Questions at the same time.
        look_up: Finds gold passages by title, for questions without passages of their own: `BM25Index.titled`.
        on_progress: Called after each question.

    Raises:
        BaseException: what is not an `Exception`, such as a spent budget.
    """
    ask = _Diagnostician(program, metrics, against, look_up, against != "gold" if alone is None else alone)
    window, found = Window[tuple[int, QuestionCosts]](threads), dict[int, QuestionCosts]()

    def take() -> None:
        n, one = window.next()
        found[n] = one
        on_progress(one)

    for n, example in enumerate(questions):
        if window.full:
            take()
        window.start(Job(partial(_numbered, n, ask, example), _nothing, partial(_numbered, n, ask, example)))
    while window.busy:
        take()
    return Diagnosis([found[n] for n in sorted(found)], metrics, ask.roles)


def roles_of(program: dspy.Module, against: Reference = "gold") -> list[str]:
    """What `diagnose` gives costs for: the agents, and the searches where the reference is gold."""
    searches = against == "gold" and any(True for _ in program.named_sub_modules(Search))
    return [*roles(program), *([RETRIEVAL] if searches else [])]


def _numbered(n: int, ask: _Diagnostician, example: dspy.Example) -> tuple[int, QuestionCosts]:
    return n, ask(example)


def _nothing() -> None:
    """There is no time limit."""
