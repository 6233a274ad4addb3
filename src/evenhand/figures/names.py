"""Placement of names beside points, so that they cover neither each other nor the points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._validate import Floats
from evenhand.figures.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAD_POINTS = 2.0
"""Room around a name, in points of print (1/72 inch)."""

NEAR = [(7.0, 4.0), (7.0, -12.0), (-7.0, 4.0), (-7.0, -12.0)]
FAR = [
    (x, y)
    for away in (16.0, 28.0, 42.0, 58.0, 76.0, 96.0, 118.0)
    for x in (14.0, -14.0, 40.0, -40.0, 80.0)
    for y in (away, -away - 8.0)
]
"""Offsets of a name from its point, in points of print, the best first; a line leads to the names
of `FAR`."""

Box = tuple[float, float, float, float]


def place_names(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    *,
    markers: Sequence[tuple[float, float]] = (),
    lines: Sequence[Floats] = (),
) -> None:
    """Write names beside points, one after the other, each in the best place that is left.

    Parameters
    ----------
    axes : Axes
        Axes with their final limits, texts and legend.
    points : list of (x, y)
        One per name, finite.
    names : list of str
        Names as they are shown.
    markers : list of (x, y)
        Other points that names should not cover.
    lines : list of ndarray of shape (q, 2)
        Lines that names should not cover, as points close to each other.
    """
    if not names:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    # distances between artists are known after the layout only
    figure.draw_without_rendering()
    unit = figure.dpi / 72
    inside = _box(axes.patch)
    spots = axes.transData.transform(np.array([*points, *markers], dtype=np.float64))
    # a marker takes a square of 9 points of print
    reach = 9 * unit / 2
    taken: list[Box] = [(x - reach, y - reach, x + reach, y + reach) for x, y in spots]
    taken += [_box(part) for part in (*axes.texts, axes.get_legend()) if part is not None]
    # the tight box of a panel includes its title and numbers
    panels = (panel.get_tightbbox() for panel in axes.child_axes)
    taken += [box.extents for box in panels if box is not None]
    paths = np.concatenate([np.empty((0, 2)), *(axes.transData.transform(line) for line in lines)])
    for point, (x, y), name in zip(points, spots, names, strict=False):
        width, height = _size(axes, name, PAD_POINTS * unit)
        others = [box for box, spot in zip(taken, spots, strict=False) if tuple(spot) != (x, y)]
        offsets = NEAR + FAR
        # offsets are those of the text, not of the room around it
        shifts = [
            (x + unit * (right - math.copysign(PAD_POINTS, right)), y + unit * (up - PAD_POINTS))
            for right, up in offsets
        ]
        boxes = [
            _box_at(*shift, width, height, offset[0] < 0)
            for shift, offset in zip(shifts, offsets, strict=True)
        ]
        costs = [
            rank
            + _cost(box, taken, paths, inside)
            + _leading_cost((x, y), shift, taken[len(spots) :] + others)
            for rank, (box, shift) in enumerate(zip(boxes, shifts, strict=True))
        ]
        best = int(np.argmin(costs))
        taken.append(boxes[best])
        _write(axes, name, point, offsets[best])


def _leading_cost(
    spot: tuple[float, float], end: tuple[float, float], others: Sequence[Box]
) -> float:
    """Return the cost of the line from a point to its name: 30 for each box that it crosses."""
    path = np.linspace(spot, end, 30)
    passed = sum(bool(((path > box[:2]) & (path < box[2:])).all(axis=-1).any()) for box in others)
    return 30.0 * passed


def _write(axes: Axes, name: str, point: tuple[float, float], offset: tuple[float, float]) -> None:
    right, up = offset
    style: dict[str, Any] = {
        "ha": "right" if right < 0 else "left",
        "va": "bottom",
        "fontsize": "small",
        "zorder": 5,
    }
    if offset not in NEAR:
        corner = (float(right < 0), float(up < 0))
        style["arrowprops"] = {
            "arrowstyle": "-",
            "color": GREY,
            "linewidth": 0.7,
            "relpos": corner,
            "shrinkA": 1,
        }
    axes.annotate(name, point, offset, textcoords="offset points", **style)


def _size(axes: Axes, name: str, pad: float) -> tuple[float, float]:
    """Return width and height of a name with some room around it, in dots."""
    probe = axes.text(0.5, 0.5, name, fontsize="small", transform=axes.transAxes)
    box = _box(probe)
    probe.remove()
    return box[2] - box[0] + 2 * pad, box[3] - box[1] + 2 * pad


def _box_at(x: float, y: float, width: float, height: float, is_left: bool) -> Box:
    start = x - width if is_left else x
    return start, y, start + width, y + height


def _box(artist: Any) -> Box:
    box = artist.get_window_extent()
    return box.x0, box.y0, box.x1, box.y1


def _cost(box: Box, taken: Sequence[Box], paths: Floats, inside: Box) -> float:
    """Return the cost of a place; one place down the list of offsets costs 1.

    A name that covers another name or a marker cannot be read, one that leaves the axes is cut off,
    and one on a line is only less tidy: 300 for each box, 900 for leaving, and 5 for each point of
    a line, up to 30.
    """
    left, low, right, high = box
    clashes = sum(left < b[2] and b[0] < right and low < b[3] and b[1] < high for b in taken)
    crossed = ((paths > (left, low)) & (paths < (right, high))).all(axis=-1).sum()
    is_outside = left < inside[0] or low < inside[1] or right > inside[2] or high > inside[3]
    return 300.0 * clashes + min(5.0 * float(crossed), 30.0) + 900.0 * is_outside
