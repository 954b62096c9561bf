"""From a question to its line: ask it, read what the program returned or why it failed, and score it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from ..data.passages import Evidence, Passage
from ..engines.costs import Ledger
from ..engines.diagnosis import CutReplyError, EmptyReplyError, OverlongReplyError, RefusedError
from ..engines.models import explain
from .folder import Line, RunFolder
from .scoring import LookUp, Outcome, judge
from .submissions import Submission
from .window import Task, Window

_GRACE = 1.0  # seconds in which questions may still end when a run is stopped


@dataclass(frozen=True)
class Asking:
    """Questions in, lines out.

    Attributes:
        submission: Makes the official prediction of each question, if its benchmark has such a thing.
        look_up: See `judge`.
        timeout: Seconds that a question may take.
        attempts: Of the questions that are asked again: which attempt this is.
    """

    program: dspy.Module
    submission: Submission | None
    look_up: LookUp | None
    timeout: float | None
    attempts: Mapping[int, int]

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
