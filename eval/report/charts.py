"""Small SVG charts: an interval in a table cell, and a plot with two axes.

Runs are told apart by their numbers; colors (``s1`` to ``s8`` of the style sheet) follow the light or dark theme.
Every chart has a text alternative, and the report shows its values in a table as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup, escape


class Point(NamedTuple):
    """A value, its tooltip, and its interval if it has one."""

    x: float
    y: float
    note: str
    low: float | None = None
    high: float | None = None


def bounds(values: Iterable[float]) -> tuple[float, float]:
    """Round ends of an axis for some values; it starts at 0 if they are all equal."""
    known = [value for value in values if value == value] or [0.0]
    low, high = min(known), max(known)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 0.0, 1.0
    step = _step(max(high - low, 0.05 * abs(high)))
    return floor(low / step) * step, max(ceil(high / step - 1e-9), floor(low / step) + 1) * step


def ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    return [n * step for n in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, of which at most five fit into the span."""
    power = 10.0 ** floor(log10(span / 5))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 5 + 1e-9)


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The points (cost, quality) that are not dominated: no other is as cheap and as good, and better in one."""
    return [
        n
        for n, (cost, quality) in enumerate(points)
        if not any(x <= cost and y >= quality and (x, y) != (cost, quality) for x, y in points)
    ]


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """An SVG element with escaped attributes and texts; ``class_`` and ``text_anchor`` become class and text-anchor."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{''.join(map(escape, children))}</{name}>")


def color(series: int) -> str:
    return f"s{series % 8 + 1}"


def mark(series: int, x: float = 9, y: float = 9, note: str = "") -> Markup:
    """The number of a run in a ring of its color."""
    parts = element("title", note), element("circle", r=7.5), element("text", series + 1, y=3.5)
    return element("g", *parts, class_=f"mark {color(series)}", transform=f"translate({x},{y})")


def whisker(mean: float, low: float, high: float, ends: tuple[float, float], series: int, note: str) -> Markup:
    """A value and its interval on the scale ``ends``, small enough for a table cell."""
    first, last = ends

    def at(value: float) -> float:
        return round(5 + 90 * (value - first) / (last - first), 1)

    line, zero = {"y1": 7, "y2": 7}, at(min(max(0.0, first), last))
    parts = [
        element("line", x1=at(first), x2=at(last), **line, class_="grid"),
        element("line", x1=zero, x2=zero, y1=2, y2=12, class_="axis"),
        element("line", x1=at(low), x2=at(high), **line, class_=f"{color(series)} bar"),
        element("circle", cx=at(mean), cy=7, r=3.5, class_=color(series)),
    ]
    size = {"width": 100, "height": 14, "viewBox": "0 0 100 14", "class_": "whisker"}
    return element("svg", element("title", note), *parts, **size, role="img", aria_label=note)


class Plot:
    """Two axes on which marks and lines are drawn.

    Args:
        x_range, y_range: Values at the ends of the axes; those of y are shares, shown in percent.
    """

    def __init__(
        self,
        title: str,
        x_label: str,
        y_label: str,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
    ) -> None:
        width, height = 392, 270  # three fit side by side into a window of 1280 pixels
        self.title, self.size = title, {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
        self._x, self._y, self._left, self._right, self._bottom = x_range, y_range, 60, width - 12, height - 42
        thousands, bottom = max(map(abs, x_range)) >= 10_000, self._bottom
        self._parts: list[Markup] = []
        for value in ticks(*y_range):
            y, name = self.y(value), f"{100 * value:.6g}"
            self._add("line", x1=self._left, x2=self._right, y1=y, y2=y, class_="grid")
            self._add("text", name, x=self._left - 7, y=y + 4, text_anchor="end")
        for value in ticks(*x_range):
            x, name = self.x(value), f"{value / 1000:.6g}k" if thousands and value else f"{value:.6g}"
            self._add("text", name, x=x, y=bottom + 17, text_anchor="middle")
            self._add("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis")
        self._add("line", x1=self._left, x2=self._right, y1=bottom, y2=bottom, class_="axis")
        middle = (bottom + 12) / 2
        self._add("text", y_label, x=12, y=middle, transform=f"rotate(-90 12 {middle})", text_anchor="middle")
        self._add("text", x_label, x=(self._left + self._right) / 2, y=bottom + 35, text_anchor="middle")

    def x(self, value: float) -> float:
        low, high = self._x
        return round(self._left + (self._right - self._left) * (value - low) / (high - low), 1)

    def y(self, value: float) -> float:
        low, high = self._y
        return round(self._bottom - (self._bottom - 12) * (value - low) / (high - low), 1)

    def svg(self) -> Markup:
        named = {"role": "img", "aria_label": self.title, "class_": "plot"}
        return element("svg", element("title", self.title), *self._parts, **self.size, **named)

    def _add(self, name: str, *children: object, **attributes: object) -> None:
        self._parts.append(element(name, *children, **attributes))

    def mark(self, point: Point, series: int) -> None:
        x = self.x(point.x)
        if point.low is not None and point.high is not None:
            self._add("line", x1=x, x2=x, y1=self.y(point.low), y2=self.y(point.high), class_=f"{color(series)} bar")
        self._parts.append(mark(series, x, self.y(point.y), point.note))

    def line(self, points: Iterable[tuple[float, float]], class_: str) -> None:
        self._add("polyline", points=" ".join(f"{self.x(x)},{self.y(y)}" for x, y in points), class_=f"line {class_}")
