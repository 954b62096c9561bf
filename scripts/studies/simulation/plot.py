"""The picture of a study: LM calls against evidence recall, a panel a set of questions, a line an error rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from ....eval.chart import Field, document, dot, polyline, text
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
    parts = [text(_LEFT, 24, title, "start", "font-weight='bold'")]
    for n, dataset in enumerate(datasets):
        left = _LEFT + n * (_WIDTH + _GAP)
        parts += _panel([row for row in rows if row["dataset"] == dataset], dataset, left, colours, shapes)
    parts += _legend(_TOP + _HEIGHT + _BELOW + 20, colours, shapes)
    return document(width, height, parts)


def _panel(
    rows: Sequence[Row], dataset: str, left: float, colours: dict[float, str], shapes: dict[str, str]
) -> list[str]:
    def point(row: Row) -> tuple[float, float]:
        return row["metrics"]["lm_calls"], 100 * row["metrics"]["evidence_recall"]

    field = Field.around([point(row) for row in rows], left, _TOP, _WIDTH, _HEIGHT)
    title = f"{dataset} ({rows[0]['questions']} questions)"
    parts = field.draw(title, "LM calls a question", "evidence recall, passages (%)")
    for rate, colour in colours.items():
        points = {row["design"]: field.place(*point(row)) for row in rows if row["rate"] == rate}
        fixed = [(*points[name], DESIGNS[name].rounds) for name in points if name not in shapes]
        parts.append(polyline(((x, y) for x, y, _ in fixed), colour))
        for x, y, rounds in fixed:
            parts.append(dot(x, y, colour))
            parts.append(text(x, y - 8, str(rounds), "middle", f"fill='{colour}' font-size='11'"))
        parts += [_mark(*points[name], shape, colour) for name, shape in shapes.items() if name in points]
    return parts


def _legend(top: float, colours: dict[float, str], shapes: dict[str, str]) -> list[str]:
    parts = []
    for n, (rate, colour) in enumerate(colours.items()):
        y = top + n * _LEGEND
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + 24}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        parts.append(text(_LEFT + 32, y + 4, f"agents err at {100 * rate:g}%", "start"))
    left = _LEFT + 190
    parts.append(dot(left, top, "#444"))
    parts.append(text(left + 14, top + 4, "PRISM with N rounds: 1, 2, 3", "start"))
    for n, (name, shape) in enumerate(shapes.items(), 1):
        parts.append(_mark(left, top + n * _LEGEND, shape, "#444"))
        parts.append(text(left + 14, top + n * _LEGEND + 4, DESIGNS[name].label, "start"))
    return parts


def _mark(x: float, y: float, shape: str, colour: str) -> str:
    return f'<path d="{shape}" transform="translate({x} {y})" fill="{colour}" stroke="white" stroke-width="0.8"/>'
