"""Charts: axes, layers of marks with their labels and values, and their coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

from evenhand._format import in_full, is_known

PIT_TITLE = "Predicted probability of an outcome this low (PIT)"
OUTCOMES_TITLE = "Share of outcomes"
PIT_BAND = "simultaneous 95% band under calibration"

Place = tuple[float, float]
"""A point in units of the data."""

Color = Literal["blue", "red", "orange", "grey"]
Shape = Literal["circle", "square", "diamond", "hollow", "triangle"]
Side = Literal["left", "right", "above", "below"]


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


def top_axis(most: float, title: str = "") -> Axis:
    """Return an axis of shares from 0: rare events and small errors need a scale of their own.

    Examples
    --------
    >>> top_axis(0.12).high
    0.2
    """
    top = next((top for top in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if most <= top), 1.0)
    return Axis(0, top, title, nice_ticks(0.0, top, 5), in_full)


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
    """Line through points: dashed for a reference, thin for an edge, solid for a curve or level."""

    points: Sequence[Place]
    label: str = ""
    kind: Literal["even", "edge", "curve", "level"] = "even"
    rank: int = 2


@dataclass(frozen=True)
class Label:
    """Text beside a place: left of it, right of it, above or below it."""

    x: float
    y: float
    text: str
    side: Side = "left"
    is_reference: bool = False


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
    """Point with its label, and a whisker across an interval, or upright; a stem is pale."""

    x: float
    y: float
    tip: str
    is_off: bool = False
    across: Place | None = None
    upright: Place | None = None
    stem: Place | None = None


@dataclass(frozen=True)
class Points:
    """Points of one colour and shape; those that are off are red squares.

    `along` is a curve with many more points than are marked; it is drawn below the marks.
    """

    points: Sequence[Point]
    label: str = ""
    color: Color = "blue"
    shape: Shape = "circle"
    off_label: str = ""
    rank: int = 0
    along: Sequence[Place] = ()


Layer = Area | Line | Bars | Points | Label


@dataclass(frozen=True)
class Row:
    """Named row of a chart: its name, a small number beside it, and values on the right.

    A narrow picture has `summary` in the place of the values.
    """

    name: str
    small: str = ""
    values: Sequence[str] = ()
    is_strong: bool = False
    summary: str = ""

    @property
    def lines(self) -> list[str]:
        """The name in at most two lines."""
        return wrap(self.name, LINE, max_lines=2, placeholder="…") or [""]


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
    height : float
        Height in units of the picture; a figure is 480 units wide.
    rows : sequence of Row
        Named rows from top to bottom, of a chart without a vertical axis: row i is at y = -i - 0.5.
    heads : sequence of str
        Titles of the values of the rows.
    """

    alt: str
    x: Axis
    layers: Sequence[Layer]
    y: Axis | None = None
    title: str = ""
    note: str = ""
    height: float = 300
    rows: Sequence[Row] = ()
    heads: Sequence[str] = ()


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


# --- coordinates of the marks of charts

Width = Literal["wide", "middle", "narrow"]
"""Width of a drawing: the picture of a page, a figure in a section, or a picture on a phone."""

WIDTHS: dict[Width, float] = {"wide": 760, "middle": 480, "narrow": 358}

LINE = 32
"""Most characters of a line of the name of a row."""

NAMES, VALUES = 240.0, 190.0
"""Width of the names and of the values of rows in a wide picture."""


@dataclass(frozen=True)
class Frame:
    """Axes, size and margins of a chart, in units of the picture."""

    x_axis: Axis
    y_axis: Axis
    height: float = 300
    width: float = 480
    left: float = 44
    right: float = 20
    top: float = 28
    bottom: float = 46
    is_wide: bool = False

    @property
    def x_end(self) -> float:
        return self.width - self.right

    @property
    def y_end(self) -> float:
        return self.height - self.bottom

    def x(self, value: float) -> float:
        return self.left + _part(value, self.x_axis) * (self.x_end - self.left)

    def y(self, value: float) -> float:
        # vertical coordinates of SVG increase downwards
        return self.y_end - _part(value, self.y_axis) * (self.y_end - self.top)

    def path(self, places: Iterable[Place]) -> str:
        """Return the path of a line through points."""
        ends = (f"{digits(self.x(x))} {digits(self.y(y))}" for x, y in places)
        return "L".join(ends)


def frame_of(chart: Chart, width: Width) -> Frame:
    """Return the frame of a chart: names of rows are above the marks unless it is wide."""
    units, is_wide = WIDTHS[width], width == "wide"
    if not chart.rows:
        return Frame(chart.x, chart.y or Axis(0, 1), chart.height * (1.25 if is_wide else 1), units)
    n, axis = len(chart.rows), Axis(-len(chart.rows), 0)
    if is_wide:
        right = VALUES if chart.heads else 20
        return Frame(chart.x, axis, 34 * n + 70, units, NAMES, right, 26, 44, is_wide)
    height = 46 if all(len(row.lines) == 1 for row in chart.rows) else 60
    return Frame(chart.x, axis, height * n + 70, units, 14, 20, 26, 44)


def _part(value: float, axis: Axis) -> float:
    # halves, since the width of a range of huge numbers may overflow
    width = axis.high / 2 - axis.low / 2
    # values outside the range are drawn just beyond the axis; a range of one value is its middle
    return min(max((value / 2 - axis.low / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def digits(value: float) -> str:
    """Format a coordinate."""
    # tenths are finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")


# --- axes of dates


def time_axis(low: float, high: float, title: str = "") -> Axis:
    """Return an axis from one day to another, counted from 1970, with ticks at round dates.

    Examples
    --------
    >>> axis = time_axis(20_454.0, 20_818.0)  # 1 January to 31 December 2026
    >>> [axis.show(tick) for tick in axis.ticks]
    ['2026', 'Mar', 'May', 'Jul', 'Sep', 'Nov']
    """
    # imported here: other charts do not wait for matplotlib, whose dates are days since 1970
    from matplotlib import dates

    made: Any = dates  # its functions have no types
    if high <= low:
        low, high = low - 0.5, high + 0.5
    locator = made.AutoDateLocator(minticks=3, maxticks=8)
    ticks = [
        tick for tick in locator.tick_values(*made.num2date([low, high])) if low <= tick <= high
    ]
    words = dict(zip(ticks, made.ConciseDateFormatter(locator).format_ticks(ticks), strict=True))
    return Axis(low, high, title, ticks, words.__getitem__)
