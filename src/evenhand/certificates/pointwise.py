"""Bound for every group of links, probability level by level (method: sharp certificate).

The CDF of a group's served PITs at `c` is `integral F_S(K(c; r)) dr`, and the CDF `F_S` of the
base's PIT in a group of the given mass lies between limits that follow from the bands.
"""

from __future__ import annotations

import numpy as np

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
    matters = jumps > 0
    # H increases with the draw: at the lower end of its cell it is smallest, and the CDF largest
    r = np.maximum(np.arange(DRAWS) / DRAWS, 2.0**-60)
    served = _served(link, band.starts[matters][:, None], r)
    cell = np.minimum((served * LEVELS).astype(np.intp), LEVELS - 1)
    weights = np.broadcast_to(jumps[matters][:, None] / DRAWS, cell.shape)
    share = np.bincount(cell.ravel(), weights.ravel(), minlength=LEVELS)
    return np.asarray(np.minimum(np.cumsum(share), 1.0))


def _served(link: Link, u: Floats, r: Floats) -> Floats:
    """Return `H(u; r)`, faster than `Link.ppf`, which keeps the digits of small values."""
    if link.alpha == 1:
        return np.broadcast_to(u, (u.size, r.size))
    upper = u > 0.5
    with np.errstate(divide="ignore"):
        log_u = np.log(np.where(upper, 1 - u, u))
    return link.ppf_lower(log_u, np.where(upper, 1 - r, r), upper)
