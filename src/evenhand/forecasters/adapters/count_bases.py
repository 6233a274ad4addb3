"""Adapter for regressors that predict the mean of a count."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import PoissonRegressor, TweedieRegressor

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Distribution, NegativeBinomial, OutcomeKind, Poisson
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.dispersion import Family, learned_dispersion, least_mean
from evenhand.forecasters.adapters.estimators import Training, final_step, fitted, thawed
from evenhand.tables import take_rows

POISSON_LOSSES = ("poisson", "count:poisson", "Poisson")
"""Names of the Poisson loss in scikit-learn, LightGBM, XGBoost and CatBoost."""


class CountBase(Base):
    """Means of any regressor, with Poisson or negative binomial distributions around them.

    The dispersion is estimated from means that are predicted without the row, by cross-fitting, so
    that it includes the uncertainty of the model. A fitted model has not seen the rows.

    Parameters
    ----------
    estimator : regressor
        Fitted regressor.
    dispersion : float
        Excess variance in units of the squared mean; 0 for Poisson distributions.
    least : float
        Lower bound (> 0) on means.
    """

    name: ClassVar[str] = "counts"

    def __init__(self, estimator: Any, dispersion: float, least: float) -> None:
        super().__init__(estimator)
        self.dispersion = dispersion
        self.least = least

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "predict") and has_poisson_loss(estimator)

    @classmethod
    def accepts_outcomes(cls, y: Floats | None) -> bool:
        # amounts of money are fitted with the Poisson loss, too
        return y is not None and are_counts(y)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return False  # the dispersion is estimated even for a fitted model

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.COUNT

    @classmethod
    def fit(cls, estimator: Any, rows: Training, family: Family = "auto") -> Self:
        n = rows.y.size
        is_frozen = isinstance(estimator, FrozenEstimator)
        if n < 2 * rows.cv and not is_frozen:
            rule = f"have at least {2 * rows.cv} rows for cv={rows.cv}"
            raise bad_input("X", rule, f"n_samples = {n}")
        check_counts(rows.y)
        model = fitted(estimator, rows)
        mean = _held_out_means(estimator, model, rows)
        least = least_mean(rows.y, mean, rows.weight)
        mean = np.maximum(mean, least)
        return cls(model, learned_dispersion(rows.y, mean, rows.weight, family), least)

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        # the distribution whose likelihood the model has maximized
        return cls(estimator, 0.0, np.finfo(np.float64).tiny)

    def distribution(self, X: Any) -> Distribution:
        mean = np.maximum(_means(self.estimator, X), self.least)
        return NegativeBinomial(mean, self.dispersion) if self.dispersion > 0 else Poisson(mean)

    def to_arrays(self) -> dict[str, Floats]:
        return {"dispersion": np.array([self.dispersion]), "least_mean": np.array([self.least])}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, float(arrays["dispersion"][0]), float(arrays["least_mean"][0]))


def has_poisson_loss(estimator: Any) -> bool:
    """Whether a regressor, or the last step of a Pipeline, is fitted with the Poisson loss."""
    model = thawed(final_step(thawed(estimator)))
    if isinstance(model, PoissonRegressor):
        return True
    if isinstance(model, TweedieRegressor):
        return bool(model.power == 1)
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    names = ("loss", "objective", "loss_function", "criterion")
    return any(params.get(name) in POISSON_LOSSES for name in names)


def are_counts(y: Floats) -> bool:
    """Whether outcomes are whole numbers of at least 0."""
    return bool(((y >= 0) & (y == np.round(y))).all())


def check_counts(y: Floats) -> None:
    """Raise InputError if an outcome is not a whole number of at least 0."""
    wrong = (y < 0) | (y != np.round(y))
    if wrong.any():
        row = int(np.argmax(wrong))
        remedy = (
            "use ClassifierForecaster for ordered scores, HurdleRegressor for amounts with zeros,"
            " or a regressor for continuous outcomes"
        )
        raise bad_input(f"y[{row}]", "be a count, 0, 1, 2, ...", f"{y[row]:g}", remedy)


def _means(model: Any, X: Any) -> Floats:
    mean = np.ravel(np.asarray(model.predict(X), dtype=np.float64))
    if mean.size != len(X) or not np.isfinite(mean).all():
        raise InputError(
            f"estimator {type(thawed(model)).__name__} predicts values that are not finite; check"
            " its predictions for NaN"
        )
    return mean


def _held_out_means(estimator: Any, model: Any, rows: Training) -> Floats:
    """Return the mean of each row, predicted by a model that has not seen it."""
    if isinstance(estimator, FrozenEstimator):
        return _means(model, rows.X)
    # the default model has cross-fitted means of its own
    held = getattr(model, "held_out_", None)
    if held is not None:
        return np.asarray(held)
    mean = np.empty(rows.y.size)
    for learn, held_out in rows.folds():
        mean[held_out] = _means(fitted(estimator, learn), take_rows(rows.X, held_out))
    return mean
