"""Regression trees with several targets, grown on comparisons of columns with fixed cuts.

All columns are compared with their cuts once. A split of a node is then one product of a 0/1 matrix
with the targets, so a tree of 3,000 rows and 12 features takes a few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask

CUTS = 19
"""Largest number of cuts of one column: at every 5% of its rows."""

MOST_CUTS = 600
"""Number of cuts of all columns together, above which columns get fewer cuts, but at least 3."""

SHRINKAGE = 20.0
"""Number of rows that the mean of the parent counts for in the value of a node."""


@dataclass(frozen=True)
class CutTable:
    """Rows of an encoded table, and whether each value is above each cut.

    Parameters
    ----------
    matrix : ndarray of shape (n, p)
        Encoded features.
    above : ndarray of bool of shape (n, q)
        Whether the value of the cut's column is above the cut.
    column : ndarray of int of shape (q,)
        Column of the matrix of each cut.
    cut : ndarray of shape (q,)
        Value of each cut.
    """

    matrix: Floats
    above: Mask
    column: Ints
    cut: Floats

    def part(self, start: int, stop: int) -> CutTable:
        """Return the rows from `start` to before `stop`."""
        return CutTable(self.matrix[start:stop], self.above[start:stop], self.column, self.cut)


def cut_table(matrix: Floats) -> CutTable:
    """Choose cuts between quantiles of each column and compare the rows with them.

    A column with few distinct values is cut between each two of them. Cuts depend on features
    only, never on outcomes.
    """
    n_cuts = int(np.clip(MOST_CUTS // matrix.shape[1], 3, CUTS))
    levels = np.arange(1, n_cuts + 1) / (n_cuts + 1)
    columns = list[int]()
    cuts = list[float]()
    for j, values in enumerate(matrix.T):
        for value in _cuts_of(values, levels):
            columns.append(j)
            cuts.append(value)
    column = np.array(columns, dtype=np.intp)
    cut = np.array(cuts)
    return CutTable(matrix, matrix[:, column] > cut, column, cut)


def _cuts_of(values: Floats, levels: Floats) -> list[float]:
    ordered = np.sort(values)
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    if steps.size > levels.size:
        # the largest distinct value at or below each quantile; the last step leaves rows above
        wanted = (levels * values.size).astype(np.intp) - 1
        steps = np.unique(steps[np.searchsorted(steps, wanted).clip(max=steps.size - 1)])
    # halfway to the next value, so that rounding of the cut moves no row
    low = ordered[steps]
    middle = low + (ordered[steps + 1] - low) / 2
    return [float(value) for value in np.where(middle < ordered[steps + 1], middle, low)]


@dataclass(frozen=True)
class CutTree:
    """Complete binary tree: the children of node `i` are `2i + 1` (not above) and `2i + 2`.

    Parameters
    ----------
    split : ndarray of int of shape (2**depth - 1,)
        Number of the cut at each inner node; -1 if the node is not split: its two children have its
        own value.
    value : ndarray of shape (2**(depth + 1) - 1, d)
        Predicted targets at each node.
    rows : ndarray of int of shape (2**(depth + 1) - 1,)
        Number of training rows at each node; 0 below a node that is not split.
    """

    split: Ints
    value: Floats
    rows: Ints

    def nodes(self, above: Mask, depth: int) -> list[Ints]:
        """Return the node of each row at depths 0 to `depth`."""
        found = [np.zeros(above.shape[0], dtype=np.intp)]
        for _ in range(depth):
            node = found[-1]
            split = self.split[node]
            right = above[np.arange(node.size), split.clip(0)]
            found.append(2 * node + 1 + (right & (split >= 0)))
        return found

    def predict(self, above: Mask, depth: int) -> list[Floats]:
        """Return the predictions of the trees of depth 0 to `depth`, each of shape (n, d)."""
        return [self.value[node] for node in self.nodes(above, depth)]


def grow_tree(above: NDArray[np.float32], targets: Floats, depth: int, least_rows: int) -> CutTree:
    """Grow a tree that splits off the largest part of the sum of squares of all targets.

    Parameters
    ----------
    above : ndarray of float32 of shape (n, q)
        Comparisons as 0 and 1.
    targets : ndarray of shape (n, d)
        Targets on a common scale.
    depth : int
        Depth, at least 1. The tree cut off at a smaller depth is the tree grown to that depth.
    least_rows : int
        Smallest number of rows of a node.
    """
    n_inner = 2**depth - 1
    split = np.full(n_inner, -1, dtype=np.intp)
    value = np.zeros((2 * n_inner + 1, targets.shape[1]))
    counts = np.zeros(2 * n_inner + 1, dtype=np.intp)
    # a column of ones: one product gives sums and counts
    sums = np.column_stack([targets, np.ones(targets.shape[0])]).astype(np.float32)
    value[0] = targets.mean(axis=0)
    counts[0] = targets.shape[0]
    rows: dict[int, Ints] = {0: np.arange(targets.shape[0])}
    for node in range(n_inner):
        children = (2 * node + 1, 2 * node + 2)
        inside = rows.pop(node, None)
        best = None if inside is None else _best_split(above, sums, inside, least_rows)
        if inside is None or best is None:
            value[list(children)] = value[node]
            continue
        split[node] = best
        is_above = above[inside, best] > 0
        for child, some in zip(children, (inside[~is_above], inside[is_above]), strict=True):
            rows[child] = some
            counts[child] = some.size
            total = targets[some].sum(axis=0) + SHRINKAGE * value[node]
            value[child] = total / (some.size + SHRINKAGE)
    return CutTree(split, value, counts)


def _best_split(
    above: NDArray[np.float32], sums: NDArray[np.float32], rows: Ints, least_rows: int
) -> int | None:
    """Return the cut that explains most of the squares; None if no cut leaves enough rows."""
    if rows.size < 2 * least_rows:
        return None
    some = sums[rows]
    right = (above[rows].T @ some).astype(np.float64)
    left = some.sum(axis=0, dtype=np.float64) - right
    usable = (right[:, -1] >= least_rows) & (left[:, -1] >= least_rows)
    if not usable.any():
        return None
    # the sum of squares within both parts is smallest where this sum is largest
    explained = sum(
        (part[:, :-1] ** 2).sum(axis=-1) / part[:, -1].clip(1) for part in (left, right)
    )
    return int(np.where(usable, explained, -np.inf).argmax())
