"""SVG charts: axes with round numbers, lines, marks with intervals, and bars.

Colors are classes of the report's style sheet (``s1`` to ``s8`` for series), so a chart in a page follows its light or
dark theme; `standalone` makes a file of a chart, on white. Each series has a color and a shape. Every chart has a text
alternative, and the report shows its values in a table as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup, escape

SERIES = 8
"""Number of distinct colors and shapes; further series start over."""

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
_COLORS = ("#0b62ad", "#c2480c", "#007a5a", "#9a3d86", "#866800", "#3d8fb8", "#7c2d2d", "#4c5360")
_STYLE = (
    "svg{font:12px sans-serif;background:#fff}text{fill:#59626e}.middle{text-anchor:middle}.end{text-anchor:end}"
    ".grid{stroke:#e2e5ea}.axis{stroke:#c9ced6}.line{fill:none;stroke-width:1.75}.bar{stroke-width:2}"
    ".column{fill:#e2e5ea}.front,.ideal{stroke:#59626e;stroke-dasharray:3 3}.muted{fill:#a3acb8}"
    + "".join(f".s{n}{{fill:{color};stroke:{color}}}" for n, color in enumerate(_COLORS, 1))
    + "polyline.line{fill:none}"
)


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


def bounds(values: Iterable[float], *, least: float = 0.0) -> tuple[float, float]:
    """Round ends of an axis for some values; it starts at 0 if they are all equal.

    Args:
        least: The smallest span that the axis is rounded for.
    """
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
    """1, 2 or 5 times a power of ten, of which at most five fit into the span."""
    power = 10.0 ** floor(log10(span / 5))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 5 + 1e-9)


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """An SVG element with escaped attributes and texts; ``class_`` and ``text_anchor`` become class and text-anchor."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(map(escape, children))
    return Markup(f"<{name}{given}>{inside}</{name}>")


def series_class(series: int) -> str:
    return f"s{series % SERIES + 1}"


def mark(series: int, x: float = 0.0, y: float = 0.0, note: str = "", class_: str = "") -> Markup:
    """A mark in the color and the shape of a series."""
    classes = f"{series_class(series)} {class_}".rstrip()
    outline = _SHAPES[series % SERIES]
    return element("path", *_note(note), d=outline, transform=f"translate({x},{y})", class_=classes)


def _note(note: str) -> list[Markup]:
    return [element("title", note)] if note else []


def whisker(mean: float, low: float, high: float, ends: tuple[float, float], series: int, note: str) -> Markup:
    """A value and its interval on the scale ``ends``, small enough for a table cell."""
    scale = Scale(*ends, 5, 95)
    zero = element("line", x1=scale(0), x2=scale(0), y1=0, y2=14, class_="axis") if ends[0] < 0 < ends[1] else ""
    return element(
        "svg",
        element("title", note),
        zero,
        element("line", x1=scale(low), x2=scale(high), y1=7, y2=7, class_=f"{series_class(series)} bar"),
        element("g", mark(series), transform=f"translate({scale(mean)},7) scale(0.7)"),
        width=100,
        height=14,
        viewBox="0 0 100 14",
        class_="whisker",
        role="img",
        aria_label=note,
    )


def standalone(svg: Markup) -> str:
    """A chart as an SVG document."""
    head, _, rest = str(svg).partition(">")
    return f"<svg xmlns='http://www.w3.org/2000/svg'{head.removeprefix('<svg')}><style>{_STYLE}</style>{rest}\n"


@dataclass
class Plot:
    """Two axes on which marks, lines and bars are drawn.

    Args:
        x_range, y_range: Values at the ends of the axes.
        x_names: Two-line names at 0, 1, ... instead of numbers on the x axis.
        y_names: Names at 0, 1, ... instead of numbers on the y axis.
        percent: The axes ("x", "y", "xy") whose values are shares, shown in percent.
        whole: Whether a short x axis has a tick at every whole number.
    """

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_names: Sequence[tuple[str, str]] = ()
    y_names: Sequence[str] = ()
    percent: str = "y"
    whole: bool = False
    width: float = 392  # three fit side by side into a window of 1280 pixels
    height: float = 270

    def __post_init__(self) -> None:
        names = self.y_names or [self._number(value, "y") for value in ticks(*self.y_range)]
        self.x = Scale(*self.x_range, 27 + 6.6 * max(3, *map(len, names)), self.width - 12)
        self.y = Scale(*self.y_range, self.height - 42, 12)
        self._parts: list[Markup] = []

    def svg(self) -> Markup:
        return element(
            "svg",
            element("title", self.title),
            *self._y_axis(),
            *self._x_axis(),
            *self._parts,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            width=self.width,
            height=self.height,
            role="img",
            aria_label=self.title,
            class_="plot" if self.width <= 560 else "plot wide-plot",
        )

    def _y_axis(self) -> Iterable[Markup]:
        left, right = self.x.start, self.x.end
        for value in range(len(self.y_names)) if self.y_names else ticks(*self.y_range):
            y, name = self.y(value), self.y_names[int(value)] if self.y_names else self._number(value, "y")
            if not self.y_names:
                yield element("line", x1=left, x2=right, y1=y, y2=y, class_="grid")
            yield element("text", name, x=left - 7, y=y + 4, class_="end")
        middle = (self.y.start + self.y.end) / 2
        turned = f"rotate(-90 12 {middle})"
        if self.y_label:
            yield element("text", self.y_label, x=12, y=middle, transform=turned, class_="middle name")

    def _x_axis(self) -> Iterable[Markup]:
        bottom = self.y.start
        for value in range(len(self.x_names)) if self.x_names else self._x_ticks():
            x = self.x(value)
            if self.x_names:
                for n, name in enumerate(self.x_names[int(value)]):
                    yield element("text", name, x=x, y=bottom + 17 + 15 * n, class_="middle")
            else:
                yield element("text", self._number(value, "x"), x=x, y=bottom + 17, class_="middle")
                top = self.y.end if self.y_names else bottom + 4
                yield element("line", x1=x, x2=x, y1=bottom, y2=top, class_="grid" if self.y_names else "axis")
        yield element("line", x1=self.x.start, x2=self.x.end, y1=bottom, y2=bottom, class_="axis")
        middle = (self.x.start + self.x.end) / 2
        yield element("text", self.x_label, x=middle, y=bottom + 35, class_="middle name")

    def _x_ticks(self) -> list[float]:
        if self.whole and self.x_range[1] - self.x_range[0] <= 12:
            return [float(n) for n in range(ceil(self.x_range[0]), floor(self.x_range[1]) + 1)]
        found = ticks(*self.x_range)
        return [value for value in found if value == int(value)] if self.whole else found

    def _number(self, value: float, axis: str) -> str:
        if axis in self.percent:
            return f"{100 * value:.6g}"
        thousands = max(map(abs, self.y_range if axis == "y" else self.x_range)) >= 10_000
        return f"{value / 1000:.6g}k" if thousands and value else f"{value:.6g}"

    def marks(self, points: Iterable[Point], series: int, class_: str = "") -> None:
        for point in points:
            x = self.x(point.x)
            if point.low is not None and point.high is not None:
                ends = {"y1": self.y(point.low), "y2": self.y(point.high)}
                self._parts.append(element("line", x1=x, x2=x, **ends, class_=f"{series_class(series)} bar"))
            self._parts.append(mark(series, x, self.y(point.y), point.note, class_))

    def dots(self, points: Iterable[Point], class_: str) -> None:
        """Plain circles, for thousands of points."""
        for x, y, note, *_ in points:
            self._parts.append(element("circle", *_note(note), cx=self.x(x), cy=self.y(y), r=4, class_=class_))

    def interval(self, row: int, low: float, mean: float, high: float, series: int, note: str) -> None:
        """A mean with its interval along the x axis."""
        y, name = self.y(row), f"{series_class(series)} bar"
        self._parts.append(element("line", x1=self.x(low), x2=self.x(high), y1=y, y2=y, class_=name))
        self._parts += [element("line", x1=x, x2=x, y1=y - 5, y2=y + 5, class_=name) for x in map(self.x, (low, high))]
        self._parts.append(mark(series, self.x(mean), y, note))

    def line(self, points: Iterable[tuple[float, float]], class_: str) -> None:
        places = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)
        self._parts.append(element("polyline", points=places, class_=f"line {class_}"))

    def series_line(self, points: Iterable[tuple[float, float]], series: int) -> None:
        self.line(points, series_class(series) + (" dashed" if series % SERIES >= 4 else ""))

    def column(self, low: float, high: float, share: float, note: str) -> None:
        """A grey bar of a share of the height, from the x axis up."""
        left, right = self.x(low) + 1, self.x(high) - 1
        height = round(share * (self.y.start - self.y.end), 1)
        place = {"x": left, "y": round(self.y.start - height, 1), "width": round(right - left, 1), "height": height}
        self._parts.append(element("rect", *_note(note), **place, class_="column"))

    def row_bar(self, row: int, value: float, label: str, series: int) -> None:
        """A bar from the y axis to the right, with its label at its end."""
        y, left, right = self.y(row), self.x.start, self.x(value)
        place = {"x": left, "y": y - 8, "width": round(right - left, 1), "height": 16}
        self._parts.append(element("rect", **place, class_=series_class(series)))
        self._parts.append(element("text", label, x=right + 6, y=y + 4))

    def labels(self, points: Sequence[tuple[Point, str]]) -> None:
        """Names next to points; a name that would cover a mark or another name is left out."""
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
                self._parts.append(element("text", name, x=middle, y=round(box.top + 11, 1), class_="middle tag"))

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
