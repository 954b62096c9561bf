"""Whether a stage's program is better than the one before it, and not by luck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...eval.statistics import compare
from ..measure import Measured


@dataclass(frozen=True)
class Verdict:
    """What the paired test on the validation questions says.

    Attributes:
        kept: Whether the new program takes the place of the old one.
        why: In a few words.
        score, gain, p: The new program's mean score, its lead, and the two-sided p-value of a permutation test.
        cost, saved, p_cost: The same of the cost; None without one.
    """

    kept: bool
    why: str
    score: float
    gain: float
    p: float
    cost: float | None = None
    saved: float | None = None
    p_cost: float | None = None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def judge(new: Measured, old: Measured, *, cost: str | None, level: float, seed: int) -> Verdict:
    """Keep what scores better with a p-value below ``level``, or what costs so and scores no less.

    A program that failed on a question that the old one could answer has 0 there, and loses by it.
    """
    numbers = sorted(old.scores)
    scored = compare([new.scores[n] for n in numbers], [old.scores[n] for n in numbers], seed=seed)
    gain, p = scored.difference.mean, scored.p_permutation
    better = gain > 0 and p < level
    if cost is None:
        why = "better" if better else "no better" if gain <= 0 else "better by luck, for all that can be told"
        return Verdict(better, why, new.score, gain, p)
    spent, before = _costs(new.costs, cost, numbers), _costs(old.costs, cost, numbers)
    costed = compare(before, spent, seed=seed)
    saved, p_cost = costed.difference.mean, costed.p_permutation
    cheaper = saved > 0 and p_cost < level and gain >= 0
    why = "better" if better else "cheaper, and no worse" if cheaper else "neither better nor cheaper"
    return Verdict(better or cheaper, why, new.score, gain, p, new.cost(cost), saved, p_cost)


def _costs(costs: Mapping[int, Mapping[str, float]], name: str, numbers: list[int]) -> list[float]:
    return [costs[n].get(name, float("nan")) for n in numbers]
