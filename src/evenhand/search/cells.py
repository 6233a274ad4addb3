"""Mean CDFs of groups over cells of [0, 1]: errors, slopes and best rows (method: worst groups).

A pattern is a weight function `s(c)`, integrated over each cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import Cells, quantile_distance
from evenhand.tables import row_blocks

# --- distribution functions of rows whose PITs are cells, averaged over the position in the cell
# A PIT that is uniform between the ends `L` and `U` of its cell has the distribution function
# `clip((c - L) / (U - L), 0, 1)`, a ramp (outcomes: 4.3). Sums of ramps over the draws of a row,
# and integrals of these sums, are polynomials between the edges of equal cells of [0, 1].

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


# --- cells of [0, 1]

EVEN_CELLS = 64
"""Number of cells of equal width, used if PITs have too many distinct values for exact cells."""

MOST_DISTINCT = 400
"""Largest number of distinct values, including 0 and 1, for cells between distinct values."""

MOST_EXACT_NUMBERS = 1 << 24
"""Largest number of PITs, and of CDF values between distinct PITs, for an exact search. Beyond
it the CDFs would need more memory than the PITs."""

BLOCK_PITS = 1 << 17
"""Number of PITs, or of values computed from them, that are processed at once."""


@dataclass(frozen=True)
class LevelCells:
    """Cells of [0, 1] and the mean of each row's CDF over each cell.

    The CDF of a row is a mean of steps, or of ramps for PITs of outcomes with atoms. If the edges
    are the distinct PITs, CDFs are constant within cells and errors are exact. With
    wider cells errors are too small: in a cell in which the CDF crosses the diagonal, positive and
    negative deviations cancel.

    Parameters
    ----------
    edges : ndarray of shape (cells + 1,)
        Edges of the cells, increasing from 0 to 1.
    cdfs : ndarray of shape (n, cells)
        Means of the CDFs over the cells.
    """

    edges: Floats
    cdfs: NDArray[Any]

    @classmethod
    def of(cls, pits: Cells) -> LevelCells:
        """Make the cells of the PITs of n rows."""
        matrix = pits.drawn
        n, m = matrix.shape
        is_small = n * max(m, MOST_DISTINCT) <= MOST_EXACT_NUMBERS
        # usually the first rows alone contain too many values, which saves a sort of all PITs
        is_exact = is_small and pits.are_points
        if is_exact and np.unique(matrix.ravel()[: 2 * MOST_DISTINCT]).size <= MOST_DISTINCT:
            values = np.unique(np.concatenate(([0.0], matrix.ravel(), [1.0])))
            if values.size <= MOST_DISTINCT:
                return cls(
                    values,
                    _mean_cdfs(np.searchsorted(values, matrix).astype(np.float64), values.size - 1),
                )
        # products over many rows are faster in float32; the final groups are scored exactly
        cdfs = np.empty((n, EVEN_CELLS), dtype=np.float64 if n <= 600 else np.float32)
        for rows in row_blocks(n, max(BLOCK_PITS // max(m, EVEN_CELLS), 1)):
            if pits.are_points:
                cdfs[rows] = _mean_cdfs(matrix[rows] * EVEN_CELLS, EVEN_CELLS)
            else:
                cdfs[rows] = mean_cdfs(pits.low[rows], pits.high[rows], EVEN_CELLS)
        return cls(np.linspace(0.0, 1.0, EVEN_CELLS + 1), cdfs)

    def errors(self, means: Floats) -> Floats:
        """Return the integral of `|F - c|` for groups with mean CDFs of shape (..., cells)."""
        return quantile_distance(means, self.edges)

    def slopes(self, means: Floats) -> Floats:
        """Return the derivative of `errors` with respect to the mean CDF in each cell.

        This is the integral of the sign of `F - c` over the cell.
        """
        low = self.edges[:-1]
        high = self.edges[1:]
        return np.clip(2 * means - low - high, low - high, high - low)

    def best_rows(self, patterns: Floats, sizes: Ints) -> Mask:
        """Return, for each pattern, the `sizes` rows with the largest scores `cdfs @ pattern`."""
        n = self.cdfs.shape[0]
        groups = np.zeros((sizes.size, n), dtype=np.bool_)
        for part in row_blocks(sizes.size, max(16 * BLOCK_PITS // n, 1)):
            scores = patterns[part].astype(self.cdfs.dtype) @ self.cdfs.T
            for i, row in enumerate(scores, part.start):
                first = n - sizes[i]
                # a partition finds the smallest selected score in linear time; ties need a second
                # partition
                groups[i] = row >= np.partition(row, first)[first]
                if np.count_nonzero(groups[i]) > sizes[i]:
                    groups[i] = False
                    groups[i, np.argpartition(row, first)[first:]] = True
        return groups

    def means(self, groups: Mask, sizes: Ints | int) -> Floats:
        """Return the mean CDF of each group; a group has `sizes` rows."""
        totals = np.zeros((groups.shape[0], self.cdfs.shape[1]))
        # float32 sums over blocks are added in float64, so that rounding errors do not accumulate
        for part in row_blocks(groups.shape[1], BLOCK_PITS // 8):
            totals += groups[:, part].astype(self.cdfs.dtype) @ self.cdfs[part]
        return np.asarray(totals / np.reshape(sizes, (-1, 1)))


def _mean_cdfs(positions: Floats, n_cells: int) -> Floats:
    """Return the mean of each row's step CDF over each cell; positions are in units of cells."""
    n, m = positions.shape
    if m < 4:
        ends: Floats = np.arange(1, n_cells + 1, dtype=np.float64)
        return np.asarray(sum(np.clip(ends - positions[:, j, None], 0, 1) for j in range(m)) / m)
    cells = positions.astype(np.intp)
    rest = (positions - cells).ravel()
    # the CDF steps up at the PIT: the mean over the PIT's cell increases by the part of the cell
    # above the PIT, and by 1 from the next cell on. A PIT of 1 belongs to an extra last cell
    flat = (cells + (n_cells + 2) * np.arange(n)[:, None]).ravel()
    counts = np.bincount(flat, 1 - rest, n * (n_cells + 2)) + np.bincount(
        flat + 1, rest, n * (n_cells + 2)
    )
    return np.asarray(np.cumsum(counts.reshape(n, -1)[:, :n_cells], axis=-1) / m)
