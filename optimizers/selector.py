"""Fits what the lexical Selector and Adder weigh pages by, on benchmark questions with known evidence.

    python -m polyhop.optimizers.selector --on 2wiki:2wiki_dev.json.gz:indexes/2wiki --on hotpotqa:hotpotqa_dev.json.gz

A chain is grown page by page, and at every step the next page competes with the others and with the end of the chain
(`polyhop.engines.lexical.signs`): a conditional logit (McFadden 1974). It is right to take any page of the evidence,
and to end where none is left. Which steps occur depends on the weights, so they are fitted several times, each time on
the steps that all weights so far led to (DAgger, Ross et al., arXiv 1011.0686). The report is cross-validated: every
question is judged by weights that were fitted without it. Needs scipy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..data.errors import PolyhopError
from ..engines.lexical.chain import GOES_ON, LONGEST
from ..engines.lexical.reading import Page, read_pages
from ..engines.lexical.signs import End, Judge, Signs
from ..eval.metrics import Scores, scores

Array = NDArray[np.float64]

_SIGNS, _ENDS = len(Signs._fields), len(End._fields)
_SIZE = 2 * _SIGNS + _ENDS  # weights of the first page, of those after it, and of the end
_ROUNDS = 3  # of going through the steps that the weights so far lead to
_SMALL = 3e-4  # cost of a weight of 1, where a sign's values have a deviation of 1
_CANDIDATES = 20  # as in PRISM


@dataclass(frozen=True)
class Step:
    """A choice: the pages that may come next, the signs of each and of the end, and which of them are right."""

    pages: tuple[Page, ...]
    signs: Array
    right: Array


@dataclass
class Case:
    """A question with its pages.

    Attributes:
        name: Of the set that it is from.
        gold: The numbers of the pages of its evidence; what was not found has a number of its own.
        weight: How much it counts.
        steps: Those it has been through, by the numbers of the pages chosen before.
    """

    name: str
    question: str
    judge: Judge
    gold: frozenset[str]
    weight: float
    steps: dict[frozenset[str], Step] = field(default_factory=dict)

    def fold(self, folds: int) -> int:
        """By the question, which may be in several sets."""
        return int.from_bytes(blake2b(self.question.encode(), digest_size=4).digest()) % folds

    def step(self, chosen: Sequence[Page]) -> Step:
        key = frozenset(page.number for page in chosen)
        if (found := self.steps.get(key)) is None:
            found = self.steps[key] = self._step(chosen)
        return found

    def _step(self, chosen: Sequence[Page]) -> Step:
        judged = self.judge.signs(chosen)
        pages = tuple(page for page, _ in judged)
        signs = np.zeros((len(pages) + bool(chosen), _SIZE))
        start = _SIGNS if chosen else 0
        for row, (_, one) in enumerate(judged):
            signs[row, start : start + _SIGNS] = one
        right = np.array([page.number in self.gold for page in pages], float)
        if chosen:
            signs[-1, 2 * _SIGNS :] = self.judge.end(chosen)
            right = np.append(right, float(not right.any()))
        return Step(pages, signs, right)

    def chain(self, weights: Array, goes_on: float) -> list[Page]:
        """The chain that some weights lead to."""
        chosen: list[Page] = []
        while len(chosen) < min(LONGEST, len(self.judge.pages)):
            step = self.step(chosen)
            values = step.signs @ weights
            odds = np.exp(values - values.max())
            best = int(odds[: len(step.pages)].argmax())
            if odds[best] / odds.sum() < goes_on:
                break
            chosen.append(step.pages[best])
        return chosen

    def score(self, weights: Array, goes_on: float) -> Scores:
        found = {page.number for page in self.chain(weights, goes_on)}
        return scores(len(found & self.gold), len(found), len(self.gold))


def fit(cases: Sequence[Case]) -> Array:
    """The weights, from nothing."""
    for case in cases:
        for size in range(LONGEST):
            case.step(case.judge.pages[:size])
            case.step([page for page in case.judge.pages if page.number in case.gold][:size])
    weights = _fit_steps(cases)
    for _ in range(_ROUNDS):
        for case in cases:
            case.step(case.chain(weights, GOES_ON))  # also where it ends
        weights = _fit_steps(cases, weights)
    return weights


def _fit_steps(cases: Sequence[Case], start: Array | None = None) -> Array:
    """The weights under which the right choices at all steps of the cases are likeliest."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    steps = [(step, case.weight / len(case.steps)) for case in cases for step in case.steps.values() if step.right.any()]
    signs = np.concatenate([step.signs for step, _ in steps])
    right = np.concatenate([step.right for step, _ in steps])
    weight = np.array([weight for _, weight in steps])
    weight /= weight.sum()
    sizes = [len(step.right) for step, _ in steps]
    starts, step_of = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    scale = signs.std(axis=0)
    scale[scale == 0] = 1.0
    signs = signs / scale

    def loss(weights: Array) -> tuple[float, Array]:
        values = signs @ weights
        odds = np.exp(values - np.maximum.reduceat(values, starts)[step_of])
        every, good = np.add.reduceat(odds, starts), np.add.reduceat(odds * right, starts) + 1e-12
        likelihood = weight @ np.log(good / every)
        gradient = signs.T @ ((odds / every[step_of] - odds * right / good[step_of]) * weight[step_of])
        return _SMALL * float(weights @ weights) / 2 - likelihood, gradient + _SMALL * weights

    at = np.zeros(_SIZE) if start is None else start * scale
    return np.asarray(minimize(loss, at, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x / scale)
