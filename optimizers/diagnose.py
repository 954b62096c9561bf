"""Which agent costs the points: the scores with a better reply of one agent, less the scores as they are.

    diagnosis = diagnose(program, questions, [metrics.answer_f1, metrics.evidence_f1])
    print(diagnosis.costs("selector", "evidence_f1"))

A program is run once; then it is run again with a better reply of one agent after the other (`replay`). The replies
that gained points, beside those that lost them, are training data (`write_pairs`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, isnan, nan, sqrt
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import dspy

from ..engines.costs import Ledger
from ..engines.models import roles
from ..eval.folder import replacing
from ..eval.gold import LookUp
from ..eval.metrics import joint_f1, named
from ..eval.oracle import GoldReplies
from ..eval.questions import as_questions
from ..eval.run import in_order
from ..eval.statistics import Interval
from ..programs.search import Search
from ..signatures.fields import fenced
from .replay import Call, Metric, Replay, ReplayedRun, argued

RETRIEVAL = "retrieval"
"""What `diagnose` calls the searches of a program, beside the names of its agents."""

Reference: TypeAlias = Literal["gold"] | dspy.LM
"""What an agent is compared with: "gold", the reply that the annotations ask for, or another model in its place."""

Corrected: TypeAlias = Sequence[tuple[Call, dspy.Prediction]]
"""Calls for which the reference has another reply, with it."""


@dataclass(frozen=True)
class QuestionCosts:
    """What each role costs on one question: the scores with the reference in its place, less the scores as they are.

    ``changes`` are by role and metric; NaN where the annotations do not tell what the role should have replied. Where a
    run fails (``error``), there are none.
    """

    id: str
    hops: int | None
    kind: str | None
    scores: Mapping[str, float]
    changes: Mapping[str, Mapping[str, float]]
    calls: Mapping[str, int]  # by role, in the run as it is
    asked: int  # calls of language models that this took; some may be replies from a cache
    error: str = ""
    corrected: Mapping[str, Corrected] = field(default_factory=dict)


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
        """The roles whose costs are known, the most expensive first."""
        means = {role: cost.mean for role in self.roles if (cost := self.costs(role, metric)) is not None}
        return sorted(means, key=lambda role: -means[role])

    def groups(self, name: str) -> dict[str, list[QuestionCosts]]:
        """The questions by "hops" or "kind"."""
        groups: dict[str, list[QuestionCosts]] = {}
        for one in self.questions:
            groups.setdefault(str(getattr(one, name) or "unknown"), []).append(one)
        return dict(sorted(groups.items()))


def _interval(values: Sequence[float]) -> Interval:
    """The mean of changes between -1 and 1 (of a metric of your own, as large as they come), with the 95% interval of
    Agresti and Min for matched pairs (Statistics in Medicine 24, 2005): two pseudo-observations, half of them without a
    change. Most changes are 0, and a bootstrap of zeros would be certain of 0.
    """
    mean, size, most = fsum(values) / len(values), len(values) + 2, max(1.0, *map(abs, values))
    shrunk = fsum(values) / size
    half = 1.96 * sqrt(((fsum(value**2 for value in values) + most**2) / size - shrunk**2) / size)
    return Interval(mean, max(-most, min(mean, shrunk - half)), min(most, max(mean, shrunk + half)))


def diagnose(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    metrics: Sequence[Metric] = (joint_f1,),
    *,
    against: Reference = "gold",
    alone: bool | None = None,
    among: Collection[str] | None = None,
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
        metrics: DSPy metrics.
        against: Whose replies count as the best: "gold", those of the annotations, or another language model.
        alone: Whether one agent is replaced at a time; costs then overlap where one agent could repair what another
            spoiled. By default only where the reference is not "gold".
        among: The roles whose costs are asked for; by default all of `roles_of`.
        threads: Questions at the same time.
        look_up: Finds gold passages by title, for questions without passages of their own: `BM25Index.titled`.
        on_progress: Called after each question.

    Raises:
        BaseException: what is not an `Exception`, such as a spent budget.
    """
    every = roles_of(program, against)
    one_at_a_time = against != "gold" if alone is None else alone
    wanted = [role for role in every if among is None or role in among]
    replay, perfect = Replay(program), Replay(program, perfect_search=True) if RETRIEVAL in every else None

    def costs(_: int, example: dspy.Example, ledger: Ledger) -> QuestionCosts:
        case = _Case(example, metrics, replay, against, look_up)
        skipped = set[str]()
        for role in dict.fromkeys([*(call.role for call in case.start.calls), *every]):
            if case.error is not None:
                break
            if role not in wanted:
                skipped.add(role)
            elif perfect is not None and role == RETRIEVAL:
                case.measure_searches(perfect)
            elif one_at_a_time:
                case.measure(role)
            else:
                if skipped:  # other roles that go before this one
                    case.keep(case.rerun(skipped).run, skipped)
                    skipped = set()
                case.keep(case.measure(role), {role})
        return case.costs()

    results = []
    for one in in_order(costs, list(enumerate(as_questions(questions))), threads):
        results.append(one)
        on_progress(one)
    return Diagnosis(results, metrics, every)


class _Rerun(NamedTuple):
    """A run with better replies, whether the reference had one, and where it differed."""

    run: ReplayedRun
    answered: bool
    corrected: Corrected = ()


class _Case:
    """The runs of one question: ``start`` as it is, ``before`` with the reference in place of the roles that were
    replaced so far; the first ``error`` of a run, and how many calls of models they took."""

    def __init__(
        self,
        example: dspy.Example,
        metrics: Sequence[Metric],
        replay: Replay,
        against: Reference,
        look_up: LookUp | None,
    ) -> None:
        self.example, self.metrics, self.replay, self.against = example, metrics, replay, against
        self.start = self.before = replay.run(example)
        self.replaced, self.asked, self.error = set[str](), self.start.asked, self.start.error
        self.changes, self.corrected = dict[str, dict[str, float]](), dict[str, Corrected]()
        seen = self.start.prediction.get("ranking") or () if self.start.prediction is not None else ()
        self.oracle = GoldReplies(example, seen, look_up)

    def measure(self, role: str) -> ReplayedRun:
        """Note what an agent costs; returns the run with its better replies."""
        rerun = _Rerun(self.before, True)
        if any(call.role == role for call in self.before.calls):
            rerun = self.rerun({role})
        self._note(role, self.before, rerun)
        return rerun.run

    def measure_searches(self, perfect: Replay) -> None:
        """Note what is lost because searches do not return the gold passages first, if these are known."""
        rerun = _Rerun(self.start, False)
        if self.oracle.pages and all(self.oracle.pages.values()):
            run = self._counted(perfect.run(self.example, self.start.replies, oracle=self.oracle))
            rerun = _Rerun(run, True)
        self._note(RETRIEVAL, self.start, rerun)

    def _note(self, role: str, base: ReplayedRun, rerun: _Rerun) -> None:
        self.corrected[role], self.changes[role] = rerun.corrected, {}
        for metric in self.metrics:
            gain = rerun.run.score(self.example, metric) - base.score(self.example, metric) if rerun.answered else nan
            self.changes[role][named(metric)] = gain

    def keep(self, run: ReplayedRun, roles: Collection[str]) -> None:
        """Go on from a run in which roles are replaced."""
        self.before, self.replaced = run, self.replaced.union(roles)

    def rerun(self, new: Collection[str]) -> _Rerun:
        """The run with the reference in place of new roles, besides those in place before."""
        recorded, earlier = {**self.start.replies, **self.before.replies}, self.before.replies
        answered, corrected = 0, list[tuple[Call, dspy.Prediction]]()

        def instead(call: Call) -> dspy.Prediction | None:
            nonlocal answered
            if call.role not in new and (call.role not in self.replaced or call.key in earlier):
                return None
            usual, better = recorded.get(call.key), None
            if isinstance(self.against, dspy.LM):
                better = call.ask(lm=self.against)
            else:
                usual = usual or call.ask()
                reply = self.oracle.reply(call.signature, call.inputs, usual)
                if reply.annotated:
                    better = dspy.Prediction(**reply.fields)
            if better is not None and call.role in new:
                answered += 1
                if usual is not None and dict(better) != dict(usual):
                    corrected.append((replace(call, reply=usual), better))
            return usual if better is None else better

        run = self._counted(self.replay.run(self.example, recorded, instead))
        return _Rerun(run, answered > 0, corrected)

    def _counted(self, run: ReplayedRun) -> ReplayedRun:
        self.asked += run.asked
        self.error = self.error or run.error
        return run

    def costs(self) -> QuestionCosts:
        failed = self.error is not None
        return QuestionCosts(
            id=str(self.example.get("id") or self.example.question),
            hops=self.example.get("hops"),
            kind=self.example.get("kind"),
            scores={named(metric): self.start.score(self.example, metric) for metric in self.metrics},
            changes={} if failed else self.changes,
            calls=Counter(call.role for call in self.start.calls),
            asked=self.asked,
            error=f"{type(self.error).__name__}: {self.error}"[:200] if failed else "",
            corrected={} if failed else self.corrected,
        )


def roles_of(program: dspy.Module, against: Reference = "gold") -> list[str]:
    """What `diagnose` gives costs for: the agents, and the searches where the reference is gold."""
    searches = against == "gold" and any(True for _ in program.named_sub_modules(Search))
    return [*roles(program), *([RETRIEVAL] if searches else [])]


# --- training data ---------------------------------------------------------------------------------------------------

Message = dict[str, Any]


class TrainingPair(NamedTuple):
    """The messages of a call as they were sent, the reply that gained points, and the one that it replaced."""

    prompt: list[Message]
    better: Message
    replaced: Message


def training_pairs(
    questions: Iterable[dspy.Example], diagnosis: Diagnosis, metric: Metric, gold: bool = True
) -> Iterator[TrainingPair]:
    """The corrected calls of every agent that cost points, question by question.

    Args:
        questions: Those of the diagnosis, in their order.
        gold: Whether the reference was "gold". Its replies take their reasoning from the annotations; agents whose
            reasoning these do not have are left out.
    """
    adapter = dspy.settings.adapter or dspy.ChatAdapter()
    for example, one in zip(questions, diagnosis.questions, strict=False):
        for role, calls in one.corrected.items():
            for call, reply in calls if one.changes[role][named(metric)] > 0 else ():
                signature = call.signature
                better = argued(example, signature, reply) if gold else dict(reply)
                if better.keys() >= signature.output_fields.keys():
                    better = {name: better[name] for name in signature.output_fields}
                    prompt = adapter.format(signature, fenced(list(call.demos)), fenced(dict(call.inputs)))
                    texts = (adapter.format_assistant_message_content(signature, it) for it in (better, call.fields))
                    yield TrainingPair(prompt, *({"role": "assistant", "content": text} for text in texts))


def write_pairs(folder: Path, pairs: Iterable[TrainingPair]) -> int:
    """Write training data as JSON lines; returns the number of pairs.

    supervised.jsonl          {"messages": [..., {"role": "assistant", ...}]}, for OpenAI and TRL's SFTTrainer
    preferences.trl.jsonl     {"prompt": [...], "chosen": [...], "rejected": [...]}, for TRL's DPOTrainer
    preferences.openai.jsonl  {"input": {"messages": [...]}, "preferred_output": [...], "non_preferred_output": [...]}
    """
    files: dict[str, list[dict[str, Any]]] = {"supervised": [], "preferences.trl": [], "preferences.openai": []}
    for prompt, better, replaced in pairs:
        files["supervised"].append({"messages": [*prompt, better]})
        files["preferences.trl"].append({"prompt": prompt, "chosen": [better], "rejected": [replaced]})
        asked = {"input": {"messages": prompt}}
        files["preferences.openai"].append({**asked, "preferred_output": [better], "non_preferred_output": [replaced]})
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in files.items():
        with replacing(folder / f"{name}.jsonl") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return len(files["supervised"])
