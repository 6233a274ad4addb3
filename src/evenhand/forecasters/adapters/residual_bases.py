"""Adapter for estimators that predict numbers, with an estimated residual distribution."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Distribution, LocationScale, Quantiles
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import Training, fitted
from evenhand.tables import take_rows


class ResidualBase(Base):
    """Prediction of any regressor plus its residual distribution, estimated by cross-fitting.

    The residuals are held-out residuals of models fitted on a share `(cv - 1) / cv` of the rows.
    """

    name: ClassVar[str] = "residuals"

    def __init__(self, estimator: Any, residuals: Quantiles) -> None:
        super().__init__(estimator)
        self.residuals = residuals
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
        if is_frozen:
            residuals = rows.y - np.ravel(model.predict(rows.X))
        else:
            residuals = np.empty(n)
            for learn, held_out in rows.folds():
                predicted = fitted(estimator, learn).predict(take_rows(rows.X, held_out))
                residuals[held_out] = rows.y[held_out] - np.ravel(predicted)
        if not np.isfinite(residuals).all():
            raise InputError(
                f"estimator {type(estimator).__name__} predicts values that are not finite; check"
                " its predictions for NaN"
            )
        base = cls(model, residual_distribution(residuals, rows.weight))
        if not is_frozen:
            # a row's residual has weight 1 / n in the distribution: apart from that, its PIT is
            # held out
            base.unseen_pit = LocationScale(base.residuals, np.zeros(n)).cdf(residuals)
        return base

    def distribution(self, X: Any) -> Distribution:
        return LocationScale(self.residuals, np.ravel(self.estimator.predict(X)))

    def to_arrays(self) -> dict[str, Floats]:
        return {
            "residual_levels": np.ravel(self.residuals.levels),
            "residual_quantiles": np.ravel(self.residuals.values),
        }

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(
            estimator, Quantiles(arrays["residual_levels"], arrays["residual_quantiles"][None, :])
        )


def residual_distribution(residuals: Floats, weight: Floats | None) -> Quantiles:
    """Return the distribution of residuals: equally spaced quantiles with exponential tails.

    The number of quantiles, `2 n^(2/5)`, balances bias and variance of an equal-probability
    histogram.
    """
    if weight is not None:
        residuals = residuals[weight > 0]
        weight = weight[weight > 0]
    n_levels = int(np.clip(round(2 * residuals.size**0.4), 2, 200))
    levels = (np.arange(n_levels) + 0.5) / n_levels
    if weight is None:
        values = np.quantile(residuals, levels, method="hazen")
    else:
        order = np.argsort(residuals)
        share = (np.cumsum(weight[order]) - 0.5 * weight[order]) / weight.sum()
        values = np.interp(levels, share, residuals[order])
    # sorted, as rounding errors may make interpolated quantiles decrease
    return Quantiles(levels, values[None, :], sort=True)
