"""The picture of a study, as SVG: LM calls against evidence recall, a panel a set of questions, a line an error rate.

Written by hand, for two kinds of mark on two axes are no reason to need a library.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import cycle
from math import ceil, floor
from typing import Any

from .designs import DESIGNS

_COLOURS = ("#3b528b", "#21918c", "#e08a1e", "#c0392b", "#7e57c2", "#555555")
_SHAPES = ("M-5,-5H5V5H-5Z", "M0,-6.5L6,4.5H-6Z", "M0,-6.5L6.5,0L0,6.5L-6.5,0Z", "M0,6.5L6,-4.5H-6Z", "M-6,-2H6V2H-6Z")
_WIDTH, _HEIGHT = 400, 320  # of a panel's field
_LEFT, _TOP, _GAP, _BELOW = 60, 60, 70, 50
_LEGEND, _LEGEND_WIDTH = 22, 620  # a line of it; all of it

Row = dict[str, Any]


def plot(rows: Sequence[Row], title: str) -> str:
    """An SVG document of the rows of `program_rows`.

    The points of a line are the designs with a fixed number of rounds; those that decide it themselves have marks of
    their own in the colour of the error rate.
    """
    datasets, rates, designs = (list(dict.fromkeys(row[key] for row in rows)) for key in ("dataset", "rate", "design"))
    shapes = dict(zip((name for name in designs if DESIGNS[name].rounds is None), cycle(_SHAPES), strict=False))
    colours = {rate: _COLOURS[n % len(_COLOURS)] for n, rate in enumerate(rates)}
    legend = max(len(rates), len(shapes) + 1) * _LEGEND
    width = max(_LEGEND_WIDTH, _LEFT + len(datasets) * (_WIDTH + _GAP))
    height = _TOP + _HEIGHT + _BELOW + legend + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(_LEFT, 24, title, "start", "font-weight='bold'"),
    ]
    for n, dataset in enumerate(datasets):
        left = _LEFT + n * (_WIDTH + _GAP)
        parts += _panel([row for row in rows if row["dataset"] == dataset], dataset, left, colours, shapes)
    parts += _legend(_TOP + _HEIGHT + _BELOW + 20, colours, shapes)
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """From values to places: between round numbers around the values."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        span = max(max(values) - min(values), 1e-3)
        steps = (factor * 10.0**power for power in range(-4, 9) for factor in (1, 2, 5))
        self.step = next(step for step in steps if span / step <= 6)
        self.low, self.high = floor(min(values) / self.step) - 0.5, ceil(max(values) / self.step) + 0.5
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        share = (value / self.step - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[float]:
        return [n * self.step for n in range(ceil(self.low), floor(self.high) + 1)]


def _panel(
    rows: Sequence[Row], dataset: str, left: float, colours: dict[float, str], shapes: dict[str, str]
) -> list[str]:
    across = _Axis([row["metrics"]["lm_calls"] for row in rows], left, left + _WIDTH)
    up = _Axis([100 * row["metrics"]["evidence_recall"] for row in rows], _TOP + _HEIGHT, _TOP)
    bottom = _TOP + _HEIGHT
    parts = [f'<rect x="{left}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#888"/>']
    for value in across.ticks:
        x = across.place(value)
        parts += [_grid(x, _TOP, x, bottom), _text(x, bottom + 18, f"{value:g}", "middle")]
    for value in up.ticks:
        y = up.place(value)
        parts += [_grid(left, y, left + _WIDTH, y), _text(left - 6, y + 4, f"{value:.6g}", "end")]
    parts.append(_text(left + _WIDTH / 2, _TOP - 10, f"{dataset} ({rows[0]['questions']} questions)", "middle"))
    parts.append(_text(left + _WIDTH / 2, bottom + 38, "LM calls a question", "middle"))
    turn = f"transform='rotate(-90 {left - 42} {_TOP + _HEIGHT / 2})'"
    parts.append(_text(left - 42, _TOP + _HEIGHT / 2, "evidence recall, passages (%)", "middle", turn))
    for rate, colour in colours.items():
        points = {
            row["design"]: (across.place(row["metrics"]["lm_calls"]), up.place(100 * row["metrics"]["evidence_recall"]))
            for row in rows
            if row["rate"] == rate
        }
        fixed = [(*points[name], DESIGNS[name].rounds) for name in points if name not in shapes]
        line = " ".join(f"{x},{y}" for x, y, _ in fixed)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for x, y, rounds in fixed:
            parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
            parts.append(_text(x, y - 8, str(rounds), "middle", f"fill='{colour}' font-size='11'"))
        parts += [_mark(*points[name], shape, colour) for name, shape in shapes.items() if name in points]
    return parts


def _legend(top: float, colours: dict[float, str], shapes: dict[str, str]) -> list[str]:
    parts = []
    for n, (rate, colour) in enumerate(colours.items()):
        y = top + n * _LEGEND
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + 24}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        parts.append(_text(_LEFT + 32, y + 4, f"agents err at {100 * rate:g}%", "start"))
    left = _LEFT + 190
    parts.append(f'<circle cx="{left}" cy="{top}" r="4" fill="#444"/>')
    parts.append(_text(left + 14, top + 4, "PRISM with N rounds: 1, 2, 3", "start"))
    for n, (name, shape) in enumerate(shapes.items(), 1):
        parts.append(_mark(left, top + n * _LEGEND, shape, "#444"))
        parts.append(_text(left + 14, top + n * _LEGEND + 4, DESIGNS[name].label, "start"))
    return parts


def _mark(x: float, y: float, shape: str, colour: str) -> str:
    return f'<path d="{shape}" transform="translate({x} {y})" fill="{colour}" stroke="white" stroke-width="0.8"/>'


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {more}>{escape(text)}</text>'
