"""Charts as SVG inside a page: scales, axes and marks with their values.

Text from data is escaped here alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evenhand._format import is_known
from evenhand.report.page import escape, short

TIP_NAME = 60
"""Most characters of a name in the label of a mark."""

SHAPES = {
    "circle": '<circle class="shape" cx="{x}" cy="{y}" r="4.5"/>',
    "square": '<rect class="shape" x="{x0}" y="{y0}" width="8" height="8"/>',
    "diamond": '<path class="shape" d="M{x} {top}L{right} {y}L{x} {bottom}L{left} {y}Z"/>',
    "hollow": '<circle class="hollow" cx="{x}" cy="{y}" r="4"/>',
}


@dataclass(frozen=True)
class Frame:
    """Ranges of both axes of a chart, its size and its margins, in units of the picture."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    height: float = 300
    width: float = 480
    left: float = 44
    right: float = 20
    top: float = 28
    bottom: float = 46

    def x(self, value: float) -> float:
        return self.left + self._part(value, self.x_range) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        # SVG counts from the top, so that larger values have smaller coordinates
        return (
            self.height
            - self.bottom
            - self._part(value, self.y_range) * (self.height - self.top - self.bottom)
        )

    @staticmethod
    def _part(value: float, ends: tuple[float, float]) -> float:
        # halves, as the width of a range of huge numbers may overflow
        width = ends[1] / 2 - ends[0] / 2
        # a value outside the range is drawn just beyond the axis; a range of one value has only
        # its middle
        return min(max((value / 2 - ends[0] / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def axes(
    frame: Frame,
    *,
    x: str,
    y: str,
    x_ticks: Sequence[float],
    y_ticks: Sequence[float] = (),
    x_text: Callable[[float], str],
    y_text: Callable[[float], str] = str,
) -> str:
    """Draw the axes: a grid, its values and the names of both axes."""
    left = frame.left
    right = frame.width - frame.right
    low = frame.height - frame.bottom
    high = frame.top
    parts = []
    for value in y_ticks:
        at = _n(frame.y(value))
        parts.append(f'<path class="grid" d="M{left} {at}H{right}"/>')
        parts.append(
            f'<text class="tick" x="{left - 7}" y="{at}" dy=".35em"'
            f' text-anchor="end">{y_text(value)}</text>'
        )
    for value in x_ticks:
        at = _n(frame.x(value))
        # one grid is enough: vertical lines only where there are no horizontal ones
        start = high if not y_ticks else low
        parts.append(f'<path class="grid" d="M{at} {_n(start)}V{_n(low + 5)}"/>')
        parts.append(
            f'<text class="tick" x="{at}" y="{low + 18}"'
            f' text-anchor="middle">{escape(x_text(value))}</text>'
        )
    parts.append(f'<path class="axis" d="M{left} {low}H{right}"/>')
    parts.append(
        f'<text x="{(left + right) / 2}" y="{frame.height - 6}"'
        f' text-anchor="middle">{escape(x)}</text>'
    )
    if y:
        # above the plot and not along the axis: rotated text is hard to read
        parts.append(f'<text x="4" y="14">{escape(y)}</text>')
    # screen readers get the values from the marks and the table, not from the ticks
    return f'<g aria-hidden="true">{"".join(parts)}</g>'


def line(frame: Frame, points: Iterable[tuple[float, float]], kind: str) -> str:
    """Draw a line through points, in units of the data."""
    return f'<path class="{kind}" d="{_through(frame, points)}"/>'


def area(
    frame: Frame, low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]]
) -> str:
    """Fill what lies between two lines."""
    return f'<path class="area" d="{_through(frame, [*low, *reversed(high)])}Z"/>'


def mark(label: str, drawing: str, at: tuple[float, float] | None = None, kind: str = "") -> str:
    """Attach a label to a drawing, shown to the pointer and the keyboard; `at` is easily hit."""
    # an invisible circle larger than the shape: small targets are hard to hit on a touch screen
    hit = "" if at is None else f'<circle class="hit" cx="{_n(at[0])}" cy="{_n(at[1])}" r="10"/>'
    # a screen reader announces it as an image of that name
    return f'<g class="mark {kind}" role="img"><title>{escape(label)}</title>{hit}{drawing}</g>'


def point(frame: Frame, place: tuple[float, float], name: str, kind: str, label: str) -> str:
    """Draw a labelled point, in units of the data."""
    at = (frame.x(place[0]), frame.y(place[1]))
    return mark(label, shape(name, *at), at, kind)


def shape(name: str, x: float, y: float) -> str:
    """Draw a point, in units of the picture."""
    places = {
        "x": x,
        "y": y,
        "x0": x - 4,
        "y0": y - 4,
        "top": y - 6,
        "bottom": y + 6,
        "left": x - 6,
        "right": x + 6,
    }
    return SHAPES[name].format(**{key: _n(value) for key, value in places.items()})


def chart(frame: Frame, alt: str, parts: Iterable[str]) -> str:
    """Join the parts of a chart; `alt` describes it to people who do not see it."""
    size = f"0 0 {_n(frame.width)} {_n(frame.height)}"
    return (
        f'<svg class="chart" viewBox="{size}" role="group"'
        f' aria-label="{escape(alt)}">{"".join(parts)}</svg>'
    )


def titled_chart(
    title: str, svg: str, key: Sequence[tuple[str, str]] = (), note: str = "", numbers: str = ""
) -> str:
    """Put a chart under its title, with the key to its signs and a table of its numbers.

    A sign is an SVG of 28 by 16 and words.
    """
    # signs repeat the words beside them, so screen readers skip them
    lines = "".join(
        '<li><svg viewBox="0 0 28 16"'
        f' aria-hidden="true">{sign}</svg><span>{escape(words)}</span></li>'
        for sign, words in key
    )
    below = f"<small>{escape(note)}</small>" if note else ""
    listed = f'<ul class="key">{lines}</ul>' if key else ""
    table = (
        f"<details><summary>The numbers of this figure</summary>{numbers}</details>"
        if numbers
        else ""
    )
    return f"<figure><figcaption>{escape(title)}{below}</figcaption>{listed}{svg}</figure>{table}"


def sign(name: str, kind: str) -> str:
    """Draw a point for the key of a figure."""
    return f'<g class="{kind}">{shape(name, 14, 8)}</g>'


AREA_SIGN = '<rect class="area" x="2" y="2" width="24" height="12"/>'
EVEN_SIGN = '<path class="even" d="M1 8H27"/>'


def line_sign(kind: str, name: str = "") -> str:
    """Draw a line for the key of a figure, with a point on it if one is named."""
    return (
        f'<g class="{kind}"><path class="path" d="M1'
        f' 8H27"/>{shape(name, 14, 8) if name else ""}</g>'
    )


def tip_name(name: object) -> str:
    """Shorten a name from data for the label of a mark, on one line."""
    return short(" ".join(str(name).split()), TIP_NAME)


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


def plain(value: float) -> str:
    """Write a value at an axis."""
    size = abs(value)
    # adding 0.0 removes the sign of a negative zero
    return f"{value + 0.0:.4g}" if size >= 1e7 or 0 < size < 1e-4 else f"{value + 0.0:,.10g}"


def known(*values: float | None) -> bool:
    """Whether all values are known."""
    return all(map(is_known, values))


def _through(frame: Frame, points: Iterable[tuple[float, float]]) -> str:
    return "".join(
        f"{'L' if i else 'M'}{_n(frame.x(x))} {_n(frame.y(y))}" for i, (x, y) in enumerate(points)
    )


def _n(value: float) -> str:
    # a tenth of a unit is finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")
