"""Boosted trees for the spread of residuals, stored as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor

from evenhand._validate import Floats, Ints
from evenhand.tables import TableEncoder, as_pandas, row_blocks

MOST_TREES = 100
"""Largest number of trees. With the learning rate below, 60 trees reach a ratio of 20."""

MOST_BINS = 255
"""Largest number of values of a feature between which trees choose a threshold."""

SETTINGS: dict[str, Any] = {
    "loss": "gamma",
    "learning_rate": 0.1,
    # small trees, as spread rarely depends on interactions of many features
    "max_leaf_nodes": 3,
    "max_bins": MOST_BINS,
    "early_stopping": False,
    # bins of a large table are computed from a sample of its rows
    "random_state": 0,
}

PENALTY = 0.05
"""L2 penalty per row of the smallest leaf. A Newton step on the log scale is unbounded where
residuals are near 0; with at most 40 smallest leaves this keeps it below 0.1 * 40 / 0.05 = 80, so
that scikit-learn's single-precision gradients are finite. Other steps are shorter by 5% at most."""

SLOPES = np.linspace(0.5, 2.0, 31)
"""Factors on the output of the trees."""

BLOCK = 4096
"""Number of rows that pass through all trees at once."""


class SpreadTrees(BaseEstimator):  # type: ignore[misc]
    """Boosted trees that predict the logarithm of the mean size of a residual.

    The trees are grown by scikit-learn's `HistGradientBoostingRegressor` with the gamma likelihood
    and a log link, which estimates the mean size consistently for any shape of the distribution. At
    normal residuals its variance is half of that of a regression on log sizes. Features are the
    columns of the table and the predicted mean, as spread often grows with it. Nodes are stored in
    arrays, so that the prediction for one row takes a tenth of a millisecond.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    slope : float
        Factor on the output of the trees, as trees that stop early predict too small differences.

    Attributes
    ----------
    columns_ : dict or None
        State of the `TableEncoder` of the columns in which trees split; None if all are numbers.
    baseline_ : float
        Prediction without trees.
    roots_ : ndarray of shape (n_trees,)
        First node of each tree.
    depth_ : int
        Depth of the deepest tree.
    feature_, left_, right_ : ndarray of shape (n_nodes,)
        Feature and children of each node. A leaf is its own child.
    threshold_, missing_left_, value_ : ndarray of shape (n_nodes,)
        Largest value of the feature in the left child, whether missing values belong to it, and
        what a leaf adds to the prediction.
    """

    def __init__(self, n_trees: int, slope: float) -> None:
        self.n_trees = n_trees
        self.slope = slope

    def fit(self, X: Any, loc: Floats, size: Floats, weight: Floats | None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : DataFrame or ndarray of shape (n, n_features)
            Rows.
        loc : ndarray of shape (n,)
            Predicted means.
        size : ndarray of shape (n,)
            Positive sizes of the residuals.
        weight : ndarray of shape (n,), or None
            Weights of the rows.
        """
        encoder = learned_encoder(X)
        grown = _grown(self.n_trees, features(encoder, X, loc), size, weight)
        trees = [one[0].nodes for one in grown._predictors]
        lengths = [tree.size for tree in trees]
        starts = np.cumsum([0, *lengths[:-1]])
        nodes = np.concatenate(trees)
        own = np.arange(nodes.size)
        start = np.repeat(starts, lengths)
        is_leaf = nodes["is_leaf"] != 0
        self.baseline_ = self.slope * float(np.ravel(grown._baseline_prediction)[0])
        self.roots_ = starts
        self.depth_ = int(nodes["depth"].max())
        self.feature_ = np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.intp)
        self.columns_ = None
        if encoder is not None:
            number = _keep_columns(encoder, np.unique(nodes["feature_idx"][~is_leaf]))
            self.feature_ = np.where(is_leaf, 0, number[self.feature_])
            self.columns_ = encoder.to_state()
        self.left_ = np.where(is_leaf, own, start + nodes["left"]).astype(np.intp)
        self.right_ = np.where(is_leaf, own, start + nodes["right"]).astype(np.intp)
        self.threshold_ = np.where(is_leaf, 0.0, nodes["num_threshold"])
        self.missing_left_ = nodes["missing_go_to_left"] != 0
        self.value_ = np.where(is_leaf, self.slope * nodes["value"], 0.0)
        return self

    def predict(self, X: Any, loc: Floats) -> Floats:
        """Predict the logarithm of the mean size, shape (n,)."""
        if self.columns_ is not None and not hasattr(self, "_encoder"):
            self._encoder = TableEncoder.from_state(self.columns_)
        rows = features(getattr(self, "_encoder", None), X, loc)
        blocks = [self._sums(rows[block]) for block in row_blocks(len(rows), BLOCK)]
        return self.baseline_ + np.concatenate(blocks)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # stored as `columns_`
        return {name: value for name, value in state.items() if name != "_encoder"}

    def _sums(self, rows: Floats) -> Floats:
        """Return the sum of the trees' leaves for each row."""
        node = np.broadcast_to(self.roots_, (len(rows), self.roots_.size))
        row = np.arange(len(rows))[:, None]
        has_missing = bool(np.isnan(rows).any())
        for _ in range(self.depth_):
            value = rows[row, self.feature_[node]]
            is_left = value <= self.threshold_[node]
            if has_missing:
                is_left = is_left | (np.isnan(value) & self.missing_left_[node])
            node = np.where(is_left, self.left_[node], self.right_[node])
        return np.asarray(self.value_[node].sum(axis=-1))


# model folders store the class under this module name, independent of its file
SpreadTrees.__module__ = "evenhand.forecasters.adapters"


def learned_encoder(X: Any) -> TableEncoder | None:
    """Return the fitted encoder of a table; None if all columns are numbers."""
    if not hasattr(X, "columns"):
        return None
    table = as_pandas(X)
    # trees need no standardized numbers, and one row is read ten times faster without
    return None if all(dtype.kind in "iuf" for dtype in table.dtypes) else TableEncoder().fit(table)


def features(encoder: TableEncoder | None, X: Any, loc: Floats) -> Floats:
    """Return the numeric features of rows, with the predicted mean as the last column."""
    if encoder is not None:
        rows = encoder.transform(X) if encoder.columns_ else np.empty((len(loc), 0))
    elif hasattr(X, "columns"):
        rows = as_pandas(X).to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        rows = np.asarray(X, dtype=np.float64)
    return np.column_stack((rows, loc))


def _keep_columns(encoder: TableEncoder, used: Ints) -> Ints:
    """Drop columns without used outputs, and return the new number of each feature."""
    ends = np.cumsum([len(column.names_out) for column in encoder.columns_])
    # the predicted mean follows the outputs of the last column
    kept = np.unique(np.searchsorted(ends, used, side="right"))
    kept = kept[kept < ends.size]
    starts = ends - [len(column.names_out) for column in encoder.columns_]
    outputs = [np.arange(starts[i], ends[i]) for i in kept]
    encoder.columns_ = tuple(encoder.columns_[i] for i in kept)
    number = np.zeros(ends[-1] + 1, dtype=np.intp)
    features = np.concatenate([*outputs, ends[-1:]])
    number[features] = np.arange(features.size)
    return number


def cross_fitted(
    X: Any, loc: Floats, size: Floats, weight: Floats | None, folds: Sequence[Ints]
) -> tuple[int, float, Floats]:
    """Choose the number of trees, and the factor on their output, by the held-out likelihood.

    Returns
    -------
    n_trees : int
        Number with the smallest gamma deviance on rows outside of the training rows; 0 if no number
        is better than a constant.
    slope : float
        Factor with the smallest deviance.
    log_size : ndarray of shape (n,)
        Predictions for each row, from trees that were grown without its fold.
    """
    rows = features(learned_encoder(X), X, loc)
    path = np.empty((size.size, MOST_TREES + 1))
    for held_out in folds:
        learn = np.delete(np.arange(size.size), held_out)
        own_weight = None if weight is None else weight[learn]
        grown = _grown(MOST_TREES, rows[learn], size[learn], own_weight)
        path[held_out, 0] = grown._baseline_prediction
        staged = grown.staged_predict(rows[held_out])
        with np.errstate(divide="ignore"):  # a size of 0 is raised to the smallest below
            path[held_out, 1:] = np.log(np.stack(list(staged), axis=-1))
    # no mean size is outside of the range of sizes
    path = np.clip(path, np.log(size.min()), np.log(size.max()))
    deviance = np.average(path + size[:, None] * np.exp(-path), axis=0, weights=weight)
    n_trees = int(np.argmin(deviance))
    slope = float(
        SLOPES[np.argmin([_deviance(size, t * path[:, n_trees], weight) for t in SLOPES])]
    )
    return n_trees, slope, slope * path[:, n_trees]


def _deviance(size: Floats, log_size: Floats, weight: Floats | None) -> float:
    """Return the gamma deviance with the best constant factor, up to terms of the sizes alone."""
    factor = np.average(size * np.exp(-log_size), weights=weight)
    return float(np.log(factor) + np.average(log_size, weights=weight))


def _grown(
    n_trees: int, rows: Floats, size: Floats, weight: Floats | None
) -> HistGradientBoostingRegressor:
    # leaves of a small table have at least 20 rows, those of a large one 1 / 40 of it
    n_least = max(20, round(0.025 * len(rows)))
    model = HistGradientBoostingRegressor(
        max_iter=n_trees,
        min_samples_leaf=n_least,
        l2_regularization=PENALTY * n_least,
        **SETTINGS,
    )
    if weight is None:
        return model.fit(rows, size)
    # scikit-learn's weighted quantiles of many distinct values take a second per fit
    return model.fit(on_grids(rows), size, weight / weight.mean())


def on_grids(rows: Floats) -> Floats:
    """Return each feature rounded up to quantiles of it, of which there are at most `MOST_BINS`."""
    rounded = rows.copy()
    for column in rounded.T:
        known = ~np.isnan(column)
        if known.any():
            grid = np.unique(np.quantile(column[known], np.linspace(0, 1, MOST_BINS)))
            column[known] = grid[np.minimum(np.searchsorted(grid, column[known]), grid.size - 1)]
    return rounded
