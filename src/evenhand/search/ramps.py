"""Distribution functions of rows whose PITs are cells, averaged over the position in the cell.

A PIT that is uniform between the ends `L` and `U` of its cell has the distribution function
`clip((c - L) / (U - L), 0, 1)`, a ramp (outcomes: 4.3). Sums of ramps over the draws of a row, and
integrals of these sums, are polynomials between the edges of equal cells of [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask

LEAST_WIDTH = 1e-6
"""Width below which sums over cells lose their digits: narrower cells are widened to it."""


def mean_cdfs(low: Floats, high: Floats, n_cells: int) -> Floats:
    """Return the mean of each row's CDF over each of the equal cells, shape (n, n_cells).

    Examples
    --------
    >>> mean_cdfs(np.array([[0.0]]), np.array([[0.5]]), 4)
    array([[0.25, 0.75, 1.  , 1.  ]])
    """
    squares, products, constants = _moments(low, high, n_cells)
    edges = np.arange(n_cells + 1)
    integrals = (edges**2 * squares - 2 * edges * products + constants) / (2 * low.shape[1])
    return np.asarray(np.clip(np.diff(integrals, axis=-1), 0.0, 1.0))


def group_errors(low: Floats, high: Floats, groups: list[Mask]) -> Iterator[float]:
    """Yield the W1 error of each group of rows; all groups share one sort of the ends of cells.

    The CDF of a group is linear between the ends of its cells, so the integral of its distance to
    the diagonal is exact, up to cells narrower than `LEAST_WIDTH`.

    Parameters
    ----------
    low, high : ndarray of shape (n, m)
        Ends of the cells of the PITs, between 0 and 1.
    groups : list of ndarray of bool, shape (n,)
        Rows of each group, at least one.

    Examples
    --------
    >>> rows = [np.array([True, True]), np.array([True, False])]
    >>> list(group_errors(np.array([[0.0], [0.5]]), np.array([[0.5], [1.0]]), rows))
    [0.0, 0.25]
    """
    m = low.shape[1]
    wide = np.maximum(high - low, LEAST_WIDTH)
    # a cell that is too narrow keeps its lower end, or its upper end near 1
    first = np.clip(low, 0.0, 1 - wide)
    ends = np.concatenate((first.ravel(), (first + wide).ravel()))
    order = np.argsort(ends)
    ends = ends[order]
    slopes = np.concatenate((1 / wide.ravel(), -1 / wide.ravel()))[order]
    rows = (order % first.size // m).astype(np.int32)
    for group in groups:
        inside = np.flatnonzero(group[rows])
        yield _line_error(ends[inside], slopes[inside] / (np.count_nonzero(group) * m))


def _line_error(ends: Floats, slopes: Floats) -> float:
    """Return the integral of `|F - c|` for a CDF whose slope changes by `slopes` at `ends`."""
    widths = np.diff(ends)
    rises = np.cumsum(slopes)[:-1] * widths
    excess = np.concatenate(([0.0], np.cumsum(rises))) - ends
    start = np.abs(excess[:-1])
    stop = np.abs(excess[1:])
    total = start + stop
    # the mean of |x| on a line from a to b that may cross 0; 1e-300 only prevents 0 / 0
    means = (total + (excess[:-1] + excess[1:]) ** 2 / (total + 1e-300)) / 4
    return float(means @ widths + ends[0] ** 2 / 2 + (1 - ends[-1]) ** 2 / 2)


def _moments(low: Floats, high: Floats, n_cells: int) -> list[NDArray[Any]]:
    """Return the sums over draws of `L^k / w` less `U^k / w`, over ends below each edge.

    Powers k are 0, 1 and 2. The integral of a ramp is `((c - L)_+^2 - (c - U)_+^2) / (2 w)`. Ends
    and widths `w` are in units of cells.
    """
    n = low.shape[0]
    middle = (low + high) * (n_cells / 2)
    half = np.maximum((high - low) * (n_cells / 2), LEAST_WIDTH * n_cells / 2)
    slope = 1 / (2 * half)
    first = (n_cells + 1) * np.arange(n)[:, None]
    sums = [np.zeros((n, n_cells + 1)) for _ in range(3)]
    for end, sign in ((middle - half, slope), (middle + half, -slope)):
        # an end lies below all edges from the next one on; the first edge is 0
        place = (np.clip(np.floor(end) + 1, 0, n_cells) + first).astype(np.intp).ravel()
        weight = sign
        for total in sums:
            total += np.bincount(place, weight.ravel(), n * (n_cells + 1)).reshape(n, n_cells + 1)
            weight = weight * end
    return [np.cumsum(total, axis=-1) for total in sums]
