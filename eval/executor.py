"""Where questions are executed: a run gives an executor questions and gets back finished records.

`ThreadExecutor` uses one thread per question. Python cannot stop a thread, so a question that exceeds its time limit is
abandoned in its thread, which ends at its current or next call to a language model, and another takes its place.
`polyhop.eval.cluster.RayExecutor` uses processes, of this machine or of a cluster, with several threads each.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from traceback import extract_tb
from typing import Any, NamedTuple

import dspy
from dspy import AdapterParseError, LMError

from ..engines.costs import Ledger
from ..engines.replies import CutReplyError, EmptyReplyError, OverlongReplyError, RefusedError, explain
from ..programs.program import ask
from ..programs.trace import Trace
from .gold import LookUp, PredictionError, ProgramOutput, asked_hash, gold_evidence
from .metrics import METRICS, score
from .official.submissions import Submission
from .records import EvidenceRecord, Failure, QuestionRecord

GRACE = 1.0
"""Seconds in which running questions may finish when a run is interrupted."""

ATTEMPTS = 3
"""Workers that a question may end until it has failed."""

_COUNTED = ("lm_calls", "lm_calls_critical_path", "searches", "rounds")


@dataclass(frozen=True)
class QuestionTask:
    """Asks a program one question and makes the record.

    Attributes:
        attempts: The number of the attempt for questions that are retried.
    """

    program: dspy.Module
    submission: Submission | None = None  # makes the official prediction of each question, if its benchmark has one
    look_up: LookUp | None = None  # see `polyhop.eval.gold.gold_with_texts`
    timeout: float | None = None
    attempts: Mapping[int, int] = field(default_factory=dict)

    def ask(self, n: int, example: dspy.Example, ledger: Ledger) -> QuestionRecord:
        start = perf_counter()
        output: ProgramOutput | None = None
        try:
            # Histories and DSPy's trace would keep the last 10,000 calls.
            with dspy.context(usage_tracker=ledger, disable_history=True, trace=None):
                prediction = ask(self.program, example, **self._gold(example))
            seconds = perf_counter() - start
            output, details = _read(prediction)
            counted = trace_counts(prediction)
            if self.timeout is not None and seconds > self.timeout:
                return self.timed_out(n, example, ledger)
        except Exception as error:  # noqa: BLE001  # one failed question must not stop the others
            seconds, counted = perf_counter() - start, {}
            details = {"error": _failure(error)}
        return self._record(n, example, output, ledger, {**counted, "seconds": seconds}, details)

    def _gold(self, example: dspy.Example) -> dict[str, Any]:
        """The gold evidence, for a program that says it reads it."""
        return {"gold": gold_evidence(example, self.look_up)} if getattr(self.program, "reads_gold", False) else {}

    def timed_out(self, n: int, example: dspy.Example, ledger: Ledger) -> QuestionRecord:
        failure = Failure(cause="timeout", type="Timeout", message=f"no answer after {self.timeout:g} s")
        return self._record(n, example, None, ledger, {"seconds": self.timeout or 0.0}, {"error": failure})

    def lost(self, n: int, example: dspy.Example) -> QuestionRecord:
        message = f"the question ended {ATTEMPTS} workers; if memory ran out, use fewer --threads"
        failure = Failure(cause="worker", type="WorkerLost", message=message)
        return self._record(n, example, None, Ledger(self.attempts.get(n, 1)), {"seconds": 0.0}, {"error": failure})

    def _record(
        self,
        n: int,
        example: dspy.Example,
        output: ProgramOutput | None,
        ledger: Ledger,
        counted: Mapping[str, float],
        details: Mapping[str, Any],
    ) -> QuestionRecord:
        gold, scores = score(example, output, self.look_up)
        costs = {**ledger.costs(), **counted}
        if ledger.attempt > 1:
            details = {**details, "attempt": ledger.attempt}
        return QuestionRecord(
            n=n,
            id=str(example.get("id") or n),
            question=example.question,
            hops=example.get("hops"),
            kind=example.get("kind"),
            gold_answers=gold.answers,
            gold=gold.passages,
            asked=asked_hash(example),
            gold_not_found=gold.texts is None and self.look_up is not None,
            answer=output.answer if output else None,
            evidence=[EvidenceRecord.of(item) for item in output.evidence] if output else [],
            ranking=[passage.id for passage in output.ranking] if output else [],
            documents={each.id: each.document for each in output.passages if each.place} if output else {},
            scores=scores,
            costs={"lm_calls_critical_path": costs["lm_calls"], "searches": 0, **costs},
            costs_by_agent=ledger.by_agent(),
            incidents=ledger.incidents,
            official=self.submission.predict(example, output)._asdict() if self.submission else None,
            **details,
        )


class _Running(NamedTuple):
    """A question that is being asked, and the time by which it must have ended."""

    example: dspy.Example
    ledger: Ledger
    deadline: float


class ThreadExecutor:
    """Executes up to ``threads`` questions at a time in this process, in the caller's context (DSPy's settings)."""

    def __init__(self, task: QuestionTask, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads must be positive, got {threads}")
        self._task, self._threads = task, threads
        self._running: dict[int, _Running] = {}  # by number, in the order of their start
        self._done: SimpleQueue[tuple[int, QuestionRecord | BaseException]] = SimpleQueue()

    def run(self, questions: Iterable[tuple[int, dspy.Example]]) -> Iterator[QuestionRecord]:
        """Yield the record of every (number, question), in the order of completion; failures are records, too."""
        for n, example in questions:
            if len(self._running) >= self._threads:
                yield self._next()
            ledger = Ledger(self._task.attempts.get(n, 1))
            limit = inf if self._task.timeout is None else self._task.timeout
            self._running[n] = _Running(example, ledger, monotonic() + limit)
            # Daemons: a hanging thread must not keep the process alive.
            job = (self._ask, n, example, ledger)
            threading.Thread(target=copy_context().run, args=job, daemon=True).start()
        while self._running:
            yield self._next()

    def _ask(self, n: int, example: dspy.Example, ledger: Ledger) -> None:
        try:
            result: QuestionRecord | BaseException = self._task.ask(n, example, ledger)
        except BaseException as error:  # noqa: BLE001  # raised again in the waiting thread
            result = error
        self._done.put((n, result))

    def _next(self) -> QuestionRecord:
        """The record of the next question that ends or takes too long."""
        while True:
            first, running = next(iter(self._running.items()))
            left = max(running.deadline - monotonic(), 0.0)
            try:
                n, result = self._done.get(timeout=None if left == inf else left)
            except Empty:
                del self._running[first]
                running.ledger.abandoned.set()
                return self._task.timed_out(first, running.example, running.ledger)
            if self._running.pop(n, None) is None:
                continue  # it took too long
            if isinstance(result, BaseException):
                raise result
            return result

    def drain(self) -> Iterator[QuestionRecord]:
        """After `run` was left early: yield what finishes within a moment, and abandon the rest."""
        end = monotonic() + GRACE
        while self._running:
            try:
                n, result = self._done.get(timeout=max(end - monotonic(), 0.0))
            except Empty:
                break
            if self._running.pop(n, None) is not None and not isinstance(result, BaseException):
                yield result
        for running in self._running.values():
            running.ledger.abandoned.set()
        self._running.clear()


# --- predictions and failures ----------------------------------------------------------------------------------------


def trace_counts(prediction: dspy.Prediction) -> dict[str, float]:
    """The costs that a trace counts, cached replies included."""
    trace = prediction.get("trace") if isinstance(prediction, dspy.Prediction) else None
    return {name: getattr(trace, name) for name in _COUNTED if hasattr(trace, name)}


def _read(prediction: Any) -> tuple[ProgramOutput, dict[str, Any]]:
    """The parts of a prediction that are scored, and those that are only recorded."""
    if not isinstance(prediction, dspy.Prediction):
        raise PredictionError(f"the program must return a dspy.Prediction, got {prediction!r}")
    output = ProgramOutput.of(prediction)
    if "answer" not in output.returned and not any(metric.own for metric in METRICS.values()):
        raise PredictionError("the program must return an answer, or be scored by a metric of your own")
    for item in output.evidence:
        if item.sentence is not None and not 0 <= item.sentence < len(item.passage.sentences):
            raise PredictionError(f"the passage {item.passage.id!r} has no sentence {item.sentence}")
    confidence, trace = prediction.get("confidence"), prediction.get("trace")
    return output, {
        "guess": str(prediction.get("guess") or ""),
        "confidence": confidence if isinstance(confidence, int | float) and isfinite(confidence) else None,
        **({"status": str(prediction.status)} if prediction.get("status") else {}),
        "stop_reason": str(prediction.get("stop_reason") or ""),
        "trace": trace.to_records() if isinstance(trace, Trace) else [],
    }


_CAUSES: dict[type[Exception], str] = {
    AdapterParseError: "reply",
    OverlongReplyError: "reply",
    CutReplyError: "reply",
    EmptyReplyError: "reply",
    RefusedError: "refused",
    LMError: "model",
    PredictionError: "prediction",
}


def _failure(error: Exception) -> Failure:
    cause = next((name for kind, name in _CAUSES.items() if isinstance(error, kind)), "exception")
    last = extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
    return Failure(cause=cause, type=type(error).__name__, message=explain(error), at=place)
