"""SVG scatter and line charts, without a plotting library.

Colors are CSS variables with defaults, ``var(--grid, #ddd)``: `inline` keeps them, for the light and dark themes of a
report; `document` replaces them by the defaults, on white.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor

MUTED, GRID = "var(--muted, #888)", "var(--grid, #ddd)"

Finish = Callable[[float, float, Iterable[str]], str]
"""Makes a picture of a width, a height and parts: `document` or `inline`."""

_COLOUR = re.compile(r'"var\((--[a-z0-9-]+), (#[0-9a-f]+)\)"')  # an attribute: in texts a quote is escaped


class Axis:
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


@dataclass(frozen=True)
class Field:
    """A rectangle for points, with a frame, a grid and the names of both axes."""

    across: Axis
    up: Axis
    left: float
    top: float
    width: float
    height: float

    @classmethod
    def around(
        cls, points: Sequence[tuple[float, float]], left: float, top: float, width: float, height: float
    ) -> Field:
        """One that has room for these points."""
        across, up = Axis([x for x, _ in points], left, left + width), Axis([y for _, y in points], top + height, top)
        return cls(across, up, left, top, width, height)

    def place(self, x: float, y: float) -> tuple[float, float]:
        return self.across.place(x), self.up.place(y)

    def draw(self, title: str, x_name: str, y_name: str) -> list[str]:
        left, top, right, bottom = self.left, self.top, self.left + self.width, self.top + self.height
        parts = [
            f'<rect x="{left}" y="{top}" width="{self.width}" height="{self.height}" fill="none" stroke="{MUTED}"/>'
        ]
        for value in self.across.ticks:
            x = self.across.place(value)
            parts += [line(x, top, x, bottom), text(x, bottom + 18, f"{value:g}", "middle")]
        for value in self.up.ticks:
            y = self.up.place(value)
            parts += [line(left, y, right, y), text(left - 6, y + 4, f"{value:.6g}", "end")]
        parts.append(text(left + self.width / 2, top - 10, title, "middle"))
        parts.append(text(left + self.width / 2, bottom + 38, x_name, "middle"))
        turn = f"transform='rotate(-90 {left - 42} {top + self.height / 2})'"
        parts.append(text(left - 42, top + self.height / 2, y_name, "middle", turn))
        return parts


def document(width: float, height: float, parts: Iterable[str]) -> str:
    """An SVG document of some parts, on white."""
    drawn = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="13">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *parts,
            "</svg>",
            "",
        ]
    )
    return _COLOUR.sub(r'"\2"', drawn)


def inline(width: float, height: float, parts: Iterable[str]) -> str:
    """The same as a part of a page, in its colours; as wide as there is room."""
    drawn = "".join(
        [
            f'<svg viewBox="0 0 {width} {height}" width="{width}" style="max-width:100%;height:auto" fill="var(--ink)" '
            'font-family="sans-serif" font-size="13">',
            *parts,
            "</svg>",
        ]
    )
    return _COLOUR.sub(r'"var(\1)"', drawn.encode("utf-8", "replace").decode())  # half characters are nobody's


def line(x1: float, y1: float, x2: float, y2: float, colour: str = GRID) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>'


def polyline(points: Iterable[tuple[float, float]], colour: str) -> str:
    places = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def dot(x: float, y: float, colour: str, note: str = "") -> str:
    """A point; the note is shown where the mouse is on it."""
    told = f"<title>{escape(note)}</title>" if note else ""
    return f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}">{told}</circle>'


def text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {more}>{escape(words)}</text>'
