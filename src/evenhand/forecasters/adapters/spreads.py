"""Models of the spread of residuals, chosen by the CRPS of held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand._validate import Floats, InputError, Ints
from evenhand.distributions import LocationScale
from evenhand.forecasters.adapters.estimators import Training
from evenhand.forecasters.adapters.spread_trees import SpreadTrees, cross_fitted
from evenhand.forecasters.adapters.tails import residual_distribution

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
class Spread:
    """A fitted model of log spread, and the range in which it has been compared with residuals.

    Parameters
    ----------
    model : SpreadTrees
        Trees that are fitted to sizes of residuals.
    low, high : float
        Range of predicted log spreads.
    """

    model: SpreadTrees
    low: float
    high: float

    def scale(self, X: Any, loc: Floats) -> Floats:
        """Return the spread of rows with predicted means `loc`, shape (n,)."""
        return np.exp(np.clip(self.model.predict(X, loc), self.low, self.high))


@dataclass(frozen=True, eq=False)
class HeldOut:
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

    @property
    def weight(self) -> Floats:
        """Weights of the rows, 1 if there are none."""
        weight = self.rows.weight
        return np.ones(self.residuals.size) if weight is None else weight

    def size(self) -> Floats:
        """Return the sizes of the residuals, bounded in units of their mean."""
        size = np.abs(self.residuals)
        unit = np.average(size, weights=self.weight)
        return np.asarray(np.clip(size, LEAST_SIZE * unit, MOST_SIZE * unit))

    def is_clearly_better(self, scale: Floats, than: Floats) -> bool:
        """Whether the CRPS with one spread is better by `CLEAR` paired standard errors."""
        # all rows, or a sample of a large table
        rows = np.random.default_rng(0).permutation(self.residuals.size)[:MOST_COMPARED]
        weight = self.weight[rows]
        gain = self._crps(than[rows], rows) - self._crps(scale[rows], rows)
        mean = np.average(gain, weights=weight)
        error = np.sqrt(np.sum((weight * (gain - mean)) ** 2)) / weight.sum()
        return bool(mean > CLEAR * error)

    def _crps(self, scale: Floats, rows: Ints) -> Floats:
        residuals = self.residuals[rows]
        shape = residual_distribution(residuals / scale, self.weight[rows])
        return LocationScale(shape, np.zeros(rows.size), scale).crps(residuals)


def learn_spread(held: HeldOut) -> tuple[Spread | None, Floats]:
    """Choose a model of the spread, and fit it to all rows.

    `SpreadTrees` replace a constant spread if their CRPS on held-out rows is clearly better.

    A row's held-out spread comes from a model that has not seen the row's residual. Residuals of
    other folds come from mean models that have seen the row's outcome, as nested fits would cost
    the square of the number of folds.

    Returns
    -------
    spread : Spread or None
        The fitted model; None for constant spread.
    scale : ndarray of shape (n,)
        Held-out spread of each row; 1 for constant spread.
    """
    rows = held.rows
    constant = np.ones(held.residuals.size)
    if constant.size < LEAST_ROWS or not held.residuals.any():
        return None, constant
    size = held.size()
    n_trees, slope, log_scale = cross_fitted(rows.X, held.loc, size, rows.weight, held.folds)
    low, high, scale = _bounded(log_scale)
    if n_trees == 0 or not held.is_clearly_better(scale, constant):
        return None, constant
    model = SpreadTrees(n_trees, slope).fit(rows.X, held.loc, size, rows.weight)
    return Spread(model, low, high), scale


def _bounded(log_scale: Floats) -> tuple[float, float, Floats]:
    """Return the range of held-out predictions, and the spreads in it."""
    if not np.isfinite(log_scale).all():
        raise InputError("predicted spreads are not finite")
    low, high = np.quantile(log_scale, [OUTER, 1 - OUTER])
    return float(low), float(high), np.exp(np.clip(log_scale, low, high))
