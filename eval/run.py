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
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from traceback import extract_tb
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from ..data.passages import Evidence, Passage
from ..engines.costs import Ledger
from ..engines.diagnosis import CutReplyError, EmptyReplyError, OverlongReplyError, RefusedError
from ..engines.models import explain
from ..engines.secrets import learn_models
from .folder import Line, RunError, RunFolder, read_summary
from .manifest import describe
from .scoring import LookUp, Outcome, judge
from .submissions import SUBMISSIONS, Submission
from .summary import files_of, finish
from .window import Task, Window

_GRACE = 1.0  # seconds in which questions may still end when a run is stopped


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
            asking = _Asking(program, submission, look_up, timeout, attempts)
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
    if gc.get_freeze_count():  # somebody else has seen to it
        yield from lines
        return
    try:
        for n, line in enumerate(lines):
            if n == 0:
                gc.freeze()
            yield line
    finally:
        gc.unfreeze()


@dataclass(frozen=True)
class _Asking:
    """Questions in, lines out."""

    program: dspy.Module
    submission: Submission | None
    look_up: LookUp | None
    timeout: float | None
    attempts: Mapping[int, int]  # of the questions that are asked again

    def lines(self, questions: Iterable[dspy.Example], folder: RunFolder, threads: int) -> Generator[Line, None, None]:
        """The lines of the questions that have none yet, each when it is in the folder."""
        window: Window[Line] = Window(threads, self.timeout)
        try:
            for n, example in enumerate(questions):
                if folder.has(n):
                    continue
                if window.full:
                    yield folder.append(window.next())
                window.start(self._task(n, example))
            while window.busy:
                yield folder.append(window.next())
        finally:  # on whatever stops the run
            for line in window.finished(_GRACE):
                folder.append(line)

    def _task(self, n: int, example: dspy.Example) -> Task[Line]:
        ledger = Ledger(self.attempts.get(n, 1))

        def timed_out() -> Line:
            error = {"cause": "timeout", "type": "Timeout", "message": f"no answer after {self.timeout:g} s"}
            return self._line(n, example, None, ledger, {"seconds": self.timeout or 0.0}, {"error": error})

        return Task(lambda: self._ask(n, example, ledger), ledger.abandoned.set, timed_out)

    def _ask(self, n: int, example: dspy.Example, ledger: Ledger) -> Line:
        """Ask one question, in a thread of its own."""
        start = perf_counter()
        outcome: Outcome | None = None
        try:
            # Histories would keep every prompt of the last 10,000 calls.
            with dspy.context(usage_tracker=ledger, disable_history=True):
                prediction = self.program(**example.inputs())
            seconds = perf_counter() - start
            outcome, details = _read(prediction)
            counted = _counted(prediction)
        except Exception as error:  # noqa: BLE001  # whatever it is, it must not take the other questions with it
            seconds, counted = perf_counter() - start, {}
            details = {"error": _described(error)}
        return self._line(n, example, outcome, ledger, {**counted, "seconds": seconds}, details)

    def _line(
        self,
        n: int,
        example: dspy.Example,
        outcome: Outcome | None,
        ledger: Ledger,
        counted: Mapping[str, float],
        details: Line,
    ) -> Line:
        gold, scores, in_vain = judge(example, outcome, self.look_up)
        costs = {**ledger.costs(), **counted}
        return {
            "n": n,
            "id": str(example.get("id") or n),
            "question": example.question,
            "hops": example.get("hops"),
            "kind": example.get("kind"),
            "gold_answers": gold.answers,
            "gold": gold.passages,
            "gold_not_found": in_vain,
            "answer": outcome.answer if outcome else None,
            "evidence": [_evidence(item) for item in outcome.evidence] if outcome else [],
            "ranking": [passage.id for passage in outcome.ranking] if outcome else [],
            **details,
            "scores": scores,
            "costs": {"lm_calls_critical_path": costs["lm_calls"], "searches": 0, **costs},
            "costs_by_agent": ledger.by_agent(),
            "incidents": ledger.incidents,
            **({"attempt": ledger.attempt} if ledger.attempt > 1 else {}),
            "official": self.submission.predict(example, outcome)._asdict() if self.submission else None,
        }


class _NoPrediction(TypeError):
    """What a program returned lacks what makes a prediction."""


def _read(prediction: Any) -> tuple[Outcome, Line]:
    """The parts of a prediction: what is scored, and what is only recorded.

    Raises:
        _NoPrediction: it is none.
    """
    answer = getattr(prediction, "answer", None)
    if not isinstance(answer, str):
        raise _NoPrediction(f"the program returned no answer that is a string, but {answer!r}")
    evidence, ranking = tuple(prediction.get("evidence") or ()), tuple(prediction.get("ranking") or ())
    if not all(isinstance(item, Evidence) for item in evidence) or not all(isinstance(p, Passage) for p in ranking):
        raise _NoPrediction("evidence must be a sequence of Evidence, and ranking one of Passage")
    beyond = [item.fact for item in evidence if item.sentence is not None and not 0 <= item.sentence < _sentences(item)]
    if beyond:
        raise _NoPrediction(f"the passage {beyond[0].passage_id!r} has no sentence {beyond[0].sentence}")
    confidence, trace = prediction.get("confidence"), prediction.get("trace")
    return Outcome(answer, evidence, ranking), {
        "confidence": confidence if isinstance(confidence, int | float) and isfinite(confidence) else None,
        "stop_reason": str(prediction.get("stop_reason") or ""),
        "trace": trace.to_records() if trace is not None else [],
    }


def _sentences(item: Evidence) -> int:
    return len(item.passage.sentences)


def _counted(prediction: dspy.Prediction) -> dict[str, float]:
    """What the trace counts; replies from a cache are calls there."""
    trace = prediction.get("trace")
    if trace is None:
        return {}
    names = ("lm_calls", "lm_calls_critical_path", "searches")
    return {name: getattr(trace, name) for name in names}


_CAUSES: dict[type[Exception], str] = {
    AdapterParseError: "reply",
    OverlongReplyError: "reply",
    CutReplyError: "reply",
    EmptyReplyError: "reply",
    RefusedError: "refused",
    LMError: "model",
    _NoPrediction: "prediction",
}


def _described(error: Exception) -> dict[str, str]:
    """Why a question failed: the model's "reply" could not be parsed, the "model" could not be reached or failed, it
    "refused" to answer, what came back is no "prediction", or the program raised an "exception". ("timeout" is the
    sixth cause.)"""
    cause = next((name for kind, name in _CAUSES.items() if isinstance(error, kind)), "exception")
    last = extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
    return {"cause": cause, "type": type(error).__name__, "message": explain(error), "at": place}


def _evidence(item: Evidence) -> dict[str, Any]:
    return {
        "passage_id": item.passage.id,
        "title": item.passage.title,
        "sentence": item.sentence,
        "text": item.text,
    }
