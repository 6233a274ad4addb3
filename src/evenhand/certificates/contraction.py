"""Bound for every group of links by sign changes of its CDF (method: sharp certificate).

With `mu` the mean served PIT of a link and `F_S` the CDF of the base's PIT in a group, the group's
error is at most `integral |F_S(u) - u| dmu(u)`. The bound is the largest such integral over all
CDFs `W` that a group of the given mass can have inside the bands, found by the places where `W - u`
changes its sign: `W(v) = v` there, which limits `W` on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import CDFBand, CDFBands
from evenhand.links import Link

CELLS = 256
"""Number of cells of [0, 1] in which sign changes are located."""

# multiples of 2^-53: their distances from 1 are floats, too
_LOWER = 1 - (1 - np.append(np.geomspace(2.0**-53, 0.5, 1000), np.linspace(0.0, 0.5, 1001)))
PLACES = np.unique(np.append(_LOWER, 1 - _LOWER))
"""Possible edges of cells, symmetric and closer to each other near 0 and 1, where `mu` is steep."""


@dataclass(frozen=True)
class Contraction:
    """Bands for the CDF of a base's PIT, measured by the mean served PIT of a link.

    Parameters
    ----------
    cells : Cells
        Cells of [0, 1].
    above, below : Heights
        Bands for the PIT `U`, and for `1 - U`.
    remainder : float
        Error of the link itself over a calibrated base, which is added.
    """

    cells: Cells
    above: Heights
    below: Heights
    remainder: float

    @classmethod
    def of(cls, link: Link, bands: CDFBands) -> Self:
        """Measure the bands by a link."""
        cells = Cells.of(link)
        above = Heights.of(cells, bands.upper, bands.mirrored, link)
        # evenly spread PITs have one band for both sides
        is_even = bands.mirrored is bands.upper
        below = above if is_even else Heights.of(cells, bands.mirrored, bands.upper, link)
        return cls(cells, above, below, link.calibration_error)

    def bound(self, mass: float) -> float:
        """Return an upper bound for the W1 error of every group of at least this share."""
        above = _stretches(self.cells, self.above, mass)
        is_even = self.below is self.above
        mirrored = above if is_even else _stretches(self.cells, self.below, mass)
        # below the diagonal the mirrored CDF lies above it; the cells are symmetric
        below = mirrored[::-1, ::-1].T
        return _longest_path(np.maximum(above, below), self.cells) + self.remainder


@dataclass(frozen=True)
class Cells:
    """Cells of [0, 1], symmetric about 1/2, and integrals over them.

    Parameters
    ----------
    edges : ndarray of shape (k + 1,)
        Edges, from 0 to 1.
    mu : ndarray of shape (k + 1,)
        Mean served PIT at the edges.
    moment : ndarray of shape (k + 1,)
        `integral u dmu(u)` from 0 to each edge.
    """

    edges: Floats
    mu: Floats
    moment: Floats

    @classmethod
    def of(cls, link: Link) -> Self:
        # cells are short in u and in mu: heights are limited by u, widths are measured by mu
        place = (link.mean_pit(PLACES) + PLACES) / 2
        edges = PLACES[np.searchsorted(place, np.arange(1, CELLS // 2) / CELLS)]
        edges = np.unique(np.concatenate(([0.0], edges, [0.5], 1 - edges, [1.0])))
        mu = link.mean_pit(edges)
        return cls(edges, mu, edges * mu - link.mean_pit_integral(edges))


@dataclass(frozen=True)
class Heights:
    """Bands at the cells: mean (in `mu`) and top of the upper band, lower band at the edges."""

    mean: Floats
    top: Floats
    low: Floats

    @classmethod
    def of(cls, cells: Cells, upper: CDFBand, mirrored: CDFBand, link: Link) -> Self:
        steps = np.union1d(upper.starts, cells.edges)
        area = np.cumsum(upper.at(steps[:-1]) * np.diff(link.mean_pit(steps)))
        at_edges = np.append(0.0, area)[np.searchsorted(steps, cells.edges)]
        width = np.diff(cells.mu)
        top = upper.at(cells.edges[1:])
        mean = np.divide(np.diff(at_edges), width, out=top.copy(), where=width > 0)
        return cls(np.minimum(mean, top), top, 1 - mirrored.at(1 - cells.edges))


def _stretches(cells: Cells, heights: Heights, mass: float) -> Floats:
    """Return bounds for `integral (W - u) dmu` between two sign changes with `W >= u` between them.

    Rows and columns are the places of the first and the second change: the point 0, each cell, the
    point 1. A change may lie anywhere in its cell. Entries on and below the diagonal mean nothing.
    """
    edges, mu = cells.edges, cells.mu
    k = edges.size - 1
    left = np.concatenate(([0.0], edges[:-1], [1.0]))
    right = np.concatenate(([0.0], edges[1:], [1.0]))
    low = np.concatenate(([0.0], heights.low))
    # full cells lie from edge `first` of the start to edge `last` of the end
    first = np.concatenate(([0], np.arange(1, k + 1), [k]))
    last = np.concatenate(([0], np.arange(k), [k]))

    def cap(height: Floats, place: Floats, before: Floats) -> Floats:
        # mass of the group after the change is at most 1/mass times that of all people
        since = place + (height - before) / mass
        return np.minimum(np.minimum(height / mass, 1.0), since)

    # the cap is concave in the band: on a full cell its mean is at most the cap of the mean band
    caps = cap(heights.mean, right[:, None], low[:, None])
    sums = np.zeros((k + 2, k + 1))
    np.cumsum(caps * np.diff(mu), axis=1, out=sums[:, 1:])
    # before the second change W is at most the place of that change
    reach = np.array([np.searchsorted(row, right) for row in caps])
    reach = np.clip(reach, first[:, None], np.maximum(last, first[:, None]))
    start = np.arange(k + 2)[:, None]
    total = sums[start, reach] - sums[start, first[:, None]]
    total += right * (mu[last] - mu[reach])
    total -= cells.moment[last] - cells.moment[first][:, None]
    # parts of the two end cells: largest height over the whole cell
    width = np.concatenate(([0.0], np.diff(mu), [0.0]))
    tops = cap(heights.top, right[1:-1], low[1:-1])
    highest = np.minimum(right, np.concatenate(([0.0], tops, [0.0]))[:, None])
    total += width[:, None] * np.maximum(highest - left[:, None], 0.0)
    return np.asarray(total + width * (right - left))


def _longest_path(stretches: Floats, cells: Cells) -> float:
    """Return the largest sum of stretches from 0 to 1."""
    # all changes within one cell: W and u lie between the first and the last of them
    inside = np.concatenate(([0.0], np.diff(cells.mu) * np.diff(cells.edges), [0.0]))
    best = np.zeros(inside.size)
    for node in range(1, inside.size):
        best[node] = (best[:node] + stretches[:node, node]).max() + inside[node]
    return float(best[-1])
