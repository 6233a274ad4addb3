"""Adapter for estimators that predict numbers: distribution and spread of their residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError, Ints
from evenhand.distributions import Distribution, LocationScale, Quantiles, Support
from evenhand.forecasters.adapters.base import Base, Training, fitted
from evenhand.forecasters.adapters.spread_trees import SpreadTrees, cross_fitted
from evenhand.forecasters.samples import clearly_best, residual_distribution
from evenhand.tables import take_rows

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


# --- adapter for estimators that predict numbers, with an estimated residual distribution

LEAST_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of the outcomes that may be nearer to a bound than every prediction of a fitted model. A
linear model predicts values far below the bound where outcomes are merely small."""


class ResidualBase(Base):
    """Prediction of any regressor plus the distribution of its residuals, by cross-fitting.

    The residuals are held-out residuals of models fitted on a share `(cv - 1) / cv` of the rows.
    Their spread may depend on the features: then the distribution is that of residuals divided by
    their predicted spread.

    A fitted model may predict outcomes in their own units while `y` is on the line of a support.
    Then its predictions are mapped to the line, where they are the locations of the distributions.
    """

    name: ClassVar[str] = "residuals"

    def __init__(
        self,
        estimator: Any,
        residuals: Quantiles,
        spread: Spread | None = None,
        predicted_support: Support | None = None,
    ) -> None:
        super().__init__(estimator)
        self.residuals = residuals
        self.spread = spread
        self.predicted_support = predicted_support
        self.unseen_pit: Floats | None = None

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "predict")

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return False  # the residual distribution is estimated even for a fitted model

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        n = rows.y.size
        is_frozen = isinstance(estimator, FrozenEstimator)
        if not is_frozen:
            rows.check_folds()
        # the final model is fitted on all rows; models of the folds are used for residuals only
        model = fitted(estimator, rows)
        loc, folds = _held_out(model, rows) if is_frozen else _cross_fitted(estimator, rows)
        if not np.isfinite(loc).all():
            raise InputError(
                f"estimator {type(estimator).__name__} predicts values that are not finite; check"
                " its predictions for NaN"
            )
        support = None
        if rows.predicted_support is not None:
            support = _support_of_predictions(rows.predicted_support, loc, rows)
            loc = _on_line(loc, support)
        held = HeldOut(rows, loc, rows.y - loc, folds)
        spread = None
        scale = np.ones(n)
        if rows.spread == "learned":
            spread, scale = learn_spread(held)
        normalized = held.residuals / scale
        residuals = residual_distribution(normalized, rows.weight)
        base = cls(model, residuals, spread, support)
        if not is_frozen:
            # a row's residual has weight 1 / n in the distribution, and its spread is predicted by
            # a model that has not seen the residual: apart from that weight, its PIT is held out
            base.unseen_pit = LocationScale(base.residuals, np.zeros(n)).cdf(normalized)
        return base

    def distribution(self, X: Any) -> Distribution:
        loc = np.ravel(self.estimator.predict(X))
        if self.predicted_support is not None:
            loc = _on_line(loc, self.predicted_support)
        scale = 1.0 if self.spread is None else self.spread.scale(X, loc)
        return LocationScale(self.residuals, loc, scale)

    def to_arrays(self) -> dict[str, Floats]:
        arrays = {
            "residual_levels": np.ravel(self.residuals.levels),
            "residual_quantiles": np.ravel(self.residuals.values),
        }
        if self.spread is not None:
            arrays["spread_range"] = np.array([self.spread.low, self.spread.high])
        if self.predicted_support is not None:
            support = self.predicted_support
            fields = [support.low, support.high, support.bend, support.edge]
            arrays["predicted_support"] = np.array(fields)
        return arrays

    def to_parts(self) -> dict[str, Any]:
        spread = {} if self.spread is None else {"spread": self.spread.model}
        return super().to_parts() | spread

    @classmethod
    def from_parts(cls, parts: dict[str, Any], arrays: dict[str, Floats]) -> Self:
        residuals = Quantiles(arrays["residual_levels"], arrays["residual_quantiles"][None, :])
        spread = None
        if "spread" in parts:
            low, high = (float(end) for end in arrays["spread_range"])
            spread = Spread(parts["spread"], low, high)
        support = None
        if "predicted_support" in arrays:
            low, high, bend, edge = (float(field) for field in arrays["predicted_support"])
            support = Support(low, high, bend, edge)
        return cls(parts["estimator"], residuals, spread, support)


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


def _cross_fitted(estimator: Any, rows: Training) -> tuple[Floats, list[Ints]]:
    """Return the prediction of each row by the model fitted without its fold, and the folds."""
    loc = np.empty(rows.y.size)
    folds: list[Ints] = []
    for learn, held_out in rows.folds():
        loc[held_out] = np.ravel(fitted(estimator, learn).predict(take_rows(rows.X, held_out)))
        folds.append(held_out)
    return loc, folds


def _held_out(model: Any, rows: Training) -> tuple[Floats, list[Ints]]:
    """Return the predictions of a fitted model that has not seen the rows, and folds."""
    loc = np.ravel(model.predict(rows.X))
    # the folds serve to choose the spread
    cv = min(rows.cv, rows.y.size)
    return loc, [one for _, one in replace(rows, cv=cv).folds()]
