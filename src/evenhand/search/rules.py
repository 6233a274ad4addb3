"""A learned group in words: one or two conditions on features, read off a small tree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.columns.encoding import (
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    EncodedColumn,
    NumberColumn,
    TableEncoder,
)

MOST_FEATURES = 3

RULE_STRETCH = 1.5
"""Largest ratio, either way, of the rows that a rule takes in to those that are wanted."""


@dataclass(frozen=True)
class Rule:
    """Bounds on encoded columns that all have to hold.

    Parameters
    ----------
    bounds : dict of int to (float, float)
        For each column of the encoded matrix, the value must be above the first and at or below the
        second.
    """

    bounds: dict[int, tuple[float, float]]

    def holds(self, matrix: Floats) -> NDArray[np.bool_]:
        """Rows of the encoded matrix that the rule takes in."""
        inside = np.ones(matrix.shape[0], dtype=bool)
        for column, (low, high) in self.bounds.items():
            inside &= (matrix[:, column] > low) & (matrix[:, column] <= high)
        return inside

    def words(self, encoder: TableEncoder) -> str:
        """Say the rule with the features' names and units."""
        places = _places(encoder)
        return " and ".join(
            _condition(*places[column], *bounds) for column, bounds in self.bounds.items()
        )


def learn_rules(
    matrix: Floats, scores: Floats, mass: float, encoder: TableEncoder, random: np.random.Generator
) -> tuple[Rule, ...]:
    """Learn rules of one and of at most two conditions that take in rows of high score.

    None if no feature splits them.

    Each takes in at least two thirds of the wanted mass of the training rows.
    """
    from sklearn.tree import DecisionTreeRegressor

    sayable = np.flatnonzero([_is_sayable(*place) for place in _places(encoder)])
    if sayable.size == 0:
        return ()
    leaf_rows = max(10, math.ceil(mass * scores.size / RULE_STRETCH))
    rules = []
    for depth in (1, 2):
        seed = int(random.integers(2**31))
        tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=leaf_rows, random_state=seed)
        rules.append(_best_leaf(tree.fit(matrix[:, sayable], scores).tree_, sayable))
    return tuple(rule for rule in rules if rule is not None)


def main_features(
    matrix: Floats, scores: Floats, encoder: TableEncoder, random: np.random.Generator
) -> tuple[str, ...]:
    """Name the features that scores depend on most, largest first.

    A small tree of the scores says so; the importances of a forest of noisy outcomes would favour
    features with many values.
    """
    from sklearn.tree import DecisionTreeRegressor

    seed = int(random.integers(2**31))
    tree = DecisionTreeRegressor(max_leaf_nodes=8, min_samples_leaf=10, random_state=seed).fit(
        matrix, scores
    )
    widths = [len(column.names_out) for column in encoder.columns_]
    totals = np.add.reduceat(tree.feature_importances_, np.cumsum([0, *widths[:-1]]))
    order = np.argsort(-totals, kind="stable")[:MOST_FEATURES]
    return tuple(encoder.columns_[i].name for i in order if totals[i] > 0)


def _best_leaf(tree: object, columns: NDArray[np.intp]) -> Rule | None:
    """Follow a fitted tree to the leaf of the highest mean score; None if the tree has no split."""
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
        pending.append((int(left[node]), {**bounds, column: (low, min(high, cut))}))
        pending.append((int(right[node]), {**bounds, column: (max(low, cut), high)}))
    assert best is not None
    return best[1]


def _places(encoder: TableEncoder) -> list[tuple[EncodedColumn, int]]:
    """Return, for each column of the encoded matrix, the feature it comes from and its number there."""
    return [(column, i) for column in encoder.columns_ for i in range(len(column.names_out))]


def _is_sayable(column: EncodedColumn, i: int) -> bool:
    """Tell whether a cut is plain words: not the sine of a season, not "a value that is rare"."""
    if column.had_missing and i == len(column.outputs()):
        return True
    if isinstance(column, DateColumn):
        return i == 0
    return not (isinstance(column, CategoryColumn) and i == len(column.levels))


def _condition(column: EncodedColumn, i: int, low: float, high: float) -> str:
    name = column.name
    above = high == math.inf
    if column.had_missing and i == len(column.outputs()):
        return f"{name} is missing" if above else f"{name} is not missing"
    if isinstance(column, CategoryColumn):
        return f"{name} is {'' if above else 'not '}{column.levels[i]}"
    if isinstance(column, BooleanColumn):
        # false is -1, missing 0 and true 1
        within = [word for word, code in (("false", -1), ("true", 1)) if low < code <= high]
        text = f"{name} is {within[0]}" if within else f"{name} is missing"
    else:
        ends = [(">", low), ("<=", high)]
        text = " and ".join(
            f"{name} {sign} {_original(column, end)}" for sign, end in ends if math.isfinite(end)
        )
    # missing values are encoded as 0
    return f"{text} (or missing)" if column.had_missing and low < 0 <= high else text


def _original(column: EncodedColumn, encoded: float) -> str:
    """Write a cut in the feature's own units."""
    if not isinstance(column, NumberColumn | DateColumn):
        return f"{encoded:.4g}"
    value = column.mean + encoded * column.scale
    if isinstance(column, DateColumn):
        return str(np.datetime64(0, "D") + np.timedelta64(math.floor(value), "D"))
    return f"{value:.4g}"
