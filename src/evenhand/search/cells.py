"""Mean CDFs of groups over cells of [0, 1]: errors, slopes and best rows (method: worst groups).

A pattern is a weight `s(c)`, integrated over each cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import quantile_distance
from evenhand.tables import row_blocks

EVEN_CELLS = 64
"""Cells of equal width, used where PITs have too many distinct values for a cell between each."""

MOST_DISTINCT = 400
"""Most distinct values, 0 and 1 among them, between which the search is exact."""

MOST_EXACT_NUMBERS = 1 << 24
"""Most PITs, and most CDF values between distinct PITs, for an exact search: beyond, the CDFs
would need more memory than the PITs."""

BLOCK_PITS = 1 << 17
"""PITs, or numbers made from them, that are worked on at once."""


@dataclass(frozen=True)
class Cells:
    """Cells of [0, 1] and the mean of each row's step CDF over each of them.

    Between neighbouring distinct PITs CDFs are constant and errors exact. Over wider cells an error
    is that of the mean CDF: too small by what lies within cells in which the CDF crosses the
    diagonal.

    Parameters
    ----------
    edges : ndarray of shape (cells + 1,)
        Ends of the cells, rising from 0 to 1.
    cdfs : ndarray of shape (n, cells)
        Means of the CDFs.
    """

    edges: Floats
    cdfs: NDArray[Any]

    @classmethod
    def of(cls, matrix: Floats) -> Cells:
        """Make the cells of PITs, shape (n, m)."""
        n, m = matrix.shape
        is_small = n * max(m, MOST_DISTINCT) <= MOST_EXACT_NUMBERS
        # the first rows show in most cases that there are too many values, without a sort of all
        if is_small and np.unique(matrix.ravel()[: 2 * MOST_DISTINCT]).size <= MOST_DISTINCT:
            values = np.unique(np.concatenate(([0.0], matrix.ravel(), [1.0])))
            if values.size <= MOST_DISTINCT:
                return cls(
                    values,
                    _mean_cdfs(np.searchsorted(values, matrix).astype(np.float64), values.size - 1),
                )
        # products of many rows are faster in float32; groups are scored exactly in the end
        cdfs = np.empty((n, EVEN_CELLS), dtype=np.float64 if n <= 600 else np.float32)
        for rows in row_blocks(n, max(BLOCK_PITS // max(m, EVEN_CELLS), 1)):
            cdfs[rows] = _mean_cdfs(matrix[rows] * EVEN_CELLS, EVEN_CELLS)
        return cls(np.linspace(0.0, 1.0, EVEN_CELLS + 1), cdfs)

    def errors(self, means: Floats) -> Floats:
        """Return the integral of `|F - c|` of groups with mean CDFs of shape (..., cells)."""
        return quantile_distance(means, self.edges)

    def slopes(self, means: Floats) -> Floats:
        """Return the derivative of `errors` in the mean of each cell.

        It is the sign of `F - c`, integrated over the cell.
        """
        low = self.edges[:-1]
        high = self.edges[1:]
        return np.clip(2 * means - low - high, low - high, high - low)

    def best_rows(self, patterns: Floats, sizes: Ints) -> Mask:
        """Return the rows with the largest scores `cdfs @ pattern`, `sizes` of each pattern."""
        n = self.cdfs.shape[0]
        groups = np.zeros((sizes.size, n), dtype=np.bool_)
        for part in row_blocks(sizes.size, max(16 * BLOCK_PITS // n, 1)):
            scores = patterns[part].astype(self.cdfs.dtype) @ self.cdfs.T
            for i, row in enumerate(scores, part.start):
                first = n - sizes[i]
                # a partition gives the least score taken, in linear time; ties need a second one
                groups[i] = row >= np.partition(row, first)[first]
                if np.count_nonzero(groups[i]) > sizes[i]:
                    groups[i] = False
                    groups[i, np.argpartition(row, first)[first:]] = True
        return groups

    def means(self, groups: Mask, sizes: Ints | int) -> Floats:
        """Return the mean CDF of each group, of `sizes` rows."""
        totals = np.zeros((groups.shape[0], self.cdfs.shape[1]))
        # sums of float32 over blocks, added up in float64: errors do not grow with the rows
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
    # the CDF steps up within the PIT's cell, whose mean rises by the rest of that cell, and is full
    # from the next cell on; a PIT of 1 falls into a cell beyond the last
    flat = (cells + (n_cells + 2) * np.arange(n)[:, None]).ravel()
    counts = np.bincount(flat, 1 - rest, n * (n_cells + 2)) + np.bincount(
        flat + 1, rest, n * (n_cells + 2)
    )
    return np.asarray(np.cumsum(counts.reshape(n, -1)[:, :n_cells], axis=-1) / m)
