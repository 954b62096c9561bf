"""Pictures of a search, each one SVG document: its history, its front, what matters.

Path("history.svg").write_text(history(search.outcome))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...eval.chart import Field, document, dot, line, polyline, text
from .outcome import Outcome
from .study import Trial

_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 50, 560, 320
_BAR, _NAMES, _BARS = 24, 240, 360  # of the importances: the height of a line, the width of names and bars
_BEST, _COMPLETE, _PRUNED = "#c0392b", "#3b528b", "#bbbbbb"


def history(outcome: Outcome) -> str:
    """Score by trial: complete ones in blue, pruned ones in grey, and a line for the best so far."""
    shown = [trial for trial in outcome.trials if trial.scores]
    field = _field([(trial.slot, trial.score) for trial in shown])
    parts = field.draw("Every trial, and the best complete one so far", "trial", "score")
    for trial in shown:
        parts.append(_dot(field, trial.slot, trial, _COMPLETE if trial.state == "complete" else _PRUNED))
    so_far: list[tuple[float, float]] = []
    for trial in shown:
        if trial.state == "complete" and (not so_far or trial.score >= so_far[-1][1]):
            so_far += (
                [(trial.slot, so_far[-1][1]), (trial.slot, trial.score)] if so_far else [(trial.slot, trial.score)]
            )
    if so_far:
        so_far.append((shown[-1].slot, so_far[-1][1]))
    parts.append(polyline((field.place(*point) for point in so_far), _BEST))
    return _page(parts)


def front(outcome: Outcome, cost: str) -> str:
    """Score by a cost: every complete trial, the Pareto front as a line, and the one that was chosen in red."""
    shown = [trial for trial in outcome.trials if trial.state == "complete" and cost in trial.costs]
    field = _field([(trial.costs[cost], trial.score) for trial in shown])
    parts = field.draw("Score against cost; the line is what nothing beats in both", _named(cost), "score")
    parts += [_dot(field, trial.costs[cost], trial, _PRUNED) for trial in shown]
    parts.append(polyline((field.place(trial.costs[cost], trial.score) for trial in outcome.front), _COMPLETE))
    parts += [_dot(field, trial.costs[cost], trial, _COMPLETE) for trial in outcome.front]
    parts.append(_dot(field, outcome.best.costs[cost], outcome.best, _BEST))
    return _page(parts)


def importances(outcome: Outcome) -> str:
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
    parts.append(line(_NAMES, _TOP, _NAMES, bottom, "#888"))
    return document(_NAMES + _BARS + 80, bottom + 20, parts)


def _field(points: list[tuple[float, float]]) -> Field:
    return Field.around(points, _LEFT, _TOP, _WIDTH, _HEIGHT)


def _dot(field: Field, x: float, trial: Trial, colour: str) -> str:
    told = f"trial {trial.slot}, {trial.state}: {trial.score:.4g}\n{_listed(trial.values)}"
    return dot(*field.place(x, trial.score), colour, told)


def _listed(values: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items()
    )


def _named(cost: str) -> str:
    return f"{cost.replace('_', ' ')} a question"


def _page(parts: list[str]) -> str:
    return document(_LEFT + _WIDTH + 30, _TOP + _HEIGHT + 60, parts)
