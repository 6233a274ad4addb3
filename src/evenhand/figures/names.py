"""Placement of names beside points, so that they cover neither each other nor the points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._validate import Floats
from evenhand.figures.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path
    from matplotlib.transforms import Bbox

PAD = 2.0
"""Room around a name, in points of print (1/72 inch)."""

REACH = 4.5
"""Half of the side of the square around a marker, in points of print."""

NEAR = [(7.0, 4.0), (7.0, -12.0), (-7.0, 4.0), (-7.0, -12.0)]
FAR = [
    (x, y)
    for away in (16.0, 28.0, 42.0, 58.0, 76.0, 96.0, 118.0)
    for x in (14.0, -14.0, 40.0, -40.0, 80.0)
    for y in (away, -away - 8.0)
]
"""Offsets of a name from its point, in points of print, the best first; a line leads to the names
of `FAR`."""


def place_names(
    axes: Axes,
    points: Floats,
    names: Mapping[int, str],
    ends: Floats,
    *,
    lines: Sequence[Floats],
    markers: Sequence[tuple[float, float]] = (),
) -> None:
    """Write names beside points, one after the other, each in the best place that is left.

    Parameters
    ----------
    axes : Axes
        Axes with their final limits, texts and legend.
    points : ndarray of shape (n, 2)
        Points that names should not cover; NaN where they are unknown.
    names : dict of int to str
        Names as they are shown, by the rows of their points; those of unknown points are left out.
    ends : ndarray of shape (2, n)
        Lower and upper ends of the error bars of the points; NaN where there are none.
    lines : list of ndarray of shape (q, 2)
        Vertices of other lines that names should not cover.
    markers : list of (x, y)
        Other points that names should not cover.
    """
    if not names:
        return
    from matplotlib.path import Path
    from matplotlib.transforms import Bbox

    figure = axes.get_figure(root=True)
    assert figure is not None
    # distances between artists are known after the layout only
    figure.draw_without_rendering()
    unit = figure.dpi / 72
    inside = axes.patch.get_window_extent()
    known = np.flatnonzero(np.isfinite(points).all(axis=-1)).tolist()
    place = axes.transData.transform
    spots = place(points)
    squares = {i: Bbox([spots[i] - REACH * unit, spots[i] + REACH * unit]) for i in known}
    taken = list(squares.values())
    taken += [Bbox([place(spot) - REACH * unit, place(spot) + REACH * unit]) for spot in markers]
    taken += [
        part.get_window_extent() for part in (*axes.texts, axes.get_legend()) if part is not None
    ]
    # the tight box of a panel includes its title and numbers
    taken += [box for panel in axes.child_axes if (box := panel.get_tightbbox()) is not None]
    bars = [np.stack([points[[i, i], 0], ends[:, i]], axis=-1) for i in known]
    paths = [Path(place(line)) for line in (*lines, *bars)]
    for i in (i for i in names if i in squares):
        size = _size(axes, names[i])
        # a line to the name starts in the square of its own point
        others = [box for box in taken if box is not squares[i]]
        costs, boxes = [], []
        for rank, (right, up) in enumerate(NEAR + FAR):
            start = spots[i] + (unit * right - size[0] * (right < 0), unit * up)
            box = Bbox([start, start + size])
            # the line from the point ends at the corner that is next to it
            lead = Path([spots[i], start + size * (right < 0, up < 0)])
            crossed = sum(lead.intersects_bbox(other, filled=False) for other in others)
            boxes.append(box.padded(PAD * unit))
            costs.append(rank + _cost(boxes[-1], taken, paths, inside) + 30.0 * crossed)
        best = int(np.argmin(costs))
        taken.append(boxes[best])
        _write(axes, names[i], (points[i, 0], points[i, 1]), (NEAR + FAR)[best])


def _cost(box: Bbox, taken: Sequence[Bbox], paths: Sequence[Path], inside: Bbox) -> float:
    """Return the cost of a place; one place down the list of offsets costs 1.

    A name that covers another name or a marker cannot be read, one that leaves the axes is cut off,
    and one on a line is only less tidy.
    """
    is_outside = not inside.containsx(box.x0) or not inside.containsx(box.x1)
    is_outside |= not inside.containsy(box.y0) or not inside.containsy(box.y1)
    is_on_line = any(path.intersects_bbox(box, filled=False) for path in paths)
    return 300.0 * box.count_overlaps(taken) + 900.0 * is_outside + 30.0 * is_on_line


def _size(axes: Axes, name: str) -> Floats:
    """Return width and height of a name in dots."""
    probe = axes.text(0.5, 0.5, name, fontsize="small", transform=axes.transAxes)
    size = probe.get_window_extent().size
    probe.remove()
    return np.asarray(size)


def _write(axes: Axes, name: str, point: tuple[float, float], offset: tuple[float, float]) -> None:
    right, up = offset
    side = "right" if right < 0 else "left"
    style: dict[str, Any] = {"ha": side, "va": "bottom", "fontsize": "small", "zorder": 5}
    if offset not in NEAR:
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkA": 1}
        style["arrowprops"] = line | {"relpos": (float(right < 0), float(up < 0))}
    axes.annotate(name, point, offset, textcoords="offset points", **style)
