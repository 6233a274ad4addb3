"""Bases that a link can be put around: how each kind of fitted estimator says a distribution.

Adding a kind of base is one class and one line in `KINDS`.
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
from sklearn.utils.validation import has_fit_parameter

from evenhand._checks import Floats, InputError, bad_input
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
    @abstractmethod
    def fit(cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState) -> Self:
        """Fit a clone of the estimator, and whatever else the distribution needs."""

    @abstractmethod
    def distribution(self, X: Any) -> Distribution:
        """Distributions of the rows, batch shape (n,)."""

    def to_arrays(self) -> dict[str, Floats]:
        """Return what was learned beside the estimator."""
        return {}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        """Rebuild from a fitted estimator and `to_arrays`."""
        return cls(estimator)


class ForecasterBase(Base):
    """A forecaster of ours, which says its distribution itself."""

    name: ClassVar[str] = "forecaster"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "forecast")

    @classmethod
    def fit(cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState) -> Self:
        base = cls(_fitted(estimator, X, y, weight))
        base.distribution(take_rows(X, [0]))  # a randomized forecaster is refused here, not at the first forecast
        return base

    def distribution(self, X: Any) -> Distribution:
        forecast = self.estimator.forecast(X)
        if forecast.is_randomized:
            raise InputError(
                f"estimator {type(self.estimator).__name__} is randomized already; randomization is the outermost "
                "step: use it as it is, or randomize a deterministic estimator"
            )
        distribution: Distribution = forecast.distribution
        return distribution


class ReturnStdBase(Base):
    """A model whose `predict` returns a standard deviation, such as a Gaussian process: normal forecasts."""

    name: ClassVar[str] = "return_std"

    def __init__(self, estimator: Any, least_std: float) -> None:
        super().__init__(estimator)
        self.least_std = least_std

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        inner = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        predict = getattr(inner, "predict", None)
        return predict is not None and "return_std" in inspect.signature(predict).parameters

    @classmethod
    def fit(cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState) -> Self:
        # a Gaussian process without noise says 0 at its training rows
        return cls(_fitted(estimator, X, y, weight), 1e-9 * float(np.abs(y).max()) or 1e-300)

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

    The residuals are cross-fitted, so the law is that of a model fitted on a share `(cv - 1) / cv` of the rows.
    """

    name: ClassVar[str] = "residuals"

    def __init__(self, estimator: Any, law: Quantiles) -> None:
        super().__init__(estimator)
        self.law = law

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "predict")

    @classmethod
    def fit(cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState) -> Self:
        n, is_frozen = y.size, isinstance(estimator, FrozenEstimator)
        if n < 2 * cv and not is_frozen:
            raise bad_input("X", f"have at least {2 * cv} rows for cv={cv}", f"n_samples = {n}")
        fitted = _fitted(estimator, X, y, weight)
        if is_frozen:
            residuals = y - np.ravel(fitted.predict(X))
        else:
            residuals = np.empty(n)
            seed = int(generator(random).integers(2**31))
            for learn, hold in KFold(cv, shuffle=True, random_state=seed).split(np.empty((n, 1))):
                part = _fitted(estimator, take_rows(X, learn), y[learn], None if weight is None else weight[learn])
                residuals[hold] = y[hold] - np.ravel(part.predict(take_rows(X, hold)))
        if not np.isfinite(residuals).all():
            raise InputError(f"estimator {type(estimator).__name__} predicts values that are not finite")
        return cls(fitted, _residual_law(residuals, weight))

    def distribution(self, X: Any) -> Distribution:
        return LocationScale(self.law, np.ravel(self.estimator.predict(X)))

    def to_arrays(self) -> dict[str, Floats]:
        return {"residual_levels": np.ravel(self.law.levels), "residual_quantiles": np.ravel(self.law.values)}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, Quantiles(arrays["residual_levels"], arrays["residual_quantiles"][None, :]))


KINDS: tuple[type[Base], ...] = (ForecasterBase, ReturnStdBase, ResidualBase)
"""In the order in which they are asked."""


def kind_of(estimator: Any) -> type[Base]:
    """Return the first kind that serves an estimator."""
    for kind in KINDS:
        if kind.accepts(thawed(estimator)):
            return kind
    raise bad_input("estimator", "be a regressor with fit and predict", type(estimator).__name__)


def thawed(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator; any other estimator is returned as it is."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _fitted(estimator: Any, X: Any, y: Floats, weight: Floats | None) -> Any:
    """Fit a clone. A FrozenEstimator is its own clone and stays as it is."""
    copy = clone(estimator)
    if weight is None or isinstance(estimator, FrozenEstimator):
        return copy.fit(X, y)
    if not has_fit_parameter(copy, "sample_weight"):
        raise bad_input("sample_weight", f"be left out: {type(copy).__name__}.fit does not take it", "weights")
    return copy.fit(X, y, sample_weight=weight)


def _residual_law(residuals: Floats, weight: Floats | None) -> Quantiles:
    """Residuals as a law with a density: quantiles at equal steps of probability, exponential beyond.

    The number of steps, `2 n^(2/5)`, is that of a histogram with equal masses whose bias and noise are in balance.
    """
    if weight is not None:
        residuals, weight = residuals[weight > 0], weight[weight > 0]
    n_levels = int(np.clip(round(2 * residuals.size**0.4), 2, 200))
    levels = (np.arange(n_levels) + 0.5) / n_levels
    if weight is None:
        values = np.quantile(residuals, levels, method="hazen")
    else:
        order = np.argsort(residuals)
        share = (np.cumsum(weight[order]) - 0.5 * weight[order]) / weight.sum()
        values = np.interp(levels, share, residuals[order])
    return Quantiles(levels, values[None, :])
