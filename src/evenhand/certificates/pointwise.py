"""Bound for every group of links, probability level by level (method: sharp certificate).

The CDF of a group's served PITs at `c` is `integral F_S(K(c; r)) dr`, and the CDF `F_S` of the
base's PIT in a group of the given mass lies between limits that follow from the bands.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.calibration import CDFBand, CDFBands
from evenhand.links import Link

DRAWS = 512
"""Number of cells of draws; each is represented by the end that makes the bound larger."""

LEVELS = 4096
"""Number of cells of probability levels."""


def pointwise_bound(link: Link, bands: CDFBands, mass: float) -> float:
    """Return an upper bound for the W1 error of every group of at least this share of people.

    Parameters
    ----------
    link : Link
        The link around the base.
    bands : CDFBands
        Bands for the CDF of the base's PIT.
    mass : float
        Smallest share of people in a group, 0 < mass <= 1.
    """
    high = _served_cdf(link, bands.upper, mass)
    # evenly spread PITs have one band for both sides
    is_even = bands.mirrored is bands.upper
    mirrored = high if is_even else _served_cdf(link, bands.mirrored, mass)
    low = 1 - mirrored[::-1]
    # |CDF - c| is at most the larger of high - c and c - low, which are equal at the middle
    edges = np.linspace(0.0, 1.0, LEVELS + 1)
    middle = np.clip((high + low) / 2, edges[:-1], edges[1:])
    before = middle - edges[:-1]
    after = edges[1:] - middle
    area = before * (high - (edges[:-1] + middle) / 2) + after * ((edges[1:] + middle) / 2 - low)
    return float(area.sum())


def _served_cdf(link: Link, band: CDFBand, mass: float) -> Floats:
    """Bound the CDF of the served PITs of a group from above, on equal cells of levels."""
    limit = np.minimum(band.upper / mass, 1.0)
    jumps = np.diff(limit, prepend=0.0)
    # the band increases: only its first steps, below the mass, and the next one matter
    n_steps = int(np.flatnonzero(jumps)[-1]) + 1
    cell = _cells(link, band).first(n_steps)
    weights = np.broadcast_to(jumps[:n_steps, None] / DRAWS, cell.shape)
    share = np.bincount(cell.ravel(), weights.ravel(), minlength=LEVELS)
    return np.asarray(np.minimum(np.cumsum(share), 1.0))


class _Cells:
    """Cells of levels that contain the served PITs at the steps of a band, for any mass.

    Smaller masses need fewer steps, so steps are computed when a mass needs them first.
    """

    def __init__(self, link: Link, starts: Floats) -> None:
        self._link = link
        self._starts = starts
        self._known: NDArray[np.uint16] = np.empty((0, DRAWS), dtype=np.uint16)

    def first(self, n_steps: int) -> NDArray[np.uint16]:
        """Return the cells at the first steps, shape (n_steps, DRAWS)."""
        n_known = self._known.shape[0]
        if n_steps > n_known:
            # H increases with the draw: at the lower end of its cell it is smallest, and the CDF
            # is largest
            r = np.maximum(np.arange(DRAWS) / DRAWS, 2.0**-60)
            served = _served(self._link, self._starts[n_known:n_steps, None], r)
            more = np.minimum((served * LEVELS).astype(np.uint16), LEVELS - 1)
            self._known = np.concatenate((self._known, more), dtype=np.uint16)
        return self._known[:n_steps]


# one table serves all masses of an audit
@lru_cache(maxsize=4)
def _cells(link: Link, band: CDFBand) -> _Cells:
    return _Cells(link, band.starts)


def _served(link: Link, u: Floats, r: Floats) -> Floats:
    """Return `H(u; r)`, faster than `Link.ppf`, which keeps the digits of small values."""
    if link.alpha == 1:
        return np.broadcast_to(u, (u.size, r.size))
    upper = u > 0.5
    with np.errstate(divide="ignore"):
        log_u = np.log(np.where(upper, 1 - u, u))
    return link.ppf_lower(log_u, np.where(upper, 1 - r, r), upper)
