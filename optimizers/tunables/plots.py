"""Figures of a search: its history, its Pareto front, its importances. Each is an SVG document, or a part of a page.

Path("history.svg").write_text(history(search.result.trials))
page.append(history(search.result.trials, inline))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...eval.chart import MUTED, Field, Finish, document, dot, line, polyline, text
from .result import StudyResult, TrialRecord, score_of

_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 50, 560, 320
_SIZE = (_LEFT + _WIDTH + 30, _TOP + _HEIGHT + 60)
_BAR, _NAMES, _BARS = 24, 240, 360  # of the importances: the height of a line, the width of names and bars
_BEST, _COMPLETE, _PRUNED = "var(--series-2, #c0392b)", "var(--series-1, #3b528b)", "var(--muted, #bbbbbb)"
_MAX_NOTES = 2_000  # values of tunables in notes, about 60 kB; with more, notes show the score alone


def history(trials: Sequence[TrialRecord], finish: Finish = document) -> str:
    """Score by trial: complete ones in blue, pruned ones in grey, and a line for the best so far."""
    shown = [trial for trial in trials if trial.score is not None]
    field = _field([(trial.number, score_of(trial)) for trial in shown])
    parts = field.draw("All trials and the best complete one so far", "trial", "score")
    brief = sum(len(trial.values) for trial in shown) > _MAX_NOTES
    so_far: list[tuple[float, float]] = []
    for trial in shown:
        complete, score = trial.state == "complete", score_of(trial)
        parts.append(_dot(field, trial.number, trial, _COMPLETE if complete else _PRUNED, brief))
        if complete and (not so_far or score >= so_far[-1][1]):
            so_far += [(trial.number, so_far[-1][1])] if so_far else []
            so_far.append((trial.number, score))
    if so_far:
        so_far.append((shown[-1].number, so_far[-1][1]))
    parts.append(polyline((field.place(*point) for point in so_far), _BEST))
    return finish(*_SIZE, parts)


def front(result: StudyResult, cost: str, finish: Finish = document) -> str:
    """Score by cost: all complete trials, the Pareto front as a line, the chosen trial in red."""
    shown = [trial for trial in result.trials if trial.state == "complete" and cost in trial.costs]
    field = _field([(trial.costs[cost], score_of(trial)) for trial in shown])
    parts = field.draw("Score by cost; the line is the Pareto front", _named(cost), "score")
    brief = sum(len(trial.values) for trial in shown) > _MAX_NOTES
    parts += [_dot(field, trial.costs[cost], trial, _PRUNED, brief) for trial in shown]
    parts.append(polyline((field.place(trial.costs[cost], score_of(trial)) for trial in result.front), _COMPLETE))
    parts += [_dot(field, trial.costs[cost], trial, _COMPLETE, brief) for trial in result.front]
    parts.append(_dot(field, result.best.costs[cost], result.best, _BEST))
    return finish(*_SIZE, parts)


def importances(result: StudyResult, finish: Finish = document) -> str:
    """The importance of each tunable, as bars."""
    parts = [text(20, 28, "Share of the variance of the score that each tunable explains", "start")]
    most = max(result.importances.values(), default=1.0) or 1.0
    for n, (name, share) in enumerate(result.importances.items()):
        y = _TOP + n * _BAR
        length = round(_BARS * share / most, 1)
        parts.append(text(_NAMES - 8, y + 15, name, "end"))
        parts.append(f'<rect x="{_NAMES}" y="{y + 3}" width="{length}" height="{_BAR - 8}" fill="{_COMPLETE}"/>')
        parts.append(text(_NAMES + length + 6, y + 15, f"{100 * share:.1f}%", "start"))
    bottom = _TOP + max(len(result.importances), 1) * _BAR
    parts.append(line(_NAMES, _TOP, _NAMES, bottom, MUTED))
    return finish(_NAMES + _BARS + 80, bottom + 20, parts)


def _field(points: list[tuple[float, float]]) -> Field:
    return Field.around(points, _LEFT, _TOP, _WIDTH, _HEIGHT)


def _dot(field: Field, x: float, trial: TrialRecord, colour: str, brief: bool = False) -> str:
    score = score_of(trial)
    note = f"trial {trial.number}, {trial.state}: {score:.4g}"
    if not brief:
        note += f"\n{_listed(trial.values)}"
    return dot(*field.place(x, score), colour, note)


def _listed(values: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items()
    )


def _named(cost: str) -> str:
    return f"{cost.replace('_', ' ')} per question"
