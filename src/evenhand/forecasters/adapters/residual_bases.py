"""Adapter for estimators that predict numbers, with an estimated residual distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Distribution, LocationScale, Quantiles
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import Training, fitted
from evenhand.forecasters.adapters.spreads import HeldOut, Spread, learn_spread
from evenhand.forecasters.adapters.tails import residual_distribution
from evenhand.tables import take_rows


class ResidualBase(Base):
    """Prediction of any regressor plus the distribution of its residuals, by cross-fitting.

    The residuals are held-out residuals of models fitted on a share `(cv - 1) / cv` of the rows.
    Their spread may depend on the features: then the distribution is that of residuals divided by
    their predicted spread.
    """

    name: ClassVar[str] = "residuals"

    def __init__(self, estimator: Any, residuals: Quantiles, spread: Spread | None = None) -> None:
        super().__init__(estimator)
        self.residuals = residuals
        self.spread = spread
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
        if n < 2 * rows.cv and not is_frozen:
            rule = f"have at least {2 * rows.cv} rows for cv={rows.cv}"
            raise bad_input("X", rule, f"n_samples = {n}")
        # the final model is fitted on all rows; models of the folds are used for residuals only
        model = fitted(estimator, rows)
        held = _held_out(model, rows) if is_frozen else _cross_fitted(estimator, rows)
        if not np.isfinite(held.residuals).all():
            raise InputError(
                f"estimator {type(estimator).__name__} predicts values that are not finite; check"
                " its predictions for NaN"
            )
        spread = None
        scale = np.ones(n)
        if rows.spread == "learned":
            spread, scale = learn_spread(estimator, held)
        normalized = held.residuals / scale
        base = cls(model, residual_distribution(normalized, rows.weight), spread)
        if not is_frozen:
            # a row's residual has weight 1 / n in the distribution, and its spread is predicted by
            # a model that has not seen the residual: apart from that weight, its PIT is held out
            base.unseen_pit = LocationScale(base.residuals, np.zeros(n)).cdf(normalized)
        return base

    def distribution(self, X: Any) -> Distribution:
        loc = np.ravel(self.estimator.predict(X))
        scale = 1.0 if self.spread is None else self.spread.scale(X, loc)
        return LocationScale(self.residuals, loc, scale)

    def to_arrays(self) -> dict[str, Floats]:
        arrays = {
            "residual_levels": np.ravel(self.residuals.levels),
            "residual_quantiles": np.ravel(self.residuals.values),
        }
        if self.spread is not None:
            arrays["spread_range"] = np.array([self.spread.low, self.spread.high])
        return arrays

    def to_parts(self) -> dict[str, Any]:
        spread = {} if self.spread is None else {"spread": self.spread.model}
        return super().to_parts() | spread

    @classmethod
    def from_parts(cls, parts: dict[str, Any], arrays: dict[str, Floats]) -> Self:
        residuals = Quantiles(arrays["residual_levels"], arrays["residual_quantiles"][None, :])
        # models stored by earlier releases have constant spread
        spread = None
        if "spread" in parts:
            low, high = (float(end) for end in arrays["spread_range"])
            spread = Spread(parts["spread"], low, high)
        return cls(parts["estimator"], residuals, spread)


def _cross_fitted(estimator: Any, rows: Training) -> HeldOut:
    """Return predictions and residuals of each row under the model fitted without its fold."""
    loc = np.empty(rows.y.size)
    folds = []
    for learn, held_out in rows.folds():
        loc[held_out] = np.ravel(fitted(estimator, learn).predict(take_rows(rows.X, held_out)))
        folds.append(held_out)
    return HeldOut(rows, loc, rows.y - loc, folds)


def _held_out(model: Any, rows: Training) -> HeldOut:
    """Return predictions and residuals of a fitted model that has not seen the rows."""
    loc = np.ravel(model.predict(rows.X))
    # the folds serve to choose the spread
    cv = min(rows.cv, rows.y.size)
    return HeldOut(rows, loc, rows.y - loc, [one for _, one in replace(rows, cv=cv).folds()])
