"""Coordinates of the marks of charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evenhand.report.charts import Axis, Chart, IntervalGroup, Intervals, Place

LINE = 17.0
GAP = 26.0
ROW = 30.0
"""Heights of an interval of the space above the first interval of a person, and of a named row."""


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

    def intervals(self, layer: Intervals) -> Iterator[tuple[IntervalGroup, float, float, float]]:
        """Yield each group of intervals with its top, the space above its first and its bottom."""
        top = self.top
        for group in layer.groups:
            yield group, top, _head(group), top + _height(group)
            top += _height(group)


def frame_of(chart: Chart) -> Frame:
    """Return the frame of a chart, by its size."""
    if chart.size == "cell":
        return Frame(chart.x, Axis(0, 1), 24, 160, 6, 6, 0, 0)
    if chart.size == "rows":
        n = len(chart.names)
        # rows are counted from the top
        return Frame(chart.x, Axis(-n, 0), ROW * n + 46, 360, 10, 16, 2, 44)
    groups = [g for layer in chart.layers if isinstance(layer, Intervals) for g in layer.groups]
    if groups:
        return Frame(chart.x, Axis(0, 1), sum(map(_height, groups)) + 56, left=92, top=4)
    return Frame(chart.x, chart.y or Axis(0, 1), chart.height)


def _part(value: float, axis: Axis) -> float:
    # halves, since the width of a range of huge numbers may overflow
    width = axis.high / 2 - axis.low / 2
    # values outside the range are drawn just beyond the axis; a range of one value is its middle
    return min(max((value / 2 - axis.low / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def _head(group: IntervalGroup) -> float:
    # the name is beside a single interval and above several intervals
    return GAP if len(group.intervals) > 1 or group.intervals[0].name else GAP / 2


def _height(group: IntervalGroup) -> float:
    return _head(group) + LINE * len(group.intervals)


def stairs(places: Sequence[Place]) -> list[Place]:
    """Return the corners of a step function through points."""
    turns = [(later[0], earlier[1]) for earlier, later in pairwise(places)]
    return [corner for pair in zip(places, [*turns, places[-1]], strict=True) for corner in pair]


def digits(value: float) -> str:
    """Format a coordinate."""
    # tenths are finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")
