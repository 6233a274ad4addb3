"""W1 distances of PITs to the uniform distribution, in closed form (method: objects)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats


def quantile_distance(values: Floats, ends: Floats, p: float = 1.0) -> Floats:
    """Sum over cells of the integral of `|value - t|^p`, each cell with one value.

    With sorted PITs as values and the CDF's steps as ends this is `W_p^p` to the uniform
    distribution: the quantile function is constant in each cell.

    Parameters
    ----------
    values : ndarray of shape (..., k)
        Value of each cell.
    ends : ndarray of shape (k + 1,)
        Ends of the cells, rising.
    p : float, default 1
        Order, at least 1.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> float(quantile_distance(np.array([0.25, 0.75]), np.array([0.0, 0.5, 1.0])))
    0.125
    """
    right = ends[1:] - values
    left = ends[:-1] - values
    if p == 1:
        # s |s| / 2 is the antiderivative of |s|; in place this takes a third of the time below
        size = np.abs(right)
        right *= size
        left *= np.abs(left, out=size)
        right -= left
        return np.asarray(right.sum(axis=-1) / 2)

    def antiderivative(s: Floats) -> Floats:
        return np.asarray(np.sign(s) * np.abs(s) ** (p + 1) / (p + 1))

    return np.asarray((antiderivative(right) - antiderivative(left)).sum(axis=-1))


def row_distances(block: Floats) -> Floats:
    """W1 to the uniform distribution of each row, shape (n, m) -> (n,)."""
    # PITs of most forecasters rise with the draw, and draws come sorted
    is_rising = (block[:, 1:] >= block[:, :-1]).all()
    rising = block if is_rising else np.sort(block, axis=-1)
    return quantile_distance(rising, np.linspace(0.0, 1.0, block.shape[1] + 1))


def line_distance(deviations: NDArray[Any]) -> Floats:
    """Integral over [0, 1] of the absolute value of lines through equally spaced deviations.

    Parameters
    ----------
    deviations : ndarray of whole numbers in floating point, shape (bins, ...)
        Values at the edges `0, 1/bins, ...`; at 1 it is 0.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> float(line_distance(np.array([0.0, 1.0]))), float(line_distance(np.array([-1.0, 1.0])))
    (0.5, 0.5)
    """
    size = np.abs(deviations)
    # from a to b with s = |a| + |b| and t = |a + b| the area is (s + t^2 / s) / 4, whether the line
    # crosses 0 or not; whole numbers are never near 1e-30, which only prevents 0 / 0
    s = size[:-1] + size[1:]
    s += 1e-30
    t = deviations[:-1] + deviations[1:]
    t *= t
    t /= s
    # sum of s + t^2 / s over all lines; that of the last, which ends at 0, is 2 |a|
    area = 2 * size.sum(axis=0) - size[0] + size[-1] + t.sum(axis=0)
    return np.asarray(area, dtype=np.float64) / (4 * len(deviations))


def binned_distance(counts: NDArray[np.int64]) -> float:
    """W1 to uniform of the distribution with these counts, uniform within each of equal bins.

    Parameters
    ----------
    counts : ndarray of int64
        PITs in equal bins of [0, 1].

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    >>> binned_distance(np.array([1, 0]))
    0.25
    """
    bins = counts.size
    total = int(counts.sum())
    # at each edge: bins times the count at or below it, less what is expected; whole numbers, exact
    # up to 2^53
    below = np.append(0, np.cumsum(counts[:-1]))
    deviations = bins * below - total * np.arange(bins)
    return min(float(line_distance(deviations.astype(np.float64))) / (bins * total), 0.5)
