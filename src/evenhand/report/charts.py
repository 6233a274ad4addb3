"""Specifications of charts: axes, and layers of marks with their labels and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand._format import is_known
from evenhand._table import Table

Place = tuple[float, float]
"""A point in units of the data."""

Color = Literal["blue", "red", "orange"]
Shape = Literal["circle", "square", "diamond", "hollow"]
Size = Literal["figure", "scale", "cell"]

FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def plain(value: float) -> str:
    """Write a value at an axis."""
    size = abs(value)
    # adding 0.0 removes the sign of a negative zero
    return f"{value + 0.0:.4g}" if size >= 1e7 or 0 < size < 1e-4 else f"{value + 0.0:,.10g}"


@dataclass(frozen=True)
class Axis:
    """The range of an axis, its title, and the ticks with their text."""

    low: float
    high: float
    title: str = ""
    ticks: Sequence[float] = ()
    show: Callable[[float], str] = plain


# `rank` orders the key: marks first, then areas, then lines, whatever is drawn on top
@dataclass(frozen=True)
class Area:
    """The space between two lines."""

    low: Sequence[Place]
    high: Sequence[Place]
    label: str = ""
    rank: int = 1


@dataclass(frozen=True)
class Line:
    """A line through points: dashed where it shows an even distribution, thin at an edge."""

    points: Sequence[Place]
    label: str = ""
    kind: Literal["even", "edge"] = "even"
    rank: int = 2


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram with its value in words."""

    start: float
    end: float
    height: float
    tip: str
    is_off: bool = False


@dataclass(frozen=True)
class Bars:
    """The bars of a histogram; those that are off stand out by colour and pattern."""

    bars: Sequence[Bar]
    label: str
    off_label: str
    rank: int = 0


@dataclass(frozen=True)
class Point:
    """A point with its value in words, and whiskers down to a bound or across a band."""

    x: float
    y: float
    tip: str
    is_off: bool = False
    down_to: float | None = None
    across: Place | None = None

    @property
    def place(self) -> Place:
        return self.x, self.y


@dataclass(frozen=True)
class Points:
    """Points of one colour and shape, which a line or steps may join; those off are red squares."""

    points: Sequence[Point]
    label: str = ""
    color: Color = "blue"
    shape: Shape = "circle"
    joined_by: Literal["nothing", "line", "steps"] = "nothing"
    off_label: str = ""
    rank: int = 0


@dataclass(frozen=True)
class Interval:
    """An interval with its middle and its value in words."""

    low: float
    high: float
    middle: float | None
    tip: str
    name: str = ""
    is_off: bool = False


@dataclass(frozen=True)
class IntervalGroup:
    """Intervals below each other, and the value that they should cover."""

    name: str
    value: float
    tip: str
    intervals: Sequence[Interval]


@dataclass(frozen=True)
class Intervals:
    """Groups of intervals; those that miss their value stand out by colour and dashes."""

    groups: Sequence[IntervalGroup]
    label: str
    off_label: str
    value_label: str
    rank: int = 0


Layer = Area | Line | Bars | Points | Intervals


@dataclass(frozen=True)
class Chart:
    """A chart; its key is derived from the labels of its layers.

    Parameters
    ----------
    alt : str
        What the chart shows, for people who do not see it.
    x, y : Axis
        Axes; charts of intervals, scales and cells have no vertical one.
    layers : sequence of layers
        In the order in which they are drawn.
    title, note : str
        Text above the chart.
    numbers : Table, optional
        The values of the chart.
    height : float
        In units of the picture, of which a figure is 480 wide.
    size : str
        A figure with axes, a scale with a line of marks, or a drawing in a cell of a table.
    """

    alt: str
    x: Axis
    layers: Sequence[Layer]
    y: Axis | None = None
    title: str = ""
    note: str = ""
    numbers: Table | None = None
    height: float = 300
    size: Size = "figure"


def known(*values: float | None) -> bool:
    """Whether all values are known."""
    return all(map(is_known, values))


def nice_ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Return round values that divide a range into about `n` parts.

    Examples
    --------
    >>> nice_ticks(0.0, 10.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low] if math.isfinite(low) else []
    # the smallest of 1, 2, 5 and 10 times a power of ten that gives at most n parts
    unit = 10.0 ** math.floor(math.log10(span / n))
    step = unit * next((k for k in (1, 2, 5) if span / (k * unit) <= n), 10)
    # a billionth of a step of tolerance, so that an end that is a tick up to rounding is one
    first = math.ceil(low / step - 1e-9)
    count = math.floor((high - first * step) / step + 1e-9) + 1
    # twelve digits: 3 * 0.1 is shown as 0.3
    return [float(f"{(first + i) * step:.12g}") for i in range(count)]
