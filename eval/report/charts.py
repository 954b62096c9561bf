"""Small SVG charts: an interval in a table cell, and a plot with two axes.

Runs are told apart by their numbers; colors (``s1`` to ``s8`` of the style sheet) follow the light or dark theme.
Every chart has a text alternative, and the report shows its values in a table as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup, escape

_COLORS = 8


class Point(NamedTuple):
    """A value, its tooltip, and its interval if it has one."""

    x: float
    y: float
    note: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scale:
    """Maps values from [low, high] to pixels from start to end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def bounds(values: Iterable[float]) -> tuple[float, float]:
    """Round ends of an axis for some values; it starts at 0 if they are all equal."""
    known = [value for value in values if value == value]
    low, high = min(known, default=0.0), max(known, default=0.0)
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
    return f"s{series % _COLORS + 1}"


def mark(series: int, x: float = 9, y: float = 9, note: str = "") -> Markup:
    """The number of a run in a ring of its color."""
    parts = element("title", note), element("circle", r=7.5), element("text", series + 1, y=3.5)
    return element("g", *parts, class_=f"mark {color(series)}", transform=f"translate({x},{y})")


def whisker(mean: float, low: float, high: float, ends: tuple[float, float], series: int, note: str) -> Markup:
    """A value and its interval on the scale ``ends``, small enough for a table cell."""
    scale = Scale(*ends, 5, 95)
    line, zero = {"y1": 7, "y2": 7}, scale(min(max(0.0, ends[0]), ends[1]))
    parts = [
        element("line", x1=scale(ends[0]), x2=scale(ends[1]), **line, class_="grid"),
        element("line", x1=zero, x2=zero, y1=2, y2=12, class_="axis"),
        element("line", x1=scale(low), x2=scale(high), **line, class_=f"{color(series)} bar"),
        element("circle", cx=scale(mean), cy=7, r=3.5, class_=color(series)),
    ]
    size = {"width": 100, "height": 14, "viewBox": "0 0 100 14", "class_": "whisker"}
    return element("svg", element("title", note), *parts, **size, role="img", aria_label=note)


@dataclass
class Plot:
    """Two axes on which marks, dots and lines are drawn.

    Args:
        x_range, y_range: Values at the ends of the axes.
        percent: Whether the values of y are shares, shown in percent.
        whole: Whether the values of x are whole numbers.
    """

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    percent: bool = True
    whole: bool = False
    width: float = 392  # three fit side by side into a window of 1280 pixels
    height: float = 270
    _parts: list[Markup] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x = Scale(*self.x_range, 60, self.width - 12)
        self.y = Scale(*self.y_range, self.height - 42, 12)

    def svg(self) -> Markup:
        axes = *self._y_axis(), *self._x_axis()
        size = {"viewBox": f"0 0 {self.width:g} {self.height:g}", "width": self.width, "height": self.height}
        named = {"role": "img", "aria_label": self.title, "class_": "plot"}
        return element("svg", element("title", self.title), *axes, *self._parts, **size, **named)

    def _y_axis(self) -> Iterable[Markup]:
        for value in ticks(*self.y_range):
            y, name = self.y(value), f"{100 * value:.6g}" if self.percent else f"{value:.6g}"
            yield element("line", x1=self.x.start, x2=self.x.end, y1=y, y2=y, class_="grid")
            yield element("text", name, x=self.x.start - 7, y=y + 4, text_anchor="end")
        middle = (self.y.start + self.y.end) / 2
        yield element("text", self.y_label, x=12, y=middle, transform=f"rotate(-90 12 {middle})", text_anchor="middle")

    def _x_axis(self) -> Iterable[Markup]:
        bottom, thousands = self.y.start, max(map(abs, self.x_range)) >= 10_000
        for value in ticks(*self.x_range):
            if self.whole and value != int(value):
                continue
            x, name = self.x(value), f"{value / 1000:.6g}k" if thousands and value else f"{value:.6g}"
            yield element("text", name, x=x, y=bottom + 17, text_anchor="middle")
            yield element("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis")
        yield element("line", x1=self.x.start, x2=self.x.end, y1=bottom, y2=bottom, class_="axis")
        yield element("text", self.x_label, x=(self.x.start + self.x.end) / 2, y=bottom + 35, text_anchor="middle")

    def mark(self, point: Point, series: int) -> None:
        x = self.x(point.x)
        if point.low is not None and point.high is not None:
            ends = {"y1": self.y(point.low), "y2": self.y(point.high)}
            self._parts.append(element("line", x1=x, x2=x, **ends, class_=f"{color(series)} bar"))
        self._parts.append(mark(series, x, self.y(point.y), point.note))

    def dots(self, points: Iterable[Point], class_: str) -> None:
        for x, y, note, *_ in points:
            place = {"cx": self.x(x), "cy": self.y(y), "r": 4}
            self._parts.append(element("circle", element("title", note), **place, class_=class_))

    def line(self, points: Iterable[tuple[float, float]], class_: str) -> None:
        places = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)
        self._parts.append(element("polyline", points=places, class_=f"line {class_}"))
