"""Places of charts' marks on their pictures, in units of the picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evenhand.report.charts import Axis, Chart, IntervalGroup, Intervals, Place

LINE = 17.0
GAP = 26.0
"""Heights of an interval and of the head of a group of intervals."""


@dataclass(frozen=True)
class Frame:
    """Ranges of both axes of a chart, its size and its margins."""

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
        # SVG counts from the top, so that larger values have smaller coordinates
        return self.y_end - _part(value, self.y_axis) * (self.y_end - self.top)

    def path(self, places: Iterable[Place]) -> str:
        """Return the path of a line through points."""
        ends = (f"{digits(self.x(x))} {digits(self.y(y))}" for x, y in places)
        return "L".join(ends)

    def intervals(self, layer: Intervals) -> Iterator[tuple[IntervalGroup, float, float, float]]:
        """Yield each group of intervals with its top, the room above its first and its end."""
        top = self.top
        for group in layer.groups:
            yield group, top, _head(group), top + _height(group)
            top += _height(group)


def frame_of(chart: Chart) -> Frame:
    """Return the frame of a chart, by its size."""
    if chart.size != "figure":
        width, height, margin = (340, 62, 14) if chart.size == "scale" else (160, 24, 6)
        return Frame(chart.x, Axis(0, 1), height, width, margin, margin, 0, 0)
    groups = [g for layer in chart.layers if isinstance(layer, Intervals) for g in layer.groups]
    if groups:
        return Frame(chart.x, Axis(0, 1), sum(map(_height, groups)) + 56, left=92, top=4)
    return Frame(chart.x, chart.y or Axis(0, 1), chart.height)


def _part(value: float, axis: Axis) -> float:
    # halves, as the width of a range of huge numbers may overflow
    width = axis.high / 2 - axis.low / 2
    # a value outside the range is drawn just beyond the axis; a range of one value has only its
    # middle
    return min(max((value / 2 - axis.low / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def _head(group: IntervalGroup) -> float:
    # a single interval has the name beside it, several have it above
    return GAP if len(group.intervals) > 1 or group.intervals[0].name else GAP / 2


def _height(group: IntervalGroup) -> float:
    return _head(group) + LINE * len(group.intervals)


def stairs(places: Sequence[Place]) -> list[Place]:
    """Return the corners of steps that are level from each point to the next."""
    turns = [(later[0], earlier[1]) for earlier, later in pairwise(places)]
    return [corner for pair in zip(places, [*turns, places[-1]], strict=True) for corner in pair]


def digits(value: float) -> str:
    """Write a coordinate."""
    # a tenth of a unit is finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")
