"""Regression trees with several targets, grown on comparisons of columns with fixed cuts.

All columns are compared with their cuts once. A split of a node is then one product of a 0/1 matrix
with the targets, so a tree of 3,000 rows and 12 features takes a few milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.tables import Condition, TableEncoder

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
    pending = {0: _Node(np.arange(targets.shape[0]), above, sums)}
    value[0] = pending[0].total[:-1] / targets.shape[0]
    counts[0] = targets.shape[0]
    for i in range(n_inner):
        children = [2 * i + 1, 2 * i + 2]
        node = pending.pop(i, None)
        best = None if node is None else node.best_split(least_rows)
        if node is None or best is None:
            value[children] = value[i]
            continue
        split[i] = best
        for child, part in zip(children, node.parts(best), strict=True):
            pending[child] = part
            counts[child] = part.rows.size
            total = part.total[:-1] + SHRINKAGE * value[i]
            value[child] = total / (part.rows.size + SHRINKAGE)
    return CutTree(split, value, counts)


class _Node:
    """Rows of a node, with sums of targets and ones over them, and over those above each cut.

    Sums above cuts are computed when a split is searched, and for the larger of two siblings as the
    difference to the parent.
    """

    def __init__(
        self,
        rows: Ints,
        above: NDArray[np.float32],
        sums: NDArray[np.float32],
        parent_and_sibling: tuple[_Node, _Node] | None = None,
    ) -> None:
        self.rows = rows
        self._above = above
        self._sums = sums
        self._origin = parent_and_sibling
        self.total = sums[rows].sum(axis=0, dtype=np.float64)

    @cached_property
    def right(self) -> Floats:
        """Sums over the rows above each cut, shape (q, d + 1)."""
        if self._origin is not None:
            parent, sibling = self._origin
            return np.asarray(parent.right - sibling.right)
        right = self._above[self.rows].T @ self._sums[self.rows]
        return np.asarray(right, dtype=np.float64)

    def best_split(self, least_rows: int) -> int | None:
        """Return the cut that explains most of the squares; None if no cut leaves enough rows."""
        if self.rows.size < 2 * least_rows:
            return None
        right = self.right
        left = self.total - right
        usable = (right[:, -1] >= least_rows) & (left[:, -1] >= least_rows)
        if not usable.any():
            return None
        # the sum of squares within both parts is smallest where this sum is largest
        explained = sum(
            np.einsum("qd,qd->q", part[:, :-1], part[:, :-1]) / part[:, -1].clip(1)
            for part in (left, right)
        )
        return int(np.where(usable, explained, -np.inf).argmax())

    def parts(self, cut: int) -> tuple[_Node, _Node]:
        """Return the rows not above the cut, and those above it."""
        is_above = self._above[self.rows, cut] > 0
        rows = self.rows[~is_above], self.rows[is_above]
        small = int(rows[1].size < rows[0].size)
        first = _Node(rows[small], self._above, self._sums)
        second = _Node(rows[1 - small], self._above, self._sums, (self, first))
        return (second, first) if small else (first, second)


# --- rules that describe learned groups: up to four conditions on features, from a small tree

RULE_STRETCH = 1.5
"""Largest factor by which the size of a rule's group may differ from the wanted size."""

MOST_CONDITIONS = 4
"""Largest number of conditions of a rule: the depth of the deepest tree."""


@dataclass(frozen=True)
class Rule:
    """Conjunction of bounds on encoded columns.

    Parameters
    ----------
    bounds : dict of int to (float, float)
        Bounds of each column of the encoded matrix: values must be above the first and at or below
        the second.
    """

    bounds: dict[int, tuple[float, float]]

    def selects(self, matrix: Floats) -> Mask:
        """Return the rows of the encoded matrix that meet the rule."""
        inside = np.ones(matrix.shape[0], dtype=bool)
        for column, (low, high) in self.bounds.items():
            inside &= (matrix[:, column] > low) & (matrix[:, column] <= high)
        return inside

    def conditions(self, encoder: TableEncoder) -> tuple[Condition, ...]:
        """Return the bounds as conditions on columns of the table, all of which must hold."""
        found = (encoder.condition(j, low, high) for j, (low, high) in self.bounds.items())
        return tuple(condition for condition in found if condition is not None)


def learn_rules(
    table: CutTable, scores: Floats, mass: float, encoder: TableEncoder
) -> dict[int, Rule]:
    """Learn rules of at most one, two, three and four conditions that select high scores.

    Each rule selects at least two thirds of the wanted mass of the training rows. The result, by
    number of conditions, is empty if no feature splits the rows.
    """
    # rules are printed: use only columns of the matrix that have a description in words
    used = np.flatnonzero(np.array(encoder.readable)[table.column])
    if used.size == 0:
        return {}
    above = table.above[:, used]
    # nodes with fewer rows are too small for a group of this mass
    least_rows = max(10, math.ceil(mass * scores.size / RULE_STRETCH))
    tree = grow_tree(above.astype(np.float32), scores[:, None], MOST_CONDITIONS, least_rows)
    if tree.split[0] < 0:
        return {}
    rules: dict[int, Rule] = {}
    for depth in range(1, MOST_CONDITIONS + 1):
        nodes = np.arange(2**depth - 1, 2 ** (depth + 1) - 1)
        best = int(nodes[tree.value[nodes, 0].argmax()])
        rules[depth] = _rule_of(tree, best, table, used)
    return rules


def _rule_of(tree: CutTree, node: int, table: CutTable, used: Ints) -> Rule:
    """Return the bounds on the way from the root to a node."""
    bounds: dict[int, tuple[float, float]] = {}
    way = list[tuple[int, bool]]()
    while node > 0:
        parent = (node - 1) // 2
        way.append((parent, node == 2 * parent + 2))
        node = parent
    for parent, is_above in reversed(way):
        if tree.split[parent] < 0:
            break
        cut = int(used[tree.split[parent]])
        column = int(table.column[cut])
        low, high = bounds.get(column, (-math.inf, math.inf))
        end = float(table.cut[cut])
        bounds[column] = (max(low, end), high) if is_above else (low, min(high, end))
    return Rule(bounds)


def main_features(table: CutTable, scores: Floats, encoder: TableEncoder) -> tuple[str, ...]:
    """Return the names of up to three features with the largest effect on scores, largest first."""
    # importances in a small tree of the scores: those in a model of noisy outcomes would favour
    # features with many values
    least_rows = max(10, scores.size // 50)
    tree = grow_tree(table.above.astype(np.float32), scores[:, None], 3, least_rows)
    total = np.zeros(table.matrix.shape[1])
    squares = tree.rows * tree.value[:, 0] ** 2
    for node in np.flatnonzero(tree.split >= 0):
        gain = squares[2 * node + 1] + squares[2 * node + 2] - squares[node]
        total[table.column[tree.split[node]]] += max(float(gain), 0.0)
    widths = [len(column.names_out) for column in encoder.columns_]
    totals = np.add.reduceat(total, np.cumsum([0, *widths[:-1]]))
    order = np.argsort(-totals, kind="stable")[:3]
    # parts of less than a hundredth of the largest are rounding, or noise
    return tuple(encoder.columns_[i].name for i in order if totals[i] > totals.max() / 100)
