"""Step CDFs of rows in cells of [0, 1].

Errors of groups, their slopes, and the best rows for a pattern.

A pattern is a weight `s(c)`, integrated over each cell (method: worst groups).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats

Mask = NDArray[np.bool_]
Counts = NDArray[np.intp]

CELLS = 64
"""Cells of equal width where there are too many distinct PITs to work between them."""

MOST_DISTINCT = 400
"""Most distinct values, 0 and 1 among them, between which the search is exact."""

MOST_EXACT = 1 << 24
"""Most PITs, and most CDF values between distinct PITs, for an exact search: beyond, memory
would outgrow the PITs."""

DOUBLE_ROWS = 600
"""Most rows whose CDFs are kept in double precision; what is found among more is scored exactly
all the same."""

BLOCK = 1 << 17
"""PITs worked on at once."""


@dataclass(frozen=True)
class Cells:
    """Cells of [0, 1] with the mean of each row's step CDF over each cell, shape (n, cells).

    Between neighbouring distinct PITs CDFs are constant and errors exact; over wider cells an error
    is that of the mean CDF, too small by what lies within cells in which the CDF crosses the
    diagonal.
    """

    edges: Floats
    cdfs: NDArray[Any]

    @classmethod
    def of(cls, matrix: Floats) -> Cells:
        edges = np.linspace(0.0, 1.0, CELLS + 1)
        n, m = matrix.shape
        # a few rows tell most matrices with too many values, without sorting all
        is_small = n * max(m, MOST_DISTINCT) <= MOST_EXACT
        if is_small and np.unique(matrix.ravel()[: 2 * MOST_DISTINCT]).size <= MOST_DISTINCT:
            values = np.unique(np.concatenate(([0.0], matrix.ravel(), [1.0])))
            if values.size <= MOST_DISTINCT:
                return cls(
                    values,
                    _mean_cdfs(np.searchsorted(values, matrix).astype(np.float64), values.size - 1),
                )
        cdfs = np.empty((n, CELLS), dtype=np.float64 if n <= DOUBLE_ROWS else np.float32)
        step = max(BLOCK // max(m, CELLS), 1)
        for start in range(0, n, step):
            cdfs[start : start + step] = _mean_cdfs(matrix[start : start + step] * CELLS, CELLS)
        return cls(edges, cdfs)

    def errors(self, means: Floats) -> Floats:
        """Integral of `|F - c|` for groups with mean CDFs `means`, shape (..., cells)."""
        low = self.edges[:-1]
        high = self.edges[1:]
        nearest = np.clip(means, low, high)
        inside = ((nearest - low) ** 2 + (high - nearest) ** 2) / 2
        return np.asarray((inside + np.abs(means - nearest) * (high - low)).sum(axis=-1))

    def slopes(self, means: Floats) -> Floats:
        """Derivative of `errors` in the mean of each cell.

        The sign of `F - c`, integrated over the cell.
        """
        low = self.edges[:-1]
        high = self.edges[1:]
        return np.clip(2 * means - low - high, low - high, high - low)

    def best_rows(self, patterns: Floats, sizes: Counts) -> Mask:
        """Rows with the largest scores `cdfs @ pattern`, as many as `sizes` says for each pattern."""
        n = self.cdfs.shape[0]
        groups = np.zeros((sizes.size, n), dtype=np.bool_)
        step = max(16 * BLOCK // n, 1)
        for start in range(0, sizes.size, step):
            scores = patterns[start : start + step].astype(self.cdfs.dtype) @ self.cdfs.T
            for i, row in enumerate(scores, start):
                first = n - sizes[i]
                groups[i] = row >= np.partition(row, first)[first]
                if np.count_nonzero(groups[i]) > sizes[i]:  # ties
                    groups[i] = False
                    groups[i, np.argpartition(row, first)[first:]] = True
        return groups

    def means(self, groups: Mask, sizes: Counts | int) -> Floats:
        """Mean CDF of each group, of `sizes` rows."""
        totals = np.zeros((groups.shape[0], self.cdfs.shape[1]))
        for start in range(0, groups.shape[1], BLOCK // 8):
            part = slice(start, start + BLOCK // 8)
            totals += groups[:, part].astype(self.cdfs.dtype) @ self.cdfs[part]
        return np.asarray(totals / np.reshape(sizes, (-1, 1)))


def _mean_cdfs(positions: Floats, n_cells: int) -> Floats:
    """Mean over each cell of each row's step CDF.

    `positions` count in cells, their fraction within one.
    """
    n, m = positions.shape
    if m < 4:
        ends: Floats = np.arange(1, n_cells + 1, dtype=np.float64)
        return np.asarray(sum(np.clip(ends - positions[:, j, None], 0, 1) for j in range(m)) / m)
    cells = positions.astype(np.intp)
    rest = (positions - cells).ravel()
    # a PIT at the very end falls into a cell beyond, one within a cell counts in part there and in
    # full from the next
    flat = (cells + (n_cells + 2) * np.arange(n)[:, None]).ravel()
    counts = np.bincount(flat, 1 - rest, n * (n_cells + 2)) + np.bincount(
        flat + 1, rest, n * (n_cells + 2)
    )
    return np.asarray(np.cumsum(counts.reshape(n, -1)[:, :n_cells], axis=-1) / m)
