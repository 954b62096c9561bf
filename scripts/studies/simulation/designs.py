"""The programs that the study compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import dspy

from ....programs import PolyHop, Prism

_DEPTH = 20  # candidates: every context of a question in the distractor setting


@dataclass(frozen=True)
class Design:
    """A program.

    Attributes:
        rounds: Its fixed number of rounds; None if it is adaptive.
    """

    label: str
    make: Callable[[], dspy.Module]
    rounds: int | None = None


def _prism(rounds: int, stop: str) -> Callable[[], dspy.Module]:
    return partial(Prism, None, k=_DEPTH, rounds=rounds, stop=stop)


def _polyhop(least_gain: float | None = None) -> Callable[[], dspy.Module]:
    def make() -> dspy.Module:
        program = PolyHop(None, k=_DEPTH, rounds=3)
        if least_gain is not None:
            program.least_gain.value = least_gain
        return program

    return make


DESIGNS: dict[str, Design] = {
    **{f"prism-{n}": Design(f"PRISM, N = {n}", _prism(n, "never"), n) for n in (1, 2, 3)},
    "prism-stable": Design("PRISM, N <= 3, until a round changes nothing", _prism(3, "stable")),
    "prism-complete": Design("PRISM, N <= 3, until nothing is added", _prism(3, "complete")),
    "polyhop": Design("polyhop, N <= 3, until nothing is required", _polyhop()),
    "polyhop-patient": Design("polyhop, another round for a gain of 0.2", _polyhop(least_gain=0.2)),
}
"""By the names of their folders."""

BASELINE = "prism-3"
"""The paper's N."""
