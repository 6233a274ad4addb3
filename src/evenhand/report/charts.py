"""Specifications of charts: axes, and layers of marks with their labels and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand._format import in_full, is_known, points_in_full
from evenhand._table import Table

Place = tuple[float, float]
"""A point in units of the data."""

Color = Literal["blue", "red", "orange", "grey"]
Shape = Literal["circle", "square", "diamond", "hollow", "triangle"]
Size = Literal["figure", "rows"]


def plain(value: float) -> str:
    """Format a tick of an axis."""
    size = abs(value)
    # adding 0.0 removes the sign of a negative zero
    return f"{value + 0.0:.4g}" if size >= 1e7 or 0 < size < 1e-4 else f"{value + 0.0:,.10g}"


@dataclass(frozen=True)
class Axis:
    """Range, title and ticks of an axis."""

    low: float
    high: float
    title: str = ""
    ticks: Sequence[float] = ()
    show: Callable[[float], str] = plain


def share_axis(title: str) -> Axis:
    """Return an axis from 0% to 100%."""
    return Axis(0, 1, title, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), in_full)


ERROR_TOPS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Possible ends of an axis of errors."""


def error_axis(most: float, title: str) -> Axis:
    """Return an axis of errors in points, to the first of `ERROR_TOPS` that is large enough.

    Examples
    --------
    >>> error_axis(0.12, "Error in points").high
    0.2
    """
    top = next((top for top in ERROR_TOPS if most <= top), ERROR_TOPS[-1])
    return Axis(0, top, title, nice_ticks(0.0, top, 5), points_in_full)


# the key is ordered by `rank`, independently of the drawing order: marks, then areas, then lines
@dataclass(frozen=True)
class Area:
    """Area between two lines."""

    low: Sequence[Place]
    high: Sequence[Place]
    label: str = ""
    rank: int = 1

    @classmethod
    def of(cls, ends: Iterable[tuple[float, float | None, float | None]], label: str) -> Area:
        """Return the area between two ends at each place; places of unknown ends are left out."""
        known = [(x, low, high) for x, low, high in ends if is_known(low) and is_known(high)]
        return cls([(x, low) for x, low, _ in known], [(x, high) for x, _, high in known], label)


@dataclass(frozen=True)
class Line:
    """Line through points: dashed for a reference, thin for an edge, solid for a curve."""

    points: Sequence[Place]
    label: str = ""
    kind: Literal["even", "edge", "curve"] = "even"
    rank: int = 2


@dataclass(frozen=True)
class Bar:
    """Bar of a histogram with its label."""

    start: float
    end: float
    height: float
    tip: str
    is_off: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars of a histogram; those that are off have another colour and a pattern."""

    bars: Sequence[Bar]
    label: str
    off_label: str
    rank: int = 0


@dataclass(frozen=True)
class Point:
    """Point with its label, and a whisker across an interval."""

    x: float
    y: float
    tip: str
    is_off: bool = False
    across: Place | None = None

    @property
    def place(self) -> Place:
        return self.x, self.y


@dataclass(frozen=True)
class Points:
    """Points of one colour and shape, optionally joined; those that are off are red squares.

    `along` is a curve with many more points than are marked; it is drawn below the marks.
    """

    points: Sequence[Point]
    label: str = ""
    color: Color = "blue"
    shape: Shape = "circle"
    joined_by: Literal["nothing", "line", "steps"] = "nothing"
    off_label: str = ""
    rank: int = 0
    along: Sequence[Place] = ()


Layer = Area | Line | Bars | Points


@dataclass(frozen=True)
class Chart:
    """Specification of a chart; its key is derived from the labels of the layers.

    Parameters
    ----------
    alt : str
        Description for screen readers.
    x, y : Axis
        Axes; charts of rows have no vertical axis.
    layers : sequence of layers
        Layers in drawing order.
    title, note : str
        Text above the chart.
    numbers : Table, optional
        Values of the chart.
    height : float
        Height in units of the picture; a figure is 480 units wide.
    size : str
        "figure" for a chart with axes, "rows" for one with a name above each mark.
    names : sequence of (str, str)
        Names and values of the rows of a chart of rows, from top to bottom.
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
    names: Sequence[tuple[str, str]] = ()


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
