"""Bases that a link can be put around: how each kind of fitted estimator says a distribution.

Adding a kind of base is one class and one line in `kinds`; those of other packages are in
`_foreign_bases`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from evenhand._validate import Floats, InputError, bad_input
from evenhand.columns import unreported
from evenhand.distributions import Distribution, LocationScale, Normal, Quantiles
from evenhand.draws import RandomState, generator
from evenhand.tables import take_rows


class Base(ABC):
    """A fitted estimator together with what turns its output into a distribution."""

    name: ClassVar[str]

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @classmethod
    @abstractmethod
    def accepts(cls, estimator: Any) -> bool:
        """Whether estimators of this kind are served here."""

    @classmethod
    def accepts_frozen(cls, estimator: Any) -> bool:
        """Whether fitted estimators of this kind are, the `FrozenEstimator` around them taken off."""
        return cls.accepts(estimator)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        """Whether `fit` learns nothing, so that all its rows are rows that the model has not seen."""
        return isinstance(estimator, FrozenEstimator)

    @classmethod
    @abstractmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        """Fit a clone of the estimator, and whatever else the distribution needs."""

    @abstractmethod
    def distribution(self, X: Any) -> Distribution:
        """Distributions of the rows, batch shape (n,)."""

    def to_arrays(self) -> dict[str, Floats]:
        """Return what was learned beside the estimator."""
        return {}

    def to_parts(self) -> dict[str, Any]:
        """Return the fitted estimators, by name."""
        return {"estimator": thawed(self.estimator)}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        """Rebuild from a fitted estimator and `to_arrays`."""
        return cls(estimator)

    @classmethod
    def from_parts(cls, parts: dict[str, Any], arrays: dict[str, Floats]) -> Self:
        """Rebuild from `to_parts` and `to_arrays`."""
        return cls.from_arrays(parts["estimator"], arrays)


class ForecasterBase(Base):
    """A forecaster of ours, which says its distribution itself."""

    name: ClassVar[str] = "forecaster"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "forecast")

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        base = cls(fitted(estimator, X, y, weight))
        base.distribution(
            take_rows(X, [0])
        )  # a randomized forecaster is refused here, not at the first forecast
        return base

    def distribution(self, X: Any) -> Distribution:
        with unreported():  # the model around it reports values that training never had
            forecast = self.estimator.forecast(X)
        if forecast.is_randomized:
            raise InputError(
                f"estimator {type(self.estimator).__name__} is randomized already; randomization is"
                " the outermost step: use it as it is, or randomize a deterministic estimator"
            )
        distribution: Distribution = forecast.distribution
        return distribution


class ReturnStdBase(Base):
    """A model whose `predict` returns a standard deviation, such as a Gaussian process.

    Normal forecasts.
    """

    name: ClassVar[str] = "return_std"

    def __init__(self, estimator: Any, least_std: float) -> None:
        super().__init__(estimator)
        self.least_std = least_std

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return "return_std" in predict_options(estimator)

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        return cls(fitted(estimator, X, y, weight), cls.floor(y))

    @staticmethod
    def floor(y: Floats) -> float:
        """Least standard deviation: a Gaussian process without noise says 0 at its training rows."""
        return 1e-9 * float(np.abs(y).max()) or 1e-300

    def distribution(self, X: Any) -> Distribution:
        mean, std = self.estimator.predict(X, return_std=True)
        return Normal(np.ravel(mean), np.maximum(np.ravel(std), self.least_std))

    def to_arrays(self) -> dict[str, Floats]:
        return {"least_std": np.array([self.least_std])}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, float(arrays["least_std"][0]))


class ResidualBase(Base):
    """Any regressor: its prediction plus the law of its residuals on rows that it was not fitted on.

    The residuals are cross-fitted, so the law is that of a model fitted on a share `(cv - 1) / cv`
    of the rows.
    """

    name: ClassVar[str] = "residuals"

    def __init__(self, estimator: Any, law: Quantiles) -> None:
        super().__init__(estimator)
        self.law = law
        self.unseen_pit: Floats | None = None

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "predict")

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return False  # the law of a fitted model's residuals is learned all the same

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        n = y.size
        is_frozen = isinstance(estimator, FrozenEstimator)
        if n < 2 * cv and not is_frozen:
            raise bad_input("X", f"have at least {2 * cv} rows for cv={cv}", f"n_samples = {n}")
        model = fitted(estimator, X, y, weight)
        if is_frozen:
            residuals = y - np.ravel(model.predict(X))
        else:
            residuals = np.empty(n)
            seed = int(generator(random).integers(2**31))
            for learn, hold in KFold(cv, shuffle=True, random_state=seed).split(np.empty((n, 1))):
                part = fitted(
                    estimator,
                    take_rows(X, learn),
                    y[learn],
                    None if weight is None else weight[learn],
                )
                residuals[hold] = y[hold] - np.ravel(part.predict(take_rows(X, hold)))
        if not np.isfinite(residuals).all():
            raise InputError(
                f"estimator {type(estimator).__name__} predicts values that are not finite"
            )
        base = cls(model, residual_law(residuals, weight))
        if not is_frozen:
            # each row's residual is one of n in the law: its PIT is unseen but for 1 / n
            base.unseen_pit = LocationScale(base.law, np.zeros(n)).cdf(residuals)
        return base

    def distribution(self, X: Any) -> Distribution:
        return LocationScale(self.law, np.ravel(self.estimator.predict(X)))

    def to_arrays(self) -> dict[str, Floats]:
        return {
            "residual_levels": np.ravel(self.law.levels),
            "residual_quantiles": np.ravel(self.law.values),
        }

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(
            estimator, Quantiles(arrays["residual_levels"], arrays["residual_quantiles"][None, :])
        )


def kinds() -> dict[str, type[Base]]:
    """Return all kinds by name, in the order in which they are asked."""
    from evenhand.forecasters.adapters import foreign_bases as foreign  # which imports this file

    order: tuple[type[Base], ...] = (
        ForecasterBase,
        foreign.MembersBase,
        foreign.EnsembleBase,
        foreign.CallableBase,
        foreign.LawBase,
        foreign.QuantileBase,
        ReturnStdBase,
        ResidualBase,
    )
    return {kind.name: kind for kind in order}


def kind_of(estimator: Any) -> type[Base]:
    """Return the first kind that serves an estimator."""
    inner = thawed(estimator)
    for kind in kinds().values():
        if kind.accepts(inner) if inner is estimator else kind.accepts_frozen(inner):
            return kind
    remedy = "a function from rows to a Forecast serves too"
    raise bad_input(
        "estimator", "be a regressor with fit and predict", type(estimator).__name__, remedy
    )


def thawed(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator; any other estimator is returned as it is."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def frozen(estimator: Any) -> Any:
    """Return a model in a FrozenEstimator, each of several in one of its own.

    A function is returned as it is.
    """
    if isinstance(estimator, list | tuple):
        return [frozen(member) for member in estimator]
    return FrozenEstimator(thawed(estimator)) if hasattr(estimator, "fit") else estimator


def final_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline; any other estimator is returned as it is."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def predict_options(estimator: Any) -> tuple[str, ...]:
    """Names of the parameters of `predict`, of the last step in a Pipeline."""
    predict = getattr(final_step(estimator), "predict", None)
    return () if predict is None else tuple(inspect.signature(predict).parameters)


def allows_missing(estimator: Any) -> bool | None:
    """Whether an estimator says that it takes missing values; None if it says nothing."""
    inner = thawed(estimator)
    return (
        bool(get_tags(inner).input_tags.allow_nan) if hasattr(inner, "__sklearn_tags__") else None
    )


def fitted(estimator: Any, X: Any, y: Floats, weight: Floats | None) -> Any:
    """Fit a clone. A FrozenEstimator is its own clone and stays as it is."""
    if isinstance(estimator, FrozenEstimator) and allows_missing(estimator) is None:
        return estimator  # scikit-learn cannot tell whether it is fitted
    copy = clone(estimator)
    if weight is None or isinstance(estimator, FrozenEstimator):
        return copy.fit(X, y)
    if not has_fit_parameter(copy, "sample_weight"):
        raise bad_input(
            "sample_weight", f"be left out: {type(copy).__name__}.fit does not take it", "weights"
        )
    return copy.fit(X, y, sample_weight=weight)


def residual_law(residuals: Floats, weight: Floats | None) -> Quantiles:
    """Residuals as a law with a density.

    Quantiles at equal steps of probability, exponential beyond.

    The number of steps, `2 n^(2/5)`, is that of a histogram with equal masses whose bias and noise
    are in balance.
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
    return Quantiles(levels, values[None, :], sort=True)  # interpolated ones may fall by a rounding
