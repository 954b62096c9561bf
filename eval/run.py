"""The evaluation run: ask every question, score what comes back, and lose nothing.

    summary = evaluate(program, questions, "runs/mine", threads=8)
    print(summary["metrics"]["answer_f1"], summary["intervals"]["answer_f1"])

A question that fails (an exception in the program, a model that cannot be reached, a reply that cannot be read, a time
limit) is recorded with its cause, and never as an answer. It scores 0 in every mean, as a missing prediction does in
the official scripts, and is counted beside them.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dspy

from ..engines.secrets import learn_models
from .asking import Asking
from .folder import Line, RunError, RunFolder, read_summary
from .manifest import describe
from .scoring import LookUp
from .submissions import SUBMISSIONS
from .summary import files_of, finish


@dataclass
class Progress:
    """How a run is going, over all questions that are done; ``failed_now`` counts those that failed since its start,
    ``repeated`` the requests that had to be made again; ``cost_usd`` has all costs if all are ``priced``."""

    questions: int
    done: int = 0
    failed: int = 0
    failed_now: int = 0
    repeated: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    priced: bool = True
    last_error: str = ""
    _sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def mean(self, metric: str) -> float | None:
        """The running mean of a score, if any question has one."""
        return self._sums[metric] / self._counts[metric] if self._counts[metric] else None

    def add(self, line: Line, *, before: bool = False) -> None:
        """Count a line, of this process or ``before``."""
        self.done += 1
        incidents = line.get("incidents", {}).items()
        self.repeated += sum(count for what, count in incidents if what.startswith("repeated"))
        self.tokens += line["costs"].get("tokens", 0)
        self.cost_usd += line["costs"].get("cost_usd", 0.0)
        self.priced = self.priced and "cost_usd" in line["costs"]
        if "error" in line:
            self.failed += 1
            self.failed_now += not before
            self.last_error = line["error"]["message"]
        for name, value in line["scores"].items():
            self._sums[name] += value
            self._counts[name] += 1


def evaluate(
    program: dspy.Module,
    questions: Iterable[dspy.Example],
    out: Path | str | None = None,
    *,
    threads: int = 1,
    timeout: float | None = None,
    max_failures: int | None = None,
    retry_failed: bool = False,
    look_up: LookUp | None = None,
    manifest: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, Any]:
    """Run a program over questions and return the summary; started again with the same ``out``, it continues.

    Args:
        program: Called with each question's inputs; returns a prediction with ``answer`` and, as polyhop's programs do,
            ``evidence``, ``ranking``, ``trace``, ``confidence`` and ``stop_reason``. Safe to call from several threads.
        questions: `Questions`, or any collection of examples: with ``answers`` (or ``answer``), and with what `gold_of`
            can read. Gone through several times.
        out: The folder of the run; None for one that does not outlive the call.
        threads: Questions asked at the same time.
        timeout: Seconds that a question may take. The thread of one that takes longer is left alone, and stopped at its
            next call to a language model.
        max_failures: Stop when so many questions have failed since this call.
        retry_failed: Ask questions again that failed before, also what DSPy's cache has a reply to.
        look_up: Where gold passages are looked up: `BM25Index.titled` of the index that is searched.
        manifest: What the run is; made from the other arguments if not given.
        on_progress: Called once at the start and after each question.

    Raises:
        RunError: ``out`` holds another run or is in use, or too many questions have failed.
        KeyboardInterrupt: and any other `BaseException` of a program, such as a spent budget: at once. What is done is
            in the folder.
    """
    if isinstance(questions, Iterator):
        questions = list(questions)  # an iterator can be gone through only once
    if manifest is None:
        manifest = describe(program, questions, name=type(program).__name__.lower(), timeout=timeout)
    if not manifest["questions"]["count"]:
        raise RunError("There are no questions to evaluate.")
    learn_models(program)
    with ExitStack() as stack:
        path = Path(out) if out is not None else Path(stack.enter_context(TemporaryDirectory())) / "run"
        folder = stack.enter_context(RunFolder(path, manifest))
        progress = Progress(folder.questions)
        attempts: dict[int, int] = {}
        for line in folder.lines():
            if retry_failed and "error" in line:
                folder.forget(line["n"])
                attempts[line["n"]] = line.get("attempt", 1) + (line["error"]["cause"] == "reply")
            else:
                progress.add(line, before=True)
        on_progress(progress)
        submission = SUBMISSIONS.get(manifest["dataset"] or "")
        if progress.done < progress.questions:
            asking = Asking(program, submission, look_up, timeout, attempts)
            with closing(asking.lines(questions, folder, threads)) as found, closing(_unpaused(found)) as lines:
                for line in lines:
                    progress.add(line)
                    on_progress(progress)
                    if max_failures is not None and progress.failed_now >= max_failures:
                        raise RunError(_too_many(progress))
        elif folder.finished and all((path / name).exists() for name in files_of(submission)):
            return read_summary(path)
        return finish(folder, manifest["questions"]["skipped"], questions, submission)


def _too_many(progress: Progress) -> str:
    return (
        f"Stopped after {progress.failed_now} failures, with {progress.done} of {progress.questions} questions done. "
        f"The last: {progress.last_error.rstrip('.')}. Start the same command again to go on; --retry-failed asks "
        "those that failed once more."
    )


def _unpaused(lines: Iterable[Line]) -> Generator[Line, None, None]:
    """The same lines. From the first one on, when all is imported, the garbage collector passes over what is there:
    DSPy and LiteLLM are half a million objects, and to go through them stops every thread for up to 0.7 s."""
    frozen = False
    try:
        for line in lines:
            if not frozen and not gc.get_freeze_count():  # or somebody else has seen to it
                gc.freeze()
                frozen = True
            yield line
    finally:
        if frozen:
            gc.unfreeze()
