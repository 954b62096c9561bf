"""Pictures as SVG in the page's colours. A run has its colour and its shape, so that colour alone never tells it.

What a picture shows stands also in its title, and in a table beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

from .html import Html, join, tag

SERIES = 8
"""As many colours and shapes as there are; the next run begins anew."""

_SHAPES = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M-3.6,-3.6h7.2v7.2h-7.2z",
    "M0,-4.6L4.6,3.6H-4.6z",
    "M0,-5L5,0L0,5L-5,0z",
    "M0,4.6L4.6,-3.6H-4.6z",
    "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "M0,-5L4.8,-1.5L2.9,4H-2.9L-4.8,-1.5z",
    "M-4.6,-2.4L-2.4,-4.6L0,-2.2L2.4,-4.6L4.6,-2.4L2.2,0L4.6,2.4L2.4,4.6L0,2.2L-2.4,4.6L-4.6,2.4L-2.2,0z",
)


class Point(NamedTuple):
    """A value with its interval, if it has one, and what is told about it."""

    x: float
    y: float
    note: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def bounds(values: Iterable[float], *, least: float = 0.0) -> tuple[float, float]:
    """Round numbers around some values; from 0 where they are all the same, and to 1 where there is nothing else."""
    known = [value for value in values if value == value]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 0.0, 1.0
    step = _step(max(high - low, least, 0.05 * abs(high)))
    return floor(low / step) * step, max(ceil(high / step - 1e-9), floor(low / step) + 1) * step


def ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    return [n * step for n in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, at most five of which fill the span."""
    power = 10.0 ** floor(log10(span / 5))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 5 + 1e-9)


def mark(series: int, x: float = 0.0, y: float = 0.0, note: str = "", class_: str = "") -> Html:
    """A run's mark."""
    told = [tag("title", note)] if note else []
    classes = f"s{series % SERIES + 1} {class_}".rstrip()
    return tag("path", *told, d=_SHAPES[series % SERIES], transform=f"translate({x},{y})", class_=classes)


def legend(names: Iterable[tuple[str, int]]) -> Html:
    """Whose mark is whose."""
    items = (
        tag("li", tag("svg", mark(series, 7, 7), width=14, height=14, aria_hidden="true"), " ", name)
        for name, series in names
    )
    return tag("ul", *items, class_="legend")


def figure(title: str, svg: Html, *more: object) -> Html:
    return tag("figure", tag("figcaption", title), svg, *more)


def whisker(mean: float, low: float, high: float, among: tuple[float, float], series: int, note: str) -> Html:
    """A value and its interval as a small picture for a table's cell."""
    scale = Scale(*among, 5, 95)
    parts = [
        tag("title", note),
        tag("line", x1=scale(low), x2=scale(high), y1=7, y2=7, class_=f"s{series % SERIES + 1} bar"),
        tag("g", mark(series), transform=f"translate({scale(mean)},7) scale(0.7)"),
    ]
    if among[0] < 0 < among[1]:
        parts.insert(1, tag("line", x1=scale(0), x2=scale(0), y1=0, y2=14, class_="axis"))
    return tag("svg", *parts, width=100, height=14, viewBox="0 0 100 14", class_="whisker", role="img", aria_label=note)


@dataclass
class Plot:
    """A field with two axes, on which marks, lines and bars are drawn.

    Args:
        x_range, y_range: The values at the ends of the axes.
        x_names: Names at 0, 1, ... of an axis that has no numbers, each with a second line.
        percent: Whether y (``"y"``), x and y (``"xy"``) or none (``""``) are shares shown in percent.
    """

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_names: Sequence[tuple[str, str]] = ()
    percent: str = "y"
    whole: bool = False
    width: float = 392  # three stand side by side in a window of 1280
    height: float = 270

    def __post_init__(self) -> None:
        longest = max(len(self._number(value, "y")) for value in ticks(*self.y_range))
        self.x = Scale(*self.x_range, 27 + 6.6 * max(3, longest), self.width - 12)
        self.y = Scale(*self.y_range, self.height - 42, 12)
        self._parts: list[Html] = []

    def svg(self) -> Html:
        return tag(
            "svg",
            tag("title", self.title),
            *self._axes(),
            *self._parts,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            width=self.width,
            height=self.height,
            role="img",
            aria_label=self.title,
            class_="plot" if self.width <= 560 else "plot wide-plot",
        )

    def _axes(self) -> list[Html]:
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        parts = []
        for value in ticks(*self.y_range):
            y = self.y(value)
            parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
            parts.append(tag("text", self._number(value, "y"), x=left - 7, y=y + 4, class_="end"))
        names = dict(enumerate(self.x_names))
        for value in names or self._x_ticks():
            name, second = names[int(value)] if names else (self._number(value, "x"), "")
            parts.append(tag("text", name, x=self.x(value), y=bottom + 17, class_="middle"))
            if second:
                parts.append(tag("text", second, x=self.x(value), y=bottom + 32, class_="middle"))
            if not names:
                parts.append(tag("line", x1=self.x(value), x2=self.x(value), y1=bottom, y2=bottom + 4, class_="axis"))
        parts.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
        parts.append(tag("text", self.x_label, x=(left + right) / 2, y=bottom + 35, class_="middle name"))
        middle = (top + bottom) / 2
        parts.append(
            tag("text", self.y_label, x=12, y=middle, transform=f"rotate(-90 12 {middle})", class_="middle name")
        )
        return parts

    def _x_ticks(self) -> list[float]:
        found = ticks(*self.x_range)
        if self.whole and self.x_range[1] - self.x_range[0] <= 12:
            return [float(n) for n in range(ceil(self.x_range[0]), floor(self.x_range[1]) + 1)]
        return found

    def _number(self, value: float, axis: str) -> str:
        if axis in self.percent:
            return f"{100 * value:.6g}"
        thousands = max(map(abs, self.y_range if axis == "y" else self.x_range)) >= 10_000
        return f"{value / 1000:.6g}k" if thousands and value else f"{value:.6g}"

    def interval(self, point: Point, series: int) -> None:
        if point.low is not None and point.high is not None:
            x, name = self.x(point.x), f"s{series % SERIES + 1} bar"
            self._parts.append(tag("line", x1=x, x2=x, y1=self.y(point.low), y2=self.y(point.high), class_=name))

    def marks(self, points: Iterable[Point], series: int, class_: str = "") -> None:
        for point in points:
            self.interval(point, series)
            self._parts.append(mark(series, self.x(point.x), self.y(point.y), point.note, class_))

    def line(self, points: Iterable[tuple[float, float]], class_: str) -> None:
        places = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)
        self._parts.append(tag("polyline", points=places, class_=f"line {class_}"))

    def series_line(self, points: Iterable[tuple[float, float]], series: int) -> None:
        self.line(points, f"s{series % SERIES + 1}" + (" dashed" if series % SERIES >= 4 else ""))

    def column(self, low: float, high: float, share: float, note: str) -> None:
        """A bar from the x axis up."""
        left, right, top = (
            self.x(low),
            self.x(high),
            self.y(self.y_range[0] + share * (self.y_range[1] - self.y_range[0])),
        )
        told = tag("title", note)
        height = round(self.y.start - top, 1)
        self._parts.append(
            tag("rect", told, x=left + 1, y=top, width=round(right - left - 2, 1), height=height, class_="column")
        )

    def labels(self, points: Sequence[tuple[Point, str]]) -> None:
        """Names beside points, where there is room for them: neither on a mark nor on another name."""
        taken = [_Box(self.x(point.x) - 5, self.y(point.y) - 5, 10, 10) for point, _ in points]
        for point, name in points:
            x, y, width = self.x(point.x), self.y(point.y), 6.4 * len(name) + 4
            top = self.y(point.high if point.high is not None else point.y)
            bottom = self.y(point.low if point.low is not None else point.y)
            places = ((x - width / 2, top - 15), (x + 8, y - 7), (x - 8 - width, y - 7), (x - width / 2, bottom + 3))
            boxes = (_Box(left, above, width, 13) for left, above in places)
            free = (box for box in boxes if self._holds(box) and not any(map(box.meets, taken)))
            if box := next(free, None):
                taken.append(box)
                middle = round(box.left + width / 2, 1)
                self._parts.append(tag("text", name, x=middle, y=round(box.top + 11, 1), class_="middle tag"))

    def _holds(self, box: _Box) -> bool:
        across = self.x.start <= box.left and box.left + box.width <= self.x.end + 8
        return across and self.y.end - 10 <= box.top and box.top + box.height <= self.y.start


class _Box(NamedTuple):
    left: float
    top: float
    width: float
    height: float

    def meets(self, other: _Box) -> bool:
        across = self.left < other.left + other.width and other.left < self.left + self.width
        return across and self.top < other.top + other.height and other.top < self.top + self.height


def grid(*figures: Html, class_: str = "figures") -> Html:
    return tag("div", *figures, class_=class_)


def stacked(shares: Iterable[tuple[str, str, int]], total: int) -> Html:
    """One bar of several parts: (class, name, count)."""
    parts = (
        tag("span", class_=f"part {class_}", style=f"width:{100 * count / total:.2f}%", title=f"{name}: {count}")
        for class_, name, count in shares
        if count
    )
    return tag("span", join(parts), class_="stacked", aria_hidden="true")
