"""The effect of each fault on a run of a program over the sample, compared with a run without faults.

A question is *lost* if it has no record, *hung* if it used up its time limit, and *wrong* if it was answered or scored
differently although its agents read the same text and could read the judge's verdict (an unreadable one counts against
an answer).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dspy

from ....data.pool import PassagePool
from ....data.sample import load_sample, sample_passages
from ....engines.budget import Budget, BudgetSpent
from ....engines.endpoint import Endpoint, Limits
from ....eval.records import QuestionRecord, read_records
from ....eval.run import evaluate
from ....programs import new_program
from .faults import FAULTS, Fault, dies, drip, slow
from .schedule import During, Every, Longer, Schedule, Share
from .server import Server

LIMITS = Limits(timeout=1.0, retries=8, patience=15.0)
"""Short, for a study of minutes."""

TIME_LIMIT = 60.0
"""Seconds per question; longer than ``patience``."""

_LESS, _OTHER = "read less", "read other text"


@dataclass(frozen=True)
class Case:
    """A run with faults.

    Attributes:
        name: The fault, or what several have in common.
        when: Which requests are hit.
        faults: The schedules and faults of the server.
        differs: Why answers may differ from those without faults; empty if they must not.
        calls: The budget that interrupts the run, before it resumes without one.
    """

    name: str
    when: str
    faults: tuple[tuple[Schedule, Fault], ...] = ()
    differs: str = ""
    program: str = "polyhop"
    calls: int | None = None


def _some(name: str, share: float = 0.2, fault: Fault | None = None, differs: str = "") -> Case:
    return Case(name, f"{share:.0%} of the requests", ((Share(share), fault or FAULTS[name]),), differs)


def _storm(name: str, start: float = 0.2, end: float = 1.2) -> Case:
    return Case(name, f"all requests for {end - start:g} s", ((During(start, end), FAULTS[name]),))


def _too_long(name: str, characters: int = 5_000) -> Case:
    return Case(name, f"prompts beyond {characters:,} characters", ((Longer(characters), FAULTS[name]),), _LESS)


def _mixed(program: str, calls: int | None = None) -> Case:
    names = ("500", "429-bare", "reset-in-body", "truncated", "empty", "prose", "refusal", "1mb-braces", "length")
    faults = tuple((Share(0.01, seed), FAULTS[name]) for seed, name in enumerate(names))
    others = ((Share(0.005, 98), slow(5.0)), (Every(250), dies(1.0)))
    stopped = f", interrupted after {calls:,} calls and resumed" if calls else ""
    return Case(f"mixed ({program})", f"11 kinds, 1% each{stopped}", (*faults, *others), program=program, calls=calls)


CASES = (
    Case("none", "never"),
    _storm("429"),
    _storm("429-date"),
    _some("429-bare"),
    _some("429-absurd", 0.02),
    _some("429-quota", 0.02),
    _some("500"),
    _some("502"),
    _storm("503"),
    _some("401-echo", 0.02),
    _too_long("context-openai"),
    _too_long("context-vllm"),
    _too_long("context-llama"),
    _some("filter-400-openai", 0.02),
    _some("filter-400-azure", 0.02),
    _some("slow", 0.05, slow(5.0)),
    _some("hang", 0.05),
    _some("drip", 0.05, drip(0.3)),
    _some("reset"),
    _some("reset-in-body"),
    _some("closed-in-body"),
    Case("dies", "every 100th request, for 2 s", ((Every(100), dies(2.0)),)),
    _some("truncated"),
    _some("empty"),
    _some("null"),
    _some("refusal", 0.02),
    _some("filter", 0.02),
    _some("prose"),
    _some("prose-around-json"),
    *(_some(name, 0.02) for name in FAULTS if name.startswith("1mb")),
    _some("length", 0.02),
    _some("latin-1"),
    _some("invalid-utf-8"),
    _some("lone-surrogate", differs=_OTHER),
    _some("utf-16", differs=_OTHER),
    _some("bom"),
    _some("content-type"),
    _some("no-usage"),
    _some("unknown-fields"),
    _mixed("polyhop"),
    _mixed("prism"),
    _mixed("kair"),
    _mixed("polyhop", calls=200),
)


@dataclass(frozen=True)
class Row:
    """The result of a case.

    Attributes:
        injected: Requests that were hit.
        done: Incidents: how endpoint and agents handled the faults, and how often.
        failed: Questions without an answer, by cause.
        other, wrong: Questions with other answers or scores than without faults, with and without a reason.
    """

    case: Case
    injected: int
    requests: int
    questions: int
    answered: int
    other: int
    wrong: int
    lost: int
    hung: int
    seconds: float
    done: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        return not (self.lost or self.hung or self.wrong)


class Study:
    """Runs of cases over the same questions.

    Args:
        count: Number of questions of the sample; None for all.
        client: DSPy's client: ``lm15``, its own, or ``litellm``.
        limits: The limits of the endpoint.
    """

    def __init__(
        self, count: int | None = None, *, threads: int = 8, client: str = "lm15", limits: Limits = LIMITS
    ) -> None:
        self.questions = [*load_sample("dev"), *load_sample("test")][:count]
        self.threads, self.client, self.limits = threads, client, limits
        self._pool = PassagePool(sample_passages())
        self._without: dict[str, dict[int, QuestionRecord]] = {}

    def run(self, case: Case, out: Path | None = None) -> Row:
        """Run a case, in the folder ``out`` or a temporary one."""
        if case.program not in self._without:
            self._without[case.program], *_ = self._records(Case("none", "never", program=case.program), None)
        expected = self._without[case.program]
        records, server, seconds = self._records(case, out)
        answered = [record for record in records.values() if not record.error]
        different = [record for record in answered if _result(record) != _result(expected[record.n])]
        other = sum(bool(case.differs) or _misjudged(record) for record in different)
        done = Counter[str]()
        for record in records.values():
            done.update(record.incidents)
        return Row(
            case,
            injected=server.injected.total(),
            requests=server.requests,
            questions=len(self.questions),
            answered=len(answered),
            other=other,
            wrong=len(different) - other,
            lost=len(self.questions) - len(records),
            hung=sum(record.costs["seconds"] >= TIME_LIMIT for record in records.values()),
            seconds=seconds,
            done=dict(sorted(done.items())),
            failed=dict(Counter(record.error.cause for record in records.values() if record.error)),
        )

    def _records(self, case: Case, out: Path | None) -> tuple[dict[int, QuestionRecord], Server, float]:
        """The records of a run by question, its server, and its seconds."""
        with TemporaryDirectory() as temporary, Server(case.faults) as server:
            folder, start = out or Path(temporary) / "run", perf_counter()
            lm = dspy.LM("openai/behind-http", engine=self.client, api_base=server.url, api_key="none", cache=False)
            lm = Endpoint(self.limits).guard(lm)
            if case.calls:
                with suppress(BudgetSpent):
                    self._evaluate(case.program, Budget(calls=case.calls).meter(lm), folder)
            self._evaluate(case.program, lm, folder)
            return {record.n: record for record in read_records(folder)}, server, perf_counter() - start

    def _evaluate(self, name: str, lm: dspy.LM, folder: Path) -> None:
        program = new_program(name, self._pool, None)
        program.set_lm(lm)
        evaluate(program, self.questions, folder, threads=self.threads, timeout=TIME_LIMIT)


def _result(record: QuestionRecord) -> tuple[object, ...]:
    """The fields that must not depend on faults."""
    return record.answer, record.confidence, record.evidence, record.ranking, record.scores


def _misjudged(record: QuestionRecord) -> bool:
    """Whether a verdict was unreadable."""
    return any(step["step"] == "judged" and step["invalid"] and not step["score"] for step in record.trace)


def cases_named(names: Sequence[str]) -> tuple[Case, ...]:
    """The cases with these names, or all; ``mixed`` has several."""
    return tuple(each for each in CASES if not names or each.name.partition(" ")[0] in names)
