"""Exact sums of ramps: CDFs of randomized PITs, averaged over the positions in their cells.

The randomized PIT of an outcome with an atom is uniform on its cell `[low, high]`. Its CDF is the
ramp `clip((c - low) / (high - low), 0, 1)`, or a step if the cell is a point (outcomes: 4.3).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.calibration.distances import row_distances

NARROWEST = 1e-14
"""Width up to which a cell is replaced by its middle: its PIT moves by a quarter of it on average.
"""

NARROW = 1e-6
"""Width up to which a cell is replaced by its middle in sums at few levels, whose rounding errors
are then below 1e-9."""

BLOCK_ENDS = 1 << 18
"""Number of ends of cells processed at once, so that temporaries need little memory."""


def ramp_distance(low: Floats, high: Floats, weights: Floats | float, p: float = 1.0) -> Floats:
    """Return `W_p^p` between weighted sums of ramps and the uniform CDF, along the last axis.

    The sum is piecewise linear between the ends of the cells, and jumps where a cell is a point.
    Its slopes and values are accumulated over the sorted ends, in `O(k log k)`.

    Parameters
    ----------
    low, high : ndarray of shape (k,) or (n, k)
        Ends of the cells, between 0 and 1.
    weights : float or ndarray of the shape of the cells
        Weights of the ramps, at least 0; they add up to 1 along the last axis.
    p : float, default 1
        Order, at least 1.

    Returns
    -------
    ndarray of shape () or (n,)

    Examples
    --------
    Two cells that divide [0, 1], and a point:

    >>> float(ramp_distance(np.array([0.0, 0.5]), np.array([0.5, 1.0]), 0.5))
    0.0
    >>> float(ramp_distance(np.array([0.5]), np.array([0.5]), 1.0))
    0.25
    """
    ends, rises, jumps = _sorted_ends(low, high, weights)
    quantum = _quantum(rises)
    coarse = fine = cdf = left = np.zeros((*ends.shape[:-1], 1))
    total = np.zeros(ends.shape[:-1])
    for start in range(0, ends.shape[-1], BLOCK_ENDS):
        part = slice(start, start + BLOCK_ENDS)
        # slopes of narrow cells are up to 1e14 times those of wide ones: multiples of the quantum
        # are added and removed without rounding, and the rests are too small for theirs to matter
        rise = rises[..., part]
        multiple = (rise + quantum) - quantum
        coarse = _cumulated(coarse, multiple)
        fine = _cumulated(fine, rise - multiple)
        # the piece that stops at an end has the slope behind the end before it
        knots = np.concatenate((left, ends[..., part]), axis=-1)
        jump = jumps[..., part]
        grown = (coarse + fine)[..., :-1] * np.diff(knots, axis=-1)
        cdf = _cumulated(cdf, grown + jump)
        total += _distance(knots, cdf, jump, p)
        coarse, fine, cdf, left = (values[..., -1:] for values in (coarse, fine, cdf, knots))
    if p == 1:
        # beyond the last end the CDF is 1
        total += (1 - left[..., 0]) ** 2 / 2
    return total


def cell_row_distances(low: Floats, high: Floats) -> Floats:
    """Return the W1 distance of each row of cells to the uniform distribution, (n, m) -> (n,).

    Examples
    --------
    >>> cell_row_distances(np.array([[0.0], [0.5]]), np.array([[0.5], [0.5]]))
    array([0.25, 0.25])
    """
    has_atoms = (low < high).any(axis=-1)
    if has_atoms.all():
        return ramp_distance(low, high, 1 / low.shape[-1])
    distances = np.empty(low.shape[0])
    distances[~has_atoms] = row_distances(low[~has_atoms])
    if has_atoms.any():
        distances[has_atoms] = cell_row_distances(low[has_atoms], high[has_atoms])
    return distances


def ramps_at(levels: Floats, low: Floats, high: Floats, *, is_below: bool = False) -> Floats:
    """Return the sum of each row's ramps at some levels, to within 1e-9, (n, m) -> (n, k).

    Parameters
    ----------
    levels : ndarray of shape (k,)
        Increasing levels between 0 and 1.
    low, high : ndarray of shape (n, m)
        Ends of the cells.
    is_below : bool, default False
        Whether a point counts only where it is below a level, not at it.

    Examples
    --------
    >>> cells = np.array([[0.0, 0.5]]), np.array([[0.5, 0.5]])
    >>> ramps_at(np.array([0.25, 0.5]), *cells), ramps_at(np.array([0.5]), *cells, is_below=True)
    (array([[0.5, 2. ]]), array([[1.]]))
    """
    n, m = low.shape
    width = high - low
    is_ramp = width > NARROW
    slope = np.divide(1.0, width, out=np.zeros(width.shape), where=is_ramp)
    middle = low + width / 2
    bins = levels.size + 1
    side: Literal["left", "right"] = "right" if is_below else "left"
    row = np.arange(n)[:, None] * bins

    def first_beyond(ends: Floats) -> Ints:
        at = np.searchsorted(levels, np.where(is_ramp, ends, middle), side=side)
        return np.asarray(at + row).ravel()

    def summed(changes: Floats, places: Ints) -> Floats:
        sums = np.bincount(places, changes.ravel(), n * bins)
        return np.asarray(sums.reshape(n, bins)[:, :-1], dtype=np.float64)

    starts = first_beyond(low)
    stops = first_beyond(high)
    # a ramp is slope * (c - low) between its ends, and 1 beyond them
    slopes = summed(slope, starts) - summed(slope, stops)
    constants = summed(1 + slope * low, stops) - summed(slope * low, starts)
    sums = np.cumsum(slopes, axis=-1) * levels + np.cumsum(constants, axis=-1)
    return np.asarray(np.clip(sums, 0.0, m))


def _sorted_ends(
    low: Floats, high: Floats, weights: Floats | float
) -> tuple[Floats, Floats, Floats]:
    """Return the sorted ends of cells, and changes of the slope and jumps of the CDF at them."""
    width = high - low
    is_ramp = width > NARROWEST
    slope = np.divide(weights, width, out=np.zeros(width.shape), where=is_ramp)
    jump = np.where(is_ramp, 0.0, weights)
    middle = low + width / 2
    first = np.where(is_ramp, low, middle)
    last = np.where(is_ramp, high, middle)
    rises = [slope, -slope]
    jumps = [jump, np.zeros(jump.shape)]
    if low.ndim == 1:
        # a point has one end
        last, rises[1], jumps[1] = last[is_ramp], rises[1][is_ramp], jumps[1][is_ramp]
    ends = np.concatenate((first, last), axis=-1)
    # the order of equal ends does not matter: the piece between them has length 0
    order = np.argsort(ends, axis=-1)
    values = (ends, np.concatenate(rises, axis=-1), np.concatenate(jumps, axis=-1))
    taken = (np.take_along_axis(each, order, axis=-1) for each in values)
    return tuple(taken)  # type: ignore[return-value]


def _quantum(rises: Floats) -> float:
    """Return a number whose addition and subtraction rounds slopes to multiples of a power of 2.

    Sums of these multiples are exact: they have at most 52 bits.
    """
    most = float(np.maximum(rises, 0.0).sum(axis=-1).max())
    return math.ldexp(1.5, math.frexp(most)[1] + 1)


def _cumulated(carried: Floats, steps: Floats) -> Floats:
    """Return cumulative sums from a carried value, which comes first."""
    return np.asarray(np.cumsum(np.concatenate((carried, steps), axis=-1), axis=-1))


def _distance(knots: Floats, cdf: Floats, jump: Floats, p: float) -> Floats:
    """Return the integral over pieces between knots; `cdf` is that at and behind each knot."""
    start = cdf[..., :-1] - knots[..., :-1]
    stop = cdf[..., 1:] - jump - knots[..., 1:]
    if p == 1:
        return np.asarray((_mean_size(start, stop) * np.diff(knots, axis=-1)).sum(axis=-1))
    # over levels of the quantile function: it is linear along a piece and constant along a jump
    level = np.diff(cdf, axis=-1)
    along = _mean_power(start, stop, p) * (level - jump)
    across = _mean_power(stop, stop + jump, p) * jump
    return np.asarray((along + across).sum(axis=-1))


def _mean_size(a: Floats, b: Floats) -> Floats:
    """Return the mean of `|x|` on the line from a to b, whether it crosses 0 or not."""
    s = np.abs(a) + np.abs(b)
    t = a + b
    # 1e-300 only prevents 0 / 0
    return np.asarray((s + t * t / (s + 1e-300)) / 4)


def _mean_power(a: Floats, b: Floats, p: float) -> Floats:
    """Return the mean of `|x|^p` on the line from a to b."""

    def antiderivative(x: Floats) -> Floats:
        return np.asarray(np.sign(x) * np.abs(x) ** (p + 1) / (p + 1))

    gap = b - a
    # on a short line the difference loses its digits, and Simpson's rule is exact to 1e-13
    is_short = np.abs(gap) <= 1e-3 * np.maximum(np.abs(a), np.abs(b))
    simpson = (np.abs(a) ** p + 4 * np.abs((a + b) / 2) ** p + np.abs(b) ** p) / 6
    exact = np.divide(
        antiderivative(b) - antiderivative(a), gap, out=np.zeros(gap.shape), where=~is_short
    )
    return np.where(is_short, simpson, exact)
