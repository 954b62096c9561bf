"""Pictures of a search: its history, its front, what matters. Each is an SVG document, or a part of a page.

Path("history.svg").write_text(history(search.outcome))
page.append(history(search.outcome, inline))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, Protocol

from ...eval.chart import MUTED, Field, Finish, document, dot, line, polyline, text

_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 50, 560, 320
_SIZE = (_LEFT + _WIDTH + 30, _TOP + _HEIGHT + 60)
_BAR, _NAMES, _BARS = 24, 240, 360  # of the importances: the height of a line, the width of names and bars
_BEST, _COMPLETE, _PRUNED = "var(--series-2, #c0392b)", "var(--series-1, #3b528b)", "var(--muted, #bbbbbb)"
_TOLD = 2_000  # values of tunables that notes hold, some 60 kB; beyond that they say the scores alone


class Tried(Protocol):
    """What is drawn of a trial: `study.Trial`, or what is left of one in a file. Its score is NaN if it has none."""

    @property
    def slot(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def costs(self) -> Mapping[str, float]: ...
    @property
    def score(self) -> float: ...


class Going(Protocol):
    """What is drawn of a search that may not have ended."""

    @property
    def trials(self) -> Sequence[Tried]: ...


class Found(Going, Protocol):
    """What is drawn of a search: `outcome.Outcome`, or what is left of one in a file."""

    @property
    def best(self) -> Tried: ...
    @property
    def front(self) -> Sequence[Tried]: ...
    @property
    def importances(self) -> Mapping[str, float]: ...


def history(outcome: Going, finish: Finish = document) -> str:
    """Score by trial: complete ones in blue, pruned ones in grey, and a line for the best so far."""
    shown = [trial for trial in outcome.trials if not isnan(trial.score)]
    field = _field([(trial.slot, trial.score) for trial in shown])
    parts = field.draw("Every trial, and the best complete one so far", "trial", "score")
    brief = sum(len(trial.values) for trial in shown) > _TOLD
    for trial in shown:
        parts.append(_dot(field, trial.slot, trial, _COMPLETE if trial.state == "complete" else _PRUNED, brief))
    so_far: list[tuple[float, float]] = []
    for trial in shown:
        if trial.state == "complete" and (not so_far or trial.score >= so_far[-1][1]):
            so_far += (
                [(trial.slot, so_far[-1][1]), (trial.slot, trial.score)] if so_far else [(trial.slot, trial.score)]
            )
    if so_far:
        so_far.append((shown[-1].slot, so_far[-1][1]))
    parts.append(polyline((field.place(*point) for point in so_far), _BEST))
    return finish(*_SIZE, parts)


def front(outcome: Found, cost: str, finish: Finish = document) -> str:
    """Score by a cost: every complete trial, the Pareto front as a line, and the one that was chosen in red."""
    shown = [trial for trial in outcome.trials if trial.state == "complete" and cost in trial.costs]
    field = _field([(trial.costs[cost], trial.score) for trial in shown])
    parts = field.draw("Score against cost; the line is what nothing beats in both", _named(cost), "score")
    brief = sum(len(trial.values) for trial in shown) > _TOLD
    parts += [_dot(field, trial.costs[cost], trial, _PRUNED, brief) for trial in shown]
    parts.append(polyline((field.place(trial.costs[cost], trial.score) for trial in outcome.front), _COMPLETE))
    parts += [_dot(field, trial.costs[cost], trial, _COMPLETE, brief) for trial in outcome.front]
    parts.append(_dot(field, outcome.best.costs[cost], outcome.best, _BEST))
    return finish(*_SIZE, parts)


def importances(outcome: Found, finish: Finish = document) -> str:
    """How much each tunable matters, as bars."""
    parts = [text(20, 28, "What makes the difference between good and bad trials", "start")]
    most = max(outcome.importances.values(), default=1.0) or 1.0
    for n, (name, share) in enumerate(outcome.importances.items()):
        y = _TOP + n * _BAR
        length = round(_BARS * share / most, 1)
        parts.append(text(_NAMES - 8, y + 15, name, "end"))
        parts.append(f'<rect x="{_NAMES}" y="{y + 3}" width="{length}" height="{_BAR - 8}" fill="{_COMPLETE}"/>')
        parts.append(text(_NAMES + length + 6, y + 15, f"{100 * share:.1f}%", "start"))
    bottom = _TOP + max(len(outcome.importances), 1) * _BAR
    parts.append(line(_NAMES, _TOP, _NAMES, bottom, MUTED))
    return finish(_NAMES + _BARS + 80, bottom + 20, parts)


def _field(points: list[tuple[float, float]]) -> Field:
    return Field.around(points, _LEFT, _TOP, _WIDTH, _HEIGHT)


def _dot(field: Field, x: float, trial: Tried, colour: str, brief: bool = False) -> str:
    told = f"trial {trial.slot}, {trial.state}: {trial.score:.4g}"
    if not brief:
        told += f"\n{_listed(trial.values)}"
    return dot(*field.place(x, trial.score), colour, told)


def _listed(values: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items()
    )


def _named(cost: str) -> str:
    return f"{cost.replace('_', ' ')} a question"
