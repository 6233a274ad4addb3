"""Regressors that predict numbers: the distribution of their residuals, and its spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor

from evenhand._validate import Floats, InputError, Ints
from evenhand.distributions import Distribution, LocationScale, Quantiles, Support
from evenhand.forecasters.adapters.estimators import Training, cross_fitted, is_fitted, predictions
from evenhand.forecasters.samples import clearly_best, residual_distribution
from evenhand.tables import TableEncoder, as_pandas

# --- boosted trees of the logarithm of the mean size of a residual

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


class SpreadTrees(BaseEstimator):  # type: ignore[misc]
    """Boosted trees that predict the logarithm of the mean size of a residual.

    They are a `HistGradientBoostingRegressor` with the gamma likelihood and a log link, which
    estimates the mean size consistently for any shape of the distribution. At normal residuals its
    variance is half of that of a regression on log sizes. Features are the columns of the table and
    the predicted mean, as spread often grows with it.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    slope : float
        Factor on the output of the trees, as trees that stop early predict too small differences.
    low, high : float
        Range of the predictions, in which they have been compared with residuals.

    Attributes
    ----------
    columns_ : dict or None
        State of the `TableEncoder` of the columns; None if all are numbers.
    trees_ : HistGradientBoostingRegressor
        The trees.
    """

    def __init__(
        self, n_trees: int, slope: float, low: float = -np.inf, high: float = np.inf
    ) -> None:
        self.n_trees = n_trees
        self.slope = slope
        self.low = low
        self.high = high

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
        self.columns_ = None if encoder is None else encoder.to_state()
        self.trees_ = _grown(self.n_trees, features(encoder, X, loc), size, weight)
        return self

    def predict(self, X: Any, loc: Floats) -> Floats:
        """Predict the logarithm of the mean size, shape (n,)."""
        if self.columns_ is not None and not hasattr(self, "_encoder"):
            self._encoder = TableEncoder.from_state(self.columns_)
        rows = features(getattr(self, "_encoder", None), X, loc)
        log_size = self.slope * np.log(self.trees_.predict(rows))
        return np.asarray(np.clip(log_size, self.low, self.high))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # stored as `columns_`
        return {name: value for name, value in state.items() if name != "_encoder"}


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


def cross_fitted_sizes(
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
        path[held_out, 0] = np.log(np.average(size[learn], weights=own_weight))
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


# --- models of the spread of residuals, chosen by the CRPS of held-out rows

LEAST_ROWS = 100
"""Number of rows below which spread is constant, as held-out rows could not show a difference."""

CLEAR = 1.0
"""Number of paired standard errors by which a model's held-out CRPS must be better. Trees that gain
nothing stop at 0 trees, so that one is enough where spread is constant."""

MOST_COMPARED = 10_000
"""Largest number of rows whose CRPS is compared."""

LEAST_SIZE = 1e-3
MOST_SIZE = 20.0
"""Bounds on sizes of residuals in units of their mean: residuals of 0 have no logarithm, and one
outlier must not determine a leaf."""

OUTER = 0.005
"""Predicted log spreads are clipped to these quantiles of the held-out predictions, as a spread
outside of that range has never been compared with residuals."""


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Held-out predictions and residuals of a plain regressor.

    Parameters
    ----------
    rows : Training
        Training rows.
    loc, residuals : ndarray of shape (n,)
        Predictions of models that were fitted without the row, and outcomes minus predictions.
    folds : list of ndarray
        Row numbers of each fold.
    """

    rows: Training
    loc: Floats
    residuals: Floats
    folds: Sequence[Ints]

    def size(self) -> Floats:
        """Return the sizes of the residuals, bounded in units of their mean."""
        size = np.abs(self.residuals)
        unit = np.average(size, weights=self.rows.weights)
        return np.asarray(np.clip(size, LEAST_SIZE * unit, MOST_SIZE * unit))

    def is_clearly_better(self, scale: Floats, than: Floats) -> bool:
        """Whether the CRPS with one spread is better by `CLEAR` paired standard errors."""
        # all rows, or a sample of a large table
        rows = np.random.default_rng(0).permutation(self.residuals.size)[:MOST_COMPARED]
        weight = self.rows.weights[rows]
        gain = self._crps(than[rows], rows) - self._crps(scale[rows], rows)
        mean = np.average(gain, weights=weight)
        error = np.sqrt(np.sum((weight * (gain - mean)) ** 2)) / weight.sum()
        return bool(mean > CLEAR * error)

    def _crps(self, scale: Floats, rows: Ints) -> Floats:
        residuals = self.residuals[rows]
        shape = residual_distribution(residuals / scale, self.rows.weights[rows])
        return LocationScale(shape, np.zeros(rows.size), scale).crps(residuals)


def learn_spread(held: CrossFitted) -> tuple[SpreadTrees | None, Floats]:
    """Choose a model of the spread, and fit it to all rows.

    `SpreadTrees` replace a constant spread if their CRPS on held-out rows is clearly better.

    A row's held-out spread comes from a model that has not seen the row's residual. Residuals of
    other folds come from mean models that have seen the row's outcome, as nested fits would cost
    the square of the number of folds.

    Returns
    -------
    spread : SpreadTrees or None
        The fitted model; None for constant spread.
    scale : ndarray of shape (n,)
        Held-out spread of each row; 1 for constant spread.
    """
    rows = held.rows
    constant = np.ones(held.residuals.size)
    if constant.size < LEAST_ROWS or not held.residuals.any():
        return None, constant
    size = held.size()
    n_trees, slope, log_scale = cross_fitted_sizes(rows.X, held.loc, size, rows.weight, held.folds)
    if not np.isfinite(log_scale).all():
        raise InputError("predicted spreads are not finite")
    low, high = (float(end) for end in np.quantile(log_scale, [OUTER, 1 - OUTER]))
    scale = np.exp(np.clip(log_scale, low, high))
    if n_trees == 0 or not held.is_clearly_better(scale, constant):
        return None, constant
    trees = SpreadTrees(n_trees, slope, low, high)
    return trees.fit(rows.X, held.loc, size, rows.weight), scale


# --- predictions of any regressor plus the distribution of its residuals

LEAST_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of the outcomes that may be nearer to a bound than every prediction of a fitted model. A
linear model predicts values far below the bound where outcomes are merely small."""


def learn_residuals(model: Any, estimator: Any, rows: Training) -> dict[str, Any]:
    """Estimate the distribution of held-out residuals, and their spread.

    The residuals are those of models fitted on a share `(cv - 1) / cv` of the rows; the final model
    is fitted on all rows. Their spread may depend on the features: then the distribution is that of
    residuals divided by their predicted spread.

    A fitted model may predict outcomes in their own units while `y` is on the line of a support.
    Then its predictions are mapped to the line, where they are the locations of the distributions.

    Returns
    -------
    dict
        The parameters of `of_residuals`, and the PITs `unseen_pit` of the rows, if the model is not
        one that was fitted before. A row's residual has weight 1 / n in the distribution, and its
        spread is predicted by a model that has not seen the residual: apart from that weight, its
        PIT is held out.
    """
    n = rows.y.size
    if is_fitted(estimator):
        # the folds serve to choose the spread
        folds = [one for _, one in replace(rows, cv=min(rows.cv, n)).folds()]
        loc = predictions(model, rows.X)
    else:
        loc, folds = cross_fitted(estimator, rows)
    learned: dict[str, Any] = {}
    if rows.predicted_support is not None:
        support = _support_of_predictions(rows.predicted_support, loc, rows)
        fields = [support.low, support.high, support.bend, support.edge]
        learned["predicted_support"] = np.array(fields)
        loc = _on_line(loc, support)
    held = CrossFitted(rows, loc, rows.y - loc, folds)
    spread, scale = learn_spread(held) if rows.spread == "learned" else (None, np.ones(n))
    if spread is not None:
        learned["spread"] = spread
    normalized = held.residuals / scale
    residuals = residual_distribution(normalized, rows.weight)
    if not is_fitted(estimator):
        learned["unseen_pit"] = LocationScale(residuals, np.zeros(n)).cdf(normalized)
    return learned | {"residuals": residuals}


def of_residuals(
    model: Any,
    X: Any,
    residuals: Quantiles,
    spread: SpreadTrees | None = None,
    predicted_support: Floats | None = None,
) -> Distribution:
    """Return predictions plus the distribution of residuals, times their predicted spread."""
    loc = np.ravel(model.predict(X))
    if predicted_support is not None:
        loc = _on_line(loc, Support(*predicted_support.tolist()))
    scale = 1.0 if spread is None else np.exp(spread.predict(X, loc))
    return LocationScale(residuals, loc, scale)


def _on_line(predicted: Floats, support: Support) -> Floats:
    """Map predictions to the line, those nearer to a bound than `support.edge` from there."""
    return support.to_line(
        np.clip(predicted, support.low + support.edge, support.high - support.edge)
    )


def _support_of_predictions(support: Support, predicted: Floats, rows: Training) -> Support:
    """Return the support whose `edge` is the least distance of predictions from a bound.

    Predictions beyond a bound have no image on the line, and those next to it one far from all
    others. The least distance is the distance that a share of the outcomes in `LEAST_SHARES` are
    within. Each share replaces the one before if its residuals on the line are clearly smaller.
    """
    outcomes = support.from_line(rows.y)
    distance = np.minimum(outcomes - support.low, support.high - outcomes)
    # rounding errors may take an outcome back to the bound
    distance = np.maximum(distance, support.edge)

    def size(candidate: Support) -> Floats:
        """Return the distance of each residual on the line from the mean residual."""
        residuals = rows.y - _on_line(predicted, candidate)
        return np.abs(residuals - np.average(residuals, weights=rows.weights))

    edges = np.quantile(distance, LEAST_SHARES)
    supports = [replace(support, edge=float(edge)) for edge in edges]
    return clearly_best(supports, size, rows.weights)
