"""What a run will cost, before it starts: a few questions are asked, and the rest is taken to be like them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import dspy

from ..data.errors import PolyhopError
from .run import evaluate
from .scoring import LookUp

ASKED = 5


@dataclass(frozen=True)
class Expected:
    """What so many questions cost if they are like those that were asked.

    Attributes:
        asked: How many those were; ``failed`` of them have no answer.
        cached: Their calls that came from DSPy's cache. They cost nothing, now and when all are asked, and are not
            counted; the questions that were never asked would cost more.
        by_agent: ``lm_calls``, ``tokens_in``, ``tokens_out`` and, where every price is known, ``cost_usd``.
        seconds: With so many questions at once.
    """

    questions: int
    asked: int
    failed: int
    cached: int
    by_agent: dict[str, dict[str, float]]
    seconds: float


def expect(
    program: dspy.Module,
    few: Iterable[dspy.Example],
    questions: int,
    *,
    threads: int = 1,
    timeout: float | None = None,
    look_up: LookUp | None = None,
) -> Expected:
    """Ask a few questions, and multiply. Replies that DSPy's cache has cost nothing now, and are not counted.

    Raises:
        PolyhopError: none of them could be answered.
    """
    summary: dict[str, Any] = evaluate(program, few, threads=threads, timeout=timeout, look_up=look_up)
    counts = summary["counts"]
    if not counts["answered"]:
        raise PolyhopError(f"all of {counts['questions']} questions failed: {summary['failures'][0]['message']}")
    factor = questions / counts["questions"]
    by_agent = {
        agent: {name: value * factor for name, value in costs.items()} for agent, costs in summary["by_agent"].items()
    }
    paid = sum(costs["lm_calls"] for costs in summary["by_agent"].values())
    cached = max(0, round(summary["totals"]["lm_calls"] - paid))
    seconds = summary["timing"]["seconds_mean"] * questions / threads
    return Expected(questions, counts["questions"], counts["failed"], cached, by_agent, seconds)
