"""Mean CDFs of groups over cells of [0, 1]: errors, slopes and best rows (method: worst groups).

A pattern is a weight function `s(c)`, integrated over each cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import PITs, quantile_distance
from evenhand.search.ramps import mean_cdfs
from evenhand.tables import row_blocks

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
class Cells:
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
    def of(cls, pits: PITs) -> Cells:
        """Make the cells of the PITs of n rows."""
        matrix = pits.matrix
        n, m = matrix.shape
        is_small = n * max(m, MOST_DISTINCT) <= MOST_EXACT_NUMBERS
        # usually the first rows alone contain too many values, which saves a sort of all PITs
        is_exact = is_small and pits.cells is None
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
            if pits.cells is None:
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
