"""Coordinates of the marks of charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evenhand.report.charts import Axis, Chart, Place

ROW = 30.0
"""Height of a named row."""


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


def frame_of(chart: Chart) -> Frame:
    """Return the frame of a chart, by its size."""
    if chart.size == "rows":
        n = len(chart.names)
        # rows are counted from the top
        return Frame(chart.x, Axis(-n, 0), ROW * n + 46, 360, 10, 16, 2, 44)
    return Frame(chart.x, chart.y or Axis(0, 1), chart.height)


def _part(value: float, axis: Axis) -> float:
    # halves, since the width of a range of huge numbers may overflow
    width = axis.high / 2 - axis.low / 2
    # values outside the range are drawn just beyond the axis; a range of one value is its middle
    return min(max((value / 2 - axis.low / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def stairs(places: Sequence[Place]) -> list[Place]:
    """Return the corners of a step function through points."""
    turns = [(later[0], earlier[1]) for earlier, later in pairwise(places)]
    return [corner for pair in zip(places, [*turns, places[-1]], strict=True) for corner in pair]


def digits(value: float) -> str:
    """Format a coordinate."""
    # tenths are finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")
