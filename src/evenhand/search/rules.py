"""Rules that describe learned groups: up to four conditions on features, from a small tree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.columns import Condition, TableEncoder
from evenhand.search.cut_trees import CutTable, CutTree, grow_tree

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
