"""The evaluation run: execute every question, score the output, and survive interruptions.

    summary = evaluate(program, questions, "runs/mine", threads=8)
    print(summary["metrics"]["answer_f1"], summary["intervals"]["answer_f1"])

A failed question (an exception, an unreachable model, an unreadable reply, a timeout) is recorded with its cause, never
as an answer. It scores 0 in every mean, as a missing prediction does in the official scripts, and is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dspy

from ..data.errors import PolyhopError
from ..engines.secrets import learn_models
from .cluster import Ray, RayExecutor
from .executor import QuestionTask, ThreadExecutor
from .folder import RunError
from .gold import LookUp
from .official.submissions import SUBMISSIONS
from .questions import as_questions
from .records import QuestionRecord, RunFolder
from .settings import RunManifest
from .summary import finish


@dataclass
class RunProgress:
    """The state of a run, over all finished questions."""

    questions: int
    done: int = 0
    failed: int = 0
    failed_now: int = 0  # failures since this call
    repeated: int = 0  # requests that failed and were repeated
    tokens: int = 0
    cost_usd: float = 0.0
    priced: bool = True  # whether all costs are known
    last_error: str = ""
    _sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def mean(self, metric: str) -> float | None:
        """The running mean of a score."""
        return self._sums[metric] / self._counts[metric] if self._counts[metric] else None

    def add(self, record: QuestionRecord, *, before: bool = False) -> None:
        """Count a record, of this call or of one ``before``."""
        self.done += 1
        self.repeated += sum(count for what, count in record.incidents.items() if what.startswith("request failed"))
        self.tokens += int(record.costs.get("tokens", 0))
        self.cost_usd += record.costs.get("cost_usd", 0.0)
        self.priced = self.priced and "cost_usd" in record.costs
        if record.error:
            self.failed += 1
            self.failed_now += not before
            self.last_error = record.error.message
        for name, value in record.scores.items():
            self._sums[name] += value
            self._counts[name] += 1


def evaluate(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    out: Path | str | None = None,
    *,
    threads: int = 1,
    executor: Ray | None = None,
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
        folder = stack.enter_context(RunFolder.opened(path, manifest))
        progress = RunProgress(folder.questions)
        attempts: dict[int, int] = {}
        for record in folder.records():
            if retry_failed and record.error:
                folder.forget(record.n)
                # A reply that could not be read must not come from the cache again.
                attempts[record.n] = record.attempt + (record.error.cause == "reply")
            else:
                progress.add(record, before=True)
        on_progress(progress)
        submission = SUBMISSIONS.get(manifest.dataset or "")
        if progress.done < progress.questions:
            task = QuestionTask(program, submission, look_up, timeout, attempts)
            asking: ThreadExecutor | RayExecutor = ThreadExecutor(task, threads)
            if executor is not None:
                asking = stack.enter_context(RayExecutor(task, executor))
            pending = ((n, example) for n, example in enumerate(questions) if not folder.has(n))
            try:
                for record in asking.run(pending):
                    folder.append(record)
                    progress.add(record)
                    on_progress(progress)
                    if max_failures is not None and progress.failed_now >= max_failures:
                        raise RunError(
                            f"Stopped after {progress.failed_now} failures, with {progress.done} of "
                            f"{progress.questions} questions done. The last: {progress.last_error.rstrip('.')}. Run "
                            "the same command again to resume; --retry-failed also retries the failed questions."
                        )
            finally:
                for record in asking.drain():
                    folder.append(record)
        return finish(folder, manifest, questions, submission)


# --- estimate --------------------------------------------------------------------------------------------------------

ESTIMATE_SAMPLE = 5


@dataclass(frozen=True)
class CostEstimate:
    """The costs of a run, extrapolated from a sample of its questions."""

    questions: int
    sampled: int  # the size of the sample; `failed` of them failed
    failed: int
    cached: int  # calls that DSPy's cache answered and that are therefore not counted
    by_agent: dict[str, dict[str, float]]  # `lm_calls`, `tokens_in`, `tokens_out` and, with known prices, `cost_usd`
    seconds: float  # wall time with the given threads or workers


def estimate(
    program: dspy.Module,
    sample: Iterable[dspy.Example],
    questions: int,
    *,
    threads: int = 1,
    executor: Ray | None = None,
    timeout: float | None = None,
    look_up: LookUp | None = None,
) -> CostEstimate:
    """Run a program over a sample and extrapolate the costs to ``questions``.

    Raises:
        PolyhopError: every question of the sample failed.
    """
    summary: dict[str, Any] = evaluate(
        program, sample, threads=threads, executor=executor, timeout=timeout, look_up=look_up
    )
    parallel = executor.workers * executor.threads if executor else threads
    counts = summary["counts"]
    if not counts["answered"]:
        raise PolyhopError(f"all of {counts['questions']} questions failed: {summary['failures'][0]['message']}")
    factor = questions / counts["questions"]
    by_agent = {
        agent: {name: value * factor for name, value in costs.items()} for agent, costs in summary["by_agent"].items()
    }
    paid = sum(costs["lm_calls"] for costs in summary["by_agent"].values())
    cached = max(0, round(summary["totals"]["lm_calls"] - paid))
    seconds = summary["timing"]["seconds_mean"] * questions / parallel
    return CostEstimate(questions, counts["questions"], counts["failed"], cached, by_agent, seconds)
