"""The evaluation run: execute every question, score the output, and survive interruptions.

    summary = evaluate(program, questions, "runs/mine", threads=8)
    print(summary["metrics"]["answer_f1"], summary["intervals"]["answer_f1"])

A failed question (an exception, an unreachable model, an unreadable reply, a timeout) is recorded with its cause, never
as an answer. It scores 0 in every mean, as a missing prediction does in the official scripts, and is counted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from contextvars import copy_context
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter
from traceback import extract_tb
from typing import Any, Protocol, TypeVar

import dspy
from dspy import AdapterParseError, LMError

from ..engines.costs import Ledger
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..programs.program import ask
from ..programs.trace import Trace
from .folder import SUMMARY, EvidenceRecord, Failure, RunError, RunManifest, RunRecord, append, opened, read_records
from .gold import LookUp, PredictionError, ProgramOutput, asked_hash, gold_evidence
from .metrics import METRICS, score
from .official import SUBMISSIONS, Submission
from .questions import GivenPredictions, as_questions
from .summary import finish

T = TypeVar("T")

COUNTED = ("lm_calls", "lm_calls_critical_path", "searches", "rounds", "cost_units")
"""What the trace of a program counts, replies from a cache included."""


@dataclass
class RunProgress:
    """The state of a run, over all finished questions."""

    questions: int
    done: int = 0
    failed: int = 0
    repeated: int = 0  # requests that failed and were repeated
    tokens: int = 0
    cost_usd: float = 0.0
    priced: bool = True  # whether all costs are known
    _sums: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)

    def mean(self, metric: str) -> float | None:
        """The running mean of a score."""
        return self._sums[metric] / self._counts[metric] if self._counts[metric] else None

    def add(self, record: RunRecord) -> None:
        self.done += 1
        self.failed += record.error is not None
        self.repeated += sum(count for what, count in record.incidents.items() if what.startswith("request failed"))
        self.tokens += int(record.costs.get("tokens", 0))
        self.cost_usd += record.costs.get("cost_usd", 0.0)
        self.priced = self.priced and "cost_usd" in record.costs
        self._sums.update(record.scores)  # floats, too
        self._counts.update(record.scores.keys())


def evaluate(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    out: Path | str | None = None,
    *,
    threads: int = 1,
    executor: Executor | None = None,
    timeout: float | None = None,
    max_failures: int | None = None,
    retry_failed: bool = False,
    look_up: LookUp | None = None,
    manifest: RunManifest | None = None,
    on_progress: Callable[[RunProgress], None] = lambda progress: None,
) -> dict[str, Any]:
    """Run a program over questions and return the summary; a second call with the same ``out`` resumes the run.

    Args:
        program: Called with each question's inputs; returns a prediction with ``answer`` and, as polyhop's programs do,
            ``evidence``, ``ranking``, ``trace``, ``confidence`` and ``stop_reason``. Must be thread-safe.
        questions: `Questions`, or any collection of examples with ``answers`` (or ``answer``) and what `gold_of` reads.
            Iterated over several times.
        out: The folder of the run; None for a temporary one.
        threads: Questions executed at the same time, in this process.
        executor: Where other processes execute the questions instead: `polyhop.eval.cluster.Ray`. They share limits
            and budget, and do not change the results.
        timeout: Seconds per question. A question that takes longer is abandoned, and its call to a language model is
            cancelled.
        max_failures: Stop after so many failures in this call.
        retry_failed: Execute failed questions again.
        look_up: Finds gold passages by title: `BM25Index.titled` of the index that is searched.
        manifest: The settings of the run; by default derived from the other arguments.
        on_progress: Called once at the start and after each question.

    Raises:
        RunError: ``out`` has another run or is in use, or there were ``max_failures``.
        KeyboardInterrupt: and any other `BaseException` of a program, such as a spent budget, at once; finished
            questions are in the folder.
    """
    questions = as_questions(questions)
    if manifest is None:
        manifest = RunManifest.of(program, questions, timeout=timeout)
    if not manifest.questions.count:
        raise RunError("There are no questions to evaluate.")
    learn_models(program)
    with ExitStack() as stack:
        path = Path(out) if out is not None else Path(stack.enter_context(TemporaryDirectory())) / "run"
        stack.enter_context(opened(path, manifest))
        progress, done, attempts, failures = RunProgress(manifest.questions.count), set[int](), dict[int, int](), 0
        for record in read_records(path):
            if retry_failed and record.error:
                # A reply that could not be read must not come from the cache again.
                attempts[record.n] = record.attempt + (record.error.cause == "reply")
            else:
                done.add(record.n)
                progress.add(record)
        on_progress(progress)
        submission = SUBMISSIONS.get(manifest.dataset or "")
        if progress.done < progress.questions:
            (path / SUMMARY).unlink(missing_ok=True)
            task = QuestionTask(program, submission, look_up, timeout, attempts)
            if executor is not None:
                task, threads = stack.enter_context(executor.start(task)), executor.workers * executor.threads
            pending = ((n, example) for n, example in enumerate(questions) if n not in done)
            records = in_threads(task.ask, pending, threads, task.timeout, task.too_late)
            for record in stack.enter_context(closing(records)):
                append(path, record)
                progress.add(record)
                on_progress(progress)
                failures += record.error is not None
                if record.error and failures == max_failures:
                    raise RunError(
                        f"Stopped after {failures} failures, with {progress.done} of {progress.questions} questions "
                        f"done. The last: {record.error.message.rstrip('.')}. Run the same command again to resume; "
                        "--retry-failed also retries the failed questions."
                    )
        return finish(path, manifest, questions, submission)


class Executor(Protocol):
    """Where other processes execute the questions: how many, and how many questions each at a time."""

    @property
    def workers(self) -> int: ...

    @property
    def threads(self) -> int: ...

    def start(self, task: QuestionTask) -> AbstractContextManager[Any]:
        """Something that asks as the task does, until the end of the block."""


@dataclass(frozen=True)
class QuestionTask:
    """Asks a program a question, and makes the record."""

    program: dspy.Module
    submission: Submission | None = None  # makes the official prediction of each question, if its benchmark has one
    look_up: LookUp | None = None  # see `polyhop.eval.gold.gold_with_texts`
    timeout: float | None = None
    attempts: Mapping[int, int] = field(default_factory=dict)  # the number of the attempt, for what is retried

    def ask(self, n: int, example: dspy.Example, ledger: Ledger) -> RunRecord:
        start, ledger.attempt = perf_counter(), self.attempts.get(n, 1)
        try:
            # The gold evidence is for a program that says that it reads it.
            reads_gold = getattr(self.program, "reads_gold", False)
            more = {"gold": gold_evidence(example, self.look_up)} if reads_gold else {}
            prediction = ask(self.program, example, **more)
            seconds = perf_counter() - start
            if self.timeout is not None and seconds > self.timeout:
                return self.too_late(n, example, ledger)
            output, details = _read(prediction)
        except Exception as error:  # noqa: BLE001  # one failed question must not stop the others
            return self.record(n, example, ledger, perf_counter() - start, error=_failure(error))
        return self.record(n, example, ledger, seconds, output, trace_counts(prediction), **details)

    def too_late(self, n: int, example: dspy.Example, ledger: Ledger) -> RunRecord:
        why = Failure(cause="timeout", type="Timeout", message=f"no answer after {self.timeout:g} s")
        return self.record(n, example, ledger, self.timeout or 0.0, error=why)

    def record(
        self,
        n: int,
        example: dspy.Example,
        ledger: Ledger,
        seconds: float,
        output: ProgramOutput | None = None,
        counted: Mapping[str, float] | None = None,
        **details: Any,
    ) -> RunRecord:
        """The record of a question: of a failure, without an output and with the ``error``."""
        gold, scores = score(example, output, self.look_up)
        measured = {**ledger.costs(), **(counted or {}), "seconds": seconds}
        costs = {"lm_calls_critical_path": measured["lm_calls"], "searches": 0, **measured}
        if ledger.attempt > 1:
            details["attempt"] = ledger.attempt
        return RunRecord(
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
            evidence=[
                EvidenceRecord(passage_id=e.passage.id, title=e.passage.title, sentence=e.sentence, text=e.text)
                for e in (output.evidence if output else ())
            ],
            ranking=[passage.id for passage in output.ranking] if output else [],
            documents={p.id: p.document for p in output.passages if p.place} if output else {},
            scores=scores,
            costs={} if isinstance(self.program, GivenPredictions) else costs,  # nobody knows what those cost
            costs_by_agent=ledger.by_agent(),
            incidents=ledger.incidents,
            official=self.submission.predict(example, output) if self.submission else None,
            **details,
        )


def trace_counts(prediction: dspy.Prediction) -> dict[str, float]:
    """The costs that a trace counts, cached replies included."""
    trace = prediction.get("trace") if isinstance(prediction, dspy.Prediction) else None
    return {name: getattr(trace, name) for name in COUNTED if hasattr(trace, name)}


def _read(prediction: Any) -> tuple[ProgramOutput, dict[str, Any]]:
    """The parts of a prediction that are scored, and those that are only recorded."""
    if not isinstance(prediction, dspy.Prediction):
        raise PredictionError(f"the program must return a dspy.Prediction, got {prediction!r}")
    output = ProgramOutput.of(prediction)
    if "answer" not in output.returned and not any(metric.wrapped for metric in METRICS.values()):
        raise PredictionError("the program must return an answer, or be scored by a metric of your own")
    for item in output.evidence:
        if item.sentence is not None and not 0 <= item.sentence < len(item.passage.sentences):
            raise PredictionError(f"the passage {item.passage.id!r} has no sentence {item.sentence}")
    confidence, trace = prediction.get("confidence"), prediction.get("trace")
    return output, {
        "guess": str(prediction.get("guess") or ""),
        "confidence": confidence if isinstance(confidence, int | float) and 0 <= confidence <= 1 else None,
        **({"status": str(prediction.status)} if prediction.get("status") else {}),
        "stop_reason": str(prediction.get("stop_reason") or ""),
        "trace": trace.to_records() if isinstance(trace, Trace) else [],
    }


_CAUSES = {"refused": "refused", **dict.fromkeys(("overlong_reply", "cut_reply", "empty_reply"), "reply")}
"""Of failures, by the codes of errors of models; "model" for others."""


def _failure(error: Exception) -> Failure:
    match error:
        case AdapterParseError():
            cause = "reply"
        case LMError():
            cause = _CAUSES.get(error.code or "", "model")
        case PredictionError():
            cause = "prediction"
        case _:
            cause = "exception"
    last = extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
    return Failure(cause=cause, type=type(error).__name__, message=explain(error), at=place)


def in_threads(
    ask: Callable[[int, dspy.Example, Ledger], T],
    questions: Iterable[tuple[int, dspy.Example]],
    threads: int = 1,
    timeout: float | None = None,
    too_late: Callable[[int, dspy.Example, Ledger], T] | None = None,
) -> Generator[T, None, None]:
    """What ``ask`` returns for each (number, question), up to ``threads`` at a time in the caller's context (DSPy's
    settings), in the order of completion. When this is closed, what is still asked is given up.

    Python cannot stop a thread: a question that exceeds its time limit is abandoned in its thread, which ends at its
    current or next call to a language model, and another takes its place.
    """
    if threads < 1:
        raise ValueError(f"threads must be positive, got {threads}")
    limit = inf if timeout is None or too_late is None else timeout
    running: dict[int, tuple[dspy.Example, Ledger, float]] = {}  # with its deadline, in the order of the start
    done: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()

    def work(n: int, example: dspy.Example, ledger: Ledger) -> None:
        try:
            with dspy.context(usage_tracker=ledger):
                done.put((n, ask(n, example, ledger), None))
        except BaseException as error:  # noqa: BLE001  # raised again in the waiting thread
            done.put((n, None, error))

    def finished() -> Any:
        while True:
            first, (example, ledger, deadline) = next(iter(running.items()))
            try:
                n, result, error = done.get(timeout=None if deadline == inf else max(deadline - monotonic(), 0.0))
            except Empty:
                del running[first]
                ledger.abandoned.set()
                return too_late and too_late(first, example, ledger)
            if running.pop(n, None) is None:
                continue  # it took too long
            if error is not None:
                raise error
            return result

    try:
        for n, example in questions:
            if len(running) >= threads:
                yield finished()
            ledger = Ledger()
            running[n] = example, ledger, monotonic() + limit
            # Daemons: a hanging thread must not keep the process alive.
            job = (work, n, example, ledger)
            threading.Thread(target=copy_context().run, args=job, daemon=True).start()
        while running:
            yield finished()
    finally:
        for _, ledger, _ in running.values():
            ledger.abandoned.set()


def in_order(
    ask: Callable[[int, dspy.Example, Ledger], T], questions: Sequence[tuple[int, dspy.Example]], threads: int = 1
) -> Generator[T, None, None]:
    """`in_threads` in the order of the questions."""
    early = dict[int, T]()

    def numbered(n: int, example: dspy.Example, ledger: Ledger) -> tuple[int, T]:
        return n, ask(n, example, ledger)

    with closing(in_threads(numbered, questions, threads)) as results:
        for wanted, _ in questions:
            while wanted not in early:
                n, early[n] = next(results)
            yield early.pop(wanted)
