"""The programs that the study compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import dspy

from ....programs import PolyHop, Prism, tunables

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
    return partial(Prism, None, k=_DEPTH, rounds=rounds)


def _polyhop(**values: float) -> Callable[[], dspy.Module]:
    def make() -> dspy.Module:
        program = PolyHop(None, k=_DEPTH)
        for name, value in values.items():
            tunables(program)[name].value = value
        return program

    return make


DESIGNS: dict[str, Design] = {
    **{f"prism-{n}": Design(f"PRISM, N = {n}", _prism(n, "fixed"), n) for n in (1, 2, 3)},
    "prism-stable": Design("PRISM, N <= 3, until a round changes nothing", _prism(3, "stable")),
    "prism-complete": Design("PRISM, N <= 3, until nothing is added", _prism(3, "complete")),
    "polyhop": Design("polyhop", _polyhop()),
    "polyhop-once": Design("polyhop, one round", _polyhop(rounds=1)),
    "polyhop-always": Design("polyhop, six rounds", _polyhop(rounds=6, least_gain=0.0)),
}
"""By the names of their folders."""

BASELINE = "prism-3"
"""The paper's N."""
