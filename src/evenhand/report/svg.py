"""SVG of charts, the only place where text is put into pictures and escaped for them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any

from evenhand.figures import printable
from evenhand.report.charts import (
    Area,
    Axis,
    Bar,
    Bars,
    Chart,
    Color,
    Interval,
    IntervalGroup,
    Intervals,
    Layer,
    Line,
    Place,
    Point,
    Points,
    Shape,
    Size,
    known,
)
from evenhand.report.names import short

SHAPES: dict[Shape, str] = {
    "circle": '<circle class="shape" cx="{x}" cy="{y}" r="4.5"/>',
    "square": '<rect class="shape" x="{x0}" y="{y0}" width="8" height="8"/>',
    "diamond": '<path class="shape" d="M{x} {top}L{right} {y}L{x} {bottom}L{left} {y}Z"/>',
    "hollow": '<circle class="hollow" cx="{x}" cy="{y}" r="4"/>',
}

HATCH = (
    '<defs><pattern id="outside" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><path class="stripe" d="M0 0V6"/></pattern></defs>'
)
"""Lines over bars that lie outside their band: colour alone does not reach every reader."""

ON_CHART = 14
"""Most characters of a name beside the picture."""

LINE = 17.0
GAP = 26.0
"""Heights of an interval and of the head of a group of intervals."""


@dataclass(frozen=True)
class Frame:
    """Ranges of both axes of a chart, its size and its margins, in units of the picture."""

    x_axis: Axis
    y_axis: Axis
    height: float = 300
    width: float = 480
    left: float = 44
    right: float = 20
    top: float = 28
    bottom: float = 46

    def x(self, value: float) -> float:
        return self.left + _part(value, self.x_axis) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        # SVG counts from the top, so that larger values have smaller coordinates
        return (
            self.height
            - self.bottom
            - _part(value, self.y_axis) * (self.height - self.top - self.bottom)
        )


SIZES: dict[Size, dict[str, float]] = {
    "figure": {},
    "scale": {"height": 62, "width": 340, "left": 14, "right": 14, "top": 0, "bottom": 0},
    "cell": {"height": 24, "width": 160, "left": 6, "right": 6, "top": 0, "bottom": 0},
}


def _part(value: float, axis: Axis) -> float:
    # halves, as the width of a range of huge numbers may overflow
    width = axis.high / 2 - axis.low / 2
    # a value outside the range is drawn just beyond the axis; a range of one value has only its
    # middle
    return min(max((value / 2 - axis.low / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def svg(chart: Chart) -> str:
    """Return a chart as SVG."""
    frame = _frame(chart)
    size = f"0 0 {_n(frame.width)} {_n(frame.height)}"
    kind = "" if chart.size == "cell" else ' class="chart"'
    is_hatched = any(isinstance(layer, Bars) and _has_off(layer.bars) for layer in chart.layers)
    inside = [HATCH] if is_hatched else []
    inside.append(AXES[chart.size](frame, chart))
    inside += (_drawn(layer, frame) for layer in chart.layers)
    return (
        f'<svg{kind} viewBox="{size}" role="group" aria-label="{_escape(chart.alt)}">'
        f"{''.join(inside)}</svg>"
    )


def key(chart: Chart) -> list[tuple[str, str]]:
    """Return the signs of a chart, as SVG of 28 by 16, with their words."""
    layers = sorted(chart.layers, key=lambda layer: layer.rank)
    return [entry for layer in layers for entry in _signs(layer) if entry[1]]


def _frame(chart: Chart) -> Frame:
    people = [layer for layer in chart.layers if isinstance(layer, Intervals)]
    if people:
        # rows count down in units of the picture
        height = sum(_height(group) for group in people[0].groups) + 56
        return Frame(chart.x, Axis(-(height - 46), -4), height=height, left=92, top=4)
    return Frame(chart.x, chart.y or Axis(0, 1), **{"height": chart.height, **SIZES[chart.size]})


def _axes(frame: Frame, chart: Chart) -> str:
    """Draw the axes: a grid, its values and the titles of both axes."""
    left, right = frame.left, frame.width - frame.right
    low = frame.height - frame.bottom
    parts = []
    for value in frame.y_axis.ticks:
        at = _n(frame.y(value))
        parts.append(
            f'<path class="grid" d="M{left} {at}H{right}"/>'
            + _text(left - 7, at, frame.y_axis.show(value), 'dy=".35em" text-anchor="end"')
        )
    # one grid is enough: vertical lines only where there are no horizontal ones
    start = low if frame.y_axis.ticks else frame.top
    for value in frame.x_axis.ticks:
        at = _n(frame.x(value))
        parts.append(
            f'<path class="grid" d="M{at} {_n(start)}V{_n(low + 5)}"/>'
            + _text(at, low + 18, frame.x_axis.show(value), 'text-anchor="middle"')
        )
    middle, foot = (left + right) / 2, frame.height - 6
    parts.append(f'<path class="axis" d="M{left} {low}H{right}"/>')
    parts.append(_text(middle, foot, frame.x_axis.title, 'text-anchor="middle"', ""))
    if chart.y is not None:
        # above the plot and not along the axis: rotated text is hard to read
        parts.append(_text(4, 14, chart.y.title, kind=""))
    # screen readers get the values from the marks and the table, not from the ticks
    return f'<g aria-hidden="true">{"".join(parts)}</g>'


def _scale(frame: Frame, chart: Chart) -> str:
    ticks = "".join(f'<path class="axis" d="M{frame.x(v):.1f} 20V34"/>' for v in chart.x.ticks)
    ends = f"M{frame.x(chart.x.low):.1f} 27H{frame.x(chart.x.high):.1f}"
    first, last = (chart.x.show(end) for end in (chart.x.low, chart.x.high))
    return f'{ticks}<path class="axis" d="{ends}"/>{_text(6, 56, first)}' + _text(
        334, 56, last, 'text-anchor="end"'
    )


def _grid(frame: Frame, chart: Chart) -> str:
    return "".join(f'<path class="grid" d="M{frame.x(v):.1f} 2V22"/>' for v in chart.x.ticks)


AXES = {"figure": _axes, "scale": _scale, "cell": _grid}


def _text(x: object, y: object, text: str, style: str = "", kind: str = "tick") -> str:
    named = f'class="{kind}" ' if kind else ""
    return f'<text {named}x="{x}" y="{y}" {style}>{_escape(text)}</text>'


@singledispatch
def _drawn(layer: Any, frame: Frame) -> str:
    raise TypeError(type(layer).__name__)


@singledispatch
def _signs(layer: Layer) -> list[tuple[str, str]]:
    """Return the signs of a layer, with their words, in the order of the key."""
    raise TypeError(type(layer).__name__)


@_drawn.register
def _(layer: Area, frame: Frame) -> str:
    around = [*layer.low, *reversed(layer.high)]
    return f'<path class="area" d="{_through(frame, around)}Z"/>' if around else ""


@_signs.register
def _(layer: Area) -> list[tuple[str, str]]:
    return [('<rect class="area" x="2" y="2" width="24" height="12"/>', layer.label)]


@_drawn.register
def _(layer: Line, frame: Frame) -> str:
    return f'<path class="{layer.kind}" d="{_through(frame, layer.points)}"/>'


@_signs.register
def _(layer: Line) -> list[tuple[str, str]]:
    return [(f'<path class="{layer.kind}" d="M1 8H27"/>', layer.label)]


@_drawn.register
def _(layer: Bars, frame: Frame) -> str:
    return "".join(_bar(frame, bar) for bar in layer.bars)


@_signs.register
def _(layer: Bars) -> list[tuple[str, str]]:
    listed = [(_rect(3, 2, 22, 12, is_off=False), layer.label)]
    off = (_rect(3, 2, 22, 12, is_off=True), layer.off_label)
    return [*listed, off] if _has_off(layer.bars) else listed


def _bar(frame: Frame, bar: Bar) -> str:
    # a gap of two units between bars
    left, right = frame.x(bar.start) + 1, frame.x(bar.end) - 1
    top = frame.y(bar.height)
    # an empty bar keeps a visible foot, so that its value can be pointed at
    height = max(frame.y(0) - top, 0.5)
    return _mark(bar.tip, _rect(left, top, right - left, height, is_off=bar.is_off))


def _rect(x: float, y: float, width: float, height: float, *, is_off: bool) -> str:
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    hatch = f'<rect fill="url(#outside)" {place}/>' if is_off else ""
    return f'<rect class="bar {"red" if is_off else "blue"}" {place}/>{hatch}'


@_drawn.register
def _(layer: Points, frame: Frame) -> str:
    places = [(point.x, point.y) for point in layer.points]
    path = ""
    if places and layer.joined_by != "nothing":
        through = _stairs(places) if layer.joined_by == "steps" else places
        path = _in(layer.color, f'<path class="path" d="{_through(frame, through)}"/>')
    return path + "".join(_point(frame, point, layer) for point in layer.points)


@_signs.register
def _(layer: Points) -> list[tuple[str, str]]:
    path = "" if layer.joined_by == "nothing" else '<path class="path" d="M1 8H27"/>'
    has_whiskers = any(point.down_to is not None for point in layer.points)
    y = 7 if has_whiskers else 8
    whisker = '<path class="whisker" d="M14 7V15M10 15h8"/>' if has_whiskers else ""
    listed = [(_in(layer.color, path + whisker + _shape(layer.shape, 14, y)), layer.label)]
    off = (_in("red", _shape("square", 14, 8)), layer.off_label)
    return [*listed, off] if _has_off(layer.points) else listed


def _stairs(corners: Sequence[Place]) -> list[Place]:
    """Return the corners of steps that are level from each point to the next."""
    turns = [(later[0], earlier[1]) for earlier, later in pairwise(corners)]
    return [place for pair in zip(corners, [*turns, corners[-1]], strict=True) for place in pair]


def _point(frame: Frame, point: Point, layer: Points) -> str:
    x, y = frame.x(point.x), frame.y(point.y)
    color: Color = "red" if point.is_off else layer.color
    shape: Shape = "square" if point.is_off else layer.shape
    whisker = ""
    if point.across is not None:
        left, right = map(frame.x, point.across)
        whisker = f'<path class="whisker" d="M{left:.1f} {_n(y)}H{right:.1f}"/>'
    if point.down_to is not None:
        end = frame.y(point.down_to)
        whisker = f'<path class="whisker" d="M{x:.1f} {y:.1f}V{end:.1f}M{x - 4:.1f} {end:.1f}h8"/>'
    return _mark(point.tip, whisker + _shape(shape, x, y), (x, y), color)


@_drawn.register
def _(layer: Intervals, frame: Frame) -> str:
    parts, top = [], frame.top
    for group in layer.groups:
        parts.append(_interval_group(frame, group, top))
        top += _height(group)
    return "".join(parts)


@_signs.register
def _(layer: Intervals) -> list[tuple[str, str]]:
    def sign(color: Color, kind: str) -> str:
        return _in(color, f'<path class="{kind}" d="M1 8H27"/>{_shape("hollow", 14, 8)}')

    return [
        (sign("blue", "path"), layer.label),
        (sign("red", "path dashed"), layer.off_label),
        ('<path class="fact" d="M14 1V15"/>', layer.value_label),
    ]


def _head(group: IntervalGroup) -> float:
    """Return the room above the intervals of a group: a single one has the name beside it."""
    return GAP if len(group.intervals) > 1 or group.intervals[0].name else GAP / 2


def _height(group: IntervalGroup) -> float:
    return _head(group) + LINE * len(group.intervals)


def _interval_group(frame: Frame, group: IntervalGroup, top: float) -> str:
    head = _head(group)
    x = frame.x(group.value)
    end = top + _height(group) - 4
    name_at = top + (16 if head == GAP else head + LINE * 0.3 + 4)
    hidden = 'aria-hidden="true"'
    name = _text(4, f"{name_at:.1f}", short(group.name, ON_CHART), hidden, "")
    # a wide invisible strip: a line of one pixel is hard to point at
    hit = (
        f'<rect class="hit" x="{x - 6:.1f}" y="{top + 4:.1f}" width="12"'
        f' height="{end - top - 4:.1f}"/>'
    )
    fact = _mark(group.tip, f'{hit}<path class="fact" d="M{x:.1f} {top + 8:.1f}V{end:.1f}"/>')
    lines = []
    for i, interval in enumerate(group.intervals):
        y = top + head + LINE * (i + 0.3)
        if interval.name:
            lines.append(_text(8, f"{y:.1f}", interval.name, f'dy=".35em" {hidden}'))
        lines.append(_interval(frame, interval, y))
    return name + fact + "".join(lines)


def _interval(frame: Frame, interval: Interval, y: float) -> str:
    left, right = frame.x(interval.low), frame.x(interval.high)
    # dashed as well as red, for readers who do not see red
    kind = "path dashed" if interval.is_off else "path"
    drawing = (
        f'<rect class="hit" x="{left:.1f}" y="{y - 7:.1f}" width="{max(right - left, 1):.1f}"'
        f' height="14"/><path class="{kind}" d="M{left:.1f} {y:.1f}H{right:.1f}"/><path'
        f' class="path" d="M{left:.1f} {y - 4:.1f}v8M{right:.1f} {y - 4:.1f}v8"/>'
    )
    if interval.middle is not None and known(interval.middle):
        drawing += _shape("hollow", frame.x(interval.middle), y)
    return _mark(interval.tip, drawing, kind="red" if interval.is_off else "blue")


def _mark(label: str, drawing: str, at: Place | None = None, kind: str = "") -> str:
    """Attach a label to a drawing, shown to the pointer and the keyboard; `at` is easily hit."""
    # an invisible circle larger than the shape: small targets are hard to hit on a touch screen
    hit = "" if at is None else f'<circle class="hit" cx="{_n(at[0])}" cy="{_n(at[1])}" r="10"/>'
    # a screen reader announces it as an image of that name
    return f'<g class="mark {kind}" role="img"><title>{_escape(label)}</title>{hit}{drawing}</g>'


def _shape(name: Shape, x: float, y: float) -> str:
    places = {"x": x, "y": y, "x0": x - 4, "y0": y - 4}
    places |= {"top": y - 6, "bottom": y + 6, "left": x - 6, "right": x + 6}
    return SHAPES[name].format(**{key: _n(value) for key, value in places.items()})


def _in(color: Color, drawing: str) -> str:
    return f'<g class="{color}">{drawing}</g>'


def _has_off(marks: Iterable[Bar | Point]) -> bool:
    return any(mark.is_off for mark in marks)


def _through(frame: Frame, places: Iterable[Place]) -> str:
    return "".join(
        f"{'L' if i else 'M'}{_n(frame.x(x))} {_n(frame.y(y))}" for i, (x, y) in enumerate(places)
    )


def _n(value: float) -> str:
    # a tenth of a unit is finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")


def _escape(text: str) -> str:
    return html.escape(printable(text))
