"""Rules that describe learned groups: one or two conditions on features, from a small tree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.columns import Condition, TableEncoder

RULE_STRETCH = 1.5
"""Largest factor by which the size of a rule's group may differ from the wanted size."""


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

    def words(self, encoder: TableEncoder) -> str:
        """Return the rule as text, with the names and units of the features."""
        return " and ".join(map(str, self.conditions(encoder)))

    def conditions(self, encoder: TableEncoder) -> list[Condition]:
        """Return the bounds as conditions on columns of the table, all of which must hold."""
        found = (encoder.condition(j, low, high) for j, (low, high) in self.bounds.items())
        return [condition for condition in found if condition is not None]


def learn_rules(
    matrix: Floats, scores: Floats, mass: float, encoder: TableEncoder, random: np.random.Generator
) -> tuple[Rule, ...]:
    """Learn rules of one and of at most two conditions that select rows with high scores.

    Each rule selects at least two thirds of the wanted mass of the training rows. The tuple is
    empty if no feature splits the rows.
    """
    from sklearn.tree import DecisionTreeRegressor

    # rules are printed: use only columns of the matrix that have a description in words
    readable = np.flatnonzero(encoder.readable)
    if readable.size == 0:
        return ()
    # leaves with fewer rows are too small for a group of this mass
    leaf_rows = max(10, math.ceil(mass * scores.size / RULE_STRETCH))
    rules = []
    for depth in (1, 2):
        seed = int(random.integers(2**31))
        tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=leaf_rows, random_state=seed)
        rules.append(_best_leaf(tree.fit(matrix[:, readable], scores).tree_, readable))
    return tuple(rule for rule in rules if rule is not None)


def main_features(
    matrix: Floats, scores: Floats, encoder: TableEncoder, random: np.random.Generator
) -> tuple[str, ...]:
    """Return the names of up to three features with the largest effect on scores, largest first."""
    from sklearn.tree import DecisionTreeRegressor

    # importances in a small tree of the scores: those in a forest of noisy outcomes would favour
    # features with many values
    seed = int(random.integers(2**31))
    tree = DecisionTreeRegressor(max_leaf_nodes=8, min_samples_leaf=10, random_state=seed).fit(
        matrix, scores
    )
    widths = [len(column.names_out) for column in encoder.columns_]
    totals = np.add.reduceat(tree.feature_importances_, np.cumsum([0, *widths[:-1]]))
    order = np.argsort(-totals, kind="stable")[:3]
    return tuple(encoder.columns_[i].name for i in order if totals[i] > 0)


def _best_leaf(tree: object, columns: Ints) -> Rule | None:
    """Return the rule of the leaf with the highest mean score; None if the tree has no split."""
    left, right, value = tree.children_left, tree.children_right, tree.value[:, 0, 0]  # type: ignore[attr-defined]
    feature, threshold = tree.feature, tree.threshold  # type: ignore[attr-defined]
    if left[0] < 0:
        return None
    best: tuple[float, Rule] | None = None
    pending: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
    while pending:
        node, bounds = pending.pop()
        if left[node] < 0:
            if best is None or value[node] > best[0]:
                best = float(value[node]), Rule(bounds)
            continue
        column = int(columns[feature[node]])
        cut = float(threshold[node])
        low, high = bounds.get(column, (-math.inf, math.inf))
        # rows at or below the threshold of a node go to its left child
        pending.append((int(left[node]), {**bounds, column: (low, min(high, cut))}))
        pending.append((int(right[node]), {**bounds, column: (max(low, cut), high)}))
    assert best is not None
    return best[1]
