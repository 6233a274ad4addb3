"""Adapter for estimators that predict numbers, with an estimated residual distribution."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Distribution, LocationScale, Quantiles
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import Training, fitted
from evenhand.forecasters.adapters.tails import (
    STUB,
    effective_size,
    mean_excess,
    n_cells,
    plotting_positions,
    positions,
    tail_knots,
)
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
    """Return the distribution of residuals: quantiles with exponential tails.

    There are `2 n^(2/5)` quantiles at equal steps of probability, and in each tail the values of
    rank 1, 2, 4, ... from the end. All are at plotting positions i / (n + 1), so that a new
    residual is outside of an interval as often as stated. Beyond the extreme residuals, each tail
    is exponential with the mean excess of the eight extreme residuals.
    """
    weight = np.ones(residuals.size) if weight is None else weight
    residuals = residuals[weight > 0]
    weight = weight[weight > 0]
    n_effective = effective_size(weight)
    order = np.argsort(residuals)
    ordered = residuals[order]
    n_levels = n_cells(n_effective)
    levels = (np.arange(n_levels) + 0.5) / n_levels
    values = np.interp(levels, positions(weight[order], n_effective), ordered)
    place, share = plotting_positions(residuals, weight)
    lower, upper = tail_knots(share, n_effective, levels[0])
    # a tied value that is an inner knot already is not a second one
    lower = lower[place[lower] < values[0]]
    upper = upper[place[upper] > values[-1]]
    levels = np.concatenate((share[lower], levels, share[upper]))
    values = np.concatenate((place[lower], values, place[upper]))
    # with a knot slightly beyond each end, the outermost interval has the density of the tail
    reach = STUB / (1 - STUB)
    low = values[0] - reach * mean_excess(ordered, weight[order])
    high = values[-1] + reach * mean_excess(-ordered[::-1], weight[order][::-1])
    ends = (1 - STUB) * levels[0], 1 - (1 - STUB) * (1 - levels[-1])
    levels = np.concatenate((ends[:1], levels, ends[1:]))
    values = np.concatenate(([low], values, [high]))
    # sorted, as rounding errors may make interpolated quantiles decrease
    return Quantiles(levels, values[None, :], sort=True)
