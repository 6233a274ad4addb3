"""Adapters for estimators that predict a distribution for each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator

from evenhand._format import count
from evenhand._validate import Floats, InputError, bad_input
from evenhand.columns import unreported
from evenhand.distributions import Distribution, Normal, OutcomeKind, from_ppf
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import (
    USE_A_FUNCTION,
    Training,
    final_step,
    fitted,
    predict_options,
    thawed,
)
from evenhand.forecasters.adapters.foreign_discrete import discrete_of, is_discrete
from evenhand.tables import take_rows


class ForecasterBase(Base):
    """A forecaster of this package."""

    name: ClassVar[str] = "forecaster"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "forecast")

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        find = getattr(thawed(estimator), "outcome_kind_of", None)
        return None if find is None else find(y)

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        base = cls(fitted(estimator, rows))
        # refuse a randomized forecaster now, not at the first forecast
        base.distribution(take_rows(rows.X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        with unreported():  # the wrapping forecaster reports unseen values
            forecast = self.estimator.forecast(X)
        if forecast.is_randomized:
            raise InputError(
                f"estimator {type(self.estimator).__name__} is already randomized, and"
                " randomization must be the outermost step; use it without this wrapper, or pass a"
                " deterministic estimator"
            )
        distribution: Distribution = forecast.distribution
        return distribution


class CallableBase(Base):
    """A function from rows to forecasts, without anything to fit."""

    name: ClassVar[str] = "callable"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return (
            callable(estimator)
            and not isinstance(estimator, type)
            and not hasattr(estimator, "predict")
        )

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return True

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        return None

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        return cls(thawed(estimator))

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        base = cls(thawed(estimator))
        # refuse output of another kind now, not at the first forecast
        base.distribution(take_rows(rows.X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        # three kinds of output are accepted
        output = self.estimator(X)
        if isinstance(output, tuple) and len(output) == 2:
            output = Normal(*(np.ravel(np.asarray(part, dtype=np.float64)) for part in output))
        elif isinstance(output, Forecast) and not output.is_randomized:
            output = output.distribution
        if not isinstance(output, Distribution) or output.batch_shape != (len(X),):
            shape = f" of shape {output.batch_shape}" if isinstance(output, Distribution) else ""
            rule = (
                "return a deterministic Forecast, a Distribution or (mean, std) for each of its"
                f" {count(len(X), 'row')}"
            )
            raise bad_input("estimator", rule, type(output).__name__ + shape)
        return output


class PPFBase(Base):
    """A model that returns an object with `ppf`, as models of NGBoost and skpro do."""

    name: ClassVar[str] = "ppf"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return _ppf_method(estimator) is not None

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        return None  # the same model of skpro may predict counts or amounts

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        return cls(estimator)

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        # scikit-learn cannot always determine whether such a model is fitted; a forecast can
        is_frozen = isinstance(estimator, FrozenEstimator)
        base = cls(
            estimator if is_frozen else fitted(estimator, _with_named_outcomes(estimator, rows))
        )
        base.distribution(take_rows(rows.X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        # messages name the model, not its FrozenEstimator
        model = thawed(self.estimator)
        method = _ppf_method(model)
        assert method is not None
        predict = getattr(model if hasattr(model, method) else final_step(model), method)
        predicted = predict(_rows_for(model, X))
        if is_discrete(predicted):
            return discrete_of(predicted, len(X), type(model).__name__)
        ppf = getattr(predicted, "ppf", None)
        if not callable(ppf):
            rule = f"return an object with ppf from {method}"
            got = f"{type(predicted).__name__} from {type(model).__name__}"
            raise bad_input("estimator", rule, got, USE_A_FUNCTION)
        return from_ppf(checked_ppf(ppf, len(X), type(model).__name__))


class ReturnStdBase(Base):
    """Normal forecasts of a model whose `predict` takes `return_std`, as Gaussian processes do."""

    name: ClassVar[str] = "return_std"

    def __init__(self, estimator: Any, least_std: float) -> None:
        super().__init__(estimator)
        self.least_std = least_std

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        # the standard deviations of a DummyRegressor are 0
        is_dummy = isinstance(final_step(estimator), DummyRegressor)
        return "return_std" in predict_options(estimator) and not is_dummy

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        return cls(fitted(estimator, rows), cls.floor(rows.y))

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        # without outcomes, only a standard deviation of 0 is too small
        return cls(estimator, 1e-300)

    @staticmethod
    def floor(y: Floats) -> float:
        """Lower bound on std, as a noise-free Gaussian process predicts 0 at training rows."""
        return 1e-9 * float(np.abs(y).max()) or 1e-300

    def distribution(self, X: Any) -> Distribution:
        mean, std = self.estimator.predict(X, return_std=True)
        # some models predict a standard deviation of 0 where they interpolate
        return Normal(np.ravel(mean), np.maximum(np.ravel(std), self.least_std))

    def to_arrays(self) -> dict[str, Floats]:
        return {"least_std": np.array([self.least_std])}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, float(arrays["least_std"][0]))


def checked_ppf(
    ppf: Callable[[float], Any], n_samples: int, name: str
) -> Callable[[float], Floats]:
    """Wrap a model's quantile function with a check that it returns `n_samples` finite numbers.

    Parameters
    ----------
    ppf : callable
        Function from a probability to the quantiles of all rows, in any shape.
    n_samples : int
        Number of rows.
    name : str
        Name of the model, for messages.
    """

    def checked(p: float) -> Floats:
        values = np.ravel(np.asarray(ppf(p), dtype=np.float64))
        if values.size != n_samples or not np.isfinite(values).all():
            wrong_size = values.size != n_samples
            got = f"{values.size} values" if wrong_size else "values that are not finite"
            raise InputError(
                f"estimator {name} predicts {got} as quantiles of {count(n_samples, 'row')};"
                f" {USE_A_FUNCTION}"
            )
        return values

    return checked


def _ppf_method(estimator: Any) -> str | None:
    """Return the name of the method that returns a distribution; None if there is none.

    Classifiers have `predict_proba` as well, but not `predict_quantiles`.
    """
    model = final_step(estimator)
    if hasattr(model, "pred_dist"):
        return "pred_dist"
    has_quantiles = hasattr(model, "predict_proba") and hasattr(model, "predict_quantiles")
    return "predict_proba" if has_quantiles else None


def _with_named_outcomes(estimator: Any, rows: Training) -> Training:
    """Return training rows with a table of outcomes for models of skpro.

    Some of them fail for rows of a table with an array of outcomes.
    """
    if not (hasattr(final_step(estimator), "predict_quantiles") and hasattr(rows.X, "columns")):
        return rows
    table: Any = pd.DataFrame({"y": rows.y}, index=getattr(rows.X, "index", None))
    return replace(rows, y=table)


def _rows_for(estimator: Any, X: Any) -> Any:
    """Return rows for the method that predicts distributions.

    In a Pipeline, rows are first transformed by the steps before the last.
    """
    method = _ppf_method(estimator)
    # a Pipeline delegates predict_proba, but not pred_dist
    if method is None or hasattr(estimator, method) or len(estimator.steps) == 1:
        return X
    return estimator[:-1].transform(X)
