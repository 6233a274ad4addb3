"""Adapters for estimators that predict a distribution or quantiles for each row."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator

from evenhand._format import count
from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import (
    Categorical,
    Distribution,
    NegativeBinomial,
    Normal,
    OutcomeKind,
    Poisson,
    Quantiles,
    from_ppf,
)
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters.base import (
    USE_A_FUNCTION,
    Base,
    Training,
    allows_missing,
    final_step,
    fitted,
    predict_options,
    thawed,
)
from evenhand.tables import take_rows, unreported

# --- conversion of discrete distributions of other libraries

TAIL = 1e-10
"""Probability of each tail that is left out of a table of probabilities."""

MOST_VALUES = 5000
"""Largest number of values in a table of probabilities."""


def is_discrete(predicted: Any) -> bool:
    """Whether a predicted distribution is discrete: of skpro by its tag, others by their name."""
    get_tag = getattr(predicted, "get_tag", None)
    if callable(get_tag):
        return bool(get_tag("distr:measuretype", "continuous", raise_error=False) == "discrete")
    return type(predicted).__name__ == "Poisson"


def discrete_of(predicted: Any, n_samples: int, name: str) -> Distribution:
    """Convert a discrete distribution: Poisson and negative binomial exactly, others by a table.

    Parameters
    ----------
    predicted : object
        Output of a model of skpro or NGBoost, for `n_samples` rows.
    n_samples : int
        Number of rows.
    name : str
        Name of the model, for messages.
    """
    family = type(predicted).__name__
    values = _parameters(predicted)
    if family == "Poisson" and "mu" in values:
        return Poisson(_column(values["mu"], n_samples))
    if family == "NegativeBinomial" and {"mu", "alpha"} <= values.keys():
        # skpro: the variance is mu + mu**2 / alpha
        mean = _column(values["mu"], n_samples)
        return NegativeBinomial(mean, 1 / _column(values["alpha"], n_samples))
    return _tabulated(predicted, n_samples, name)


def _tabulated(predicted: Any, n_samples: int, name: str) -> Distribution:
    """Return the probabilities of all whole numbers between two extreme quantiles."""
    try:
        low, high = (_column(predicted.ppf(p), n_samples) for p in (TAIL, 1 - TAIL))
        first, last = np.floor(low.min()), np.ceil(high.max())
        if not last - first < MOST_VALUES:
            raise InputError(
                f"estimator {name} predicts values from {first:g} to {last:g}, more than"
                f" {MOST_VALUES}; return a Forecast from a function instead"
            )
        support = np.arange(first, last + 1)
        mass = np.stack([_column(predicted.pmf(value), n_samples) for value in support], axis=-1)
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise InputError(
            f"estimator {name} predicts discrete distributions without probabilities (pmf) for"
            f" {count(n_samples, 'row')} ({error}); return a Forecast from a function instead"
        ) from error
    total = mass.sum(axis=-1, keepdims=True)
    if not (np.abs(total - 1) <= 1e-6).all():
        raise InputError(
            f"estimator {name} predicts probabilities of whole numbers that do not add up to 1;"
            " return a Forecast from a function instead"
        )
    return Categorical(support, mass / total)


def _parameters(predicted: Any) -> dict[str, Any]:
    """Return the parameters of a distribution of skpro or NGBoost."""
    # arrays of one row per person, unlike the constructor parameters of skpro
    broadcast = getattr(predicted, "_bc_params", None)
    if isinstance(broadcast, dict):
        return broadcast
    params = getattr(predicted, "params", None)
    if isinstance(params, dict):
        return params
    get_params = getattr(predicted, "get_params", None)
    return dict(get_params(deep=False)) if callable(get_params) else {}


def _column(values: Any, n_samples: int) -> Floats:
    """Return one number per row."""
    column = np.ravel(np.asarray(values, dtype=np.float64))
    return np.broadcast_to(column, (n_samples,)) if column.size == 1 else column


# --- adapters for estimators that predict a distribution for each row


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


# --- adapters for estimators that predict quantiles

FITTED_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Levels at which a model for a single quantile is fitted."""

ASKED_LEVELS = tuple(round(0.02 * k, 2) for k in range(1, 50))
"""Levels requested from a model that predicts any quantile."""

LEVEL_NAMES = ("levels", "quantiles", "quantile_alpha")
"""Names of attributes with the levels of a model's predictions."""


class QuantileGrid(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fitted models for single quantiles, combined into a model with one column per level.

    Parameters
    ----------
    models : list of estimators
        Fitted models, one for each level.
    levels : list of float
        Increasing levels of the models.
    """

    def __init__(self, models: list[Any], levels: Sequence[float]) -> None:
        self.models = models
        self.levels = levels

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing, as the models are already fitted."""
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the quantiles, shape (n, n_levels)."""
        return np.column_stack([np.ravel(model.predict(X)) for model in self.models])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(allows_missing(self.models[0]))
        return tags


# model folders store the class under this module name, independent of its file
QuantileGrid.__module__ = "evenhand.forecasters.adapters"


class QuantileBase(Base):
    """A model that predicts one quantile at an adjustable level, or several at known levels."""

    name: ClassVar[str] = "quantiles"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return cls.accepts_frozen(estimator) or level_parameter(estimator) is not None

    @classmethod
    def accepts_frozen(cls, estimator: Any) -> bool:
        return known_levels(estimator) is not None

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        is_known = known_levels(thawed(estimator)) is not None
        parameter = None if is_known else level_parameter(estimator)
        if parameter is None:
            base = cls(fitted(estimator, rows))
        else:
            # one model per level, as a single quantile is not a distribution
            copies = (clone(estimator).set_params(**{parameter: level}) for level in FITTED_LEVELS)
            base = cls(QuantileGrid([fitted(copy, rows) for copy in copies], list(FITTED_LEVELS)))
        base.distribution(take_rows(rows.X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        model = thawed(self.estimator)
        levels = known_levels(model)
        assert levels is not None
        # quantile forests, for instance, predict any level on request
        asked = {"quantiles": levels.tolist()} if "quantiles" in predict_options(model) else {}
        values = np.asarray(model.predict(X, **asked), dtype=np.float64)
        if values.shape != (len(X), levels.size):
            rule = f"predict one column for each of its {levels.size} levels"
            got = f"shape {values.shape} from {type(model).__name__}"
            raise bad_input("estimator", rule, got, USE_A_FUNCTION)
        # models store levels in the order given by the user
        order = np.argsort(levels)
        return Quantiles(levels[order], spaced(levels[order], values[:, order]))


def spaced(levels: Floats, values: Floats) -> Floats:
    """Sort the quantiles of each row, and separate quantiles that nearly coincide.

    Quantiles are moved away from the middle one. After sorting, crossing quantiles can be
    arbitrarily close, and a tail fitted to them would be too short.
    """
    # monotone rearrangement (Chernozhukov, Fernandez-Val & Galichon 2010)
    ordered = np.sort(values, axis=-1)
    mean_gaps = np.diff(levels) * (ordered[:, -1:] - ordered[:, :1]) / (levels[-1] - levels[0])
    # a density above 50 times the row's mean density means that two models contradict each other
    short = np.maximum(mean_gaps / 50 - np.diff(ordered, axis=-1), 0.0)
    shift = np.concatenate([np.zeros((len(ordered), 1)), np.cumsum(short, axis=-1)], axis=-1)
    # the middle quantile is unchanged
    return np.asarray(ordered + shift - shift[:, [levels.size // 2]])


def known_levels(estimator: Any) -> Floats | None:
    """Return the levels of a model's quantiles by column; None if it does not predict quantiles."""
    model = final_step(estimator)
    if not hasattr(model, "predict"):
        return None
    if "quantiles" in predict_options(model):
        return np.array(ASKED_LEVELS)
    for name in LEVEL_NAMES:
        try:
            levels = np.asarray(getattr(model, name, ()), dtype=np.float64)
        except (TypeError, ValueError):
            continue
        # an attribute of that name may have any content, so check that these are levels
        distinct = levels.ndim == 1 and np.unique(levels).size == levels.size > 1
        if distinct and levels.min() > 0 and levels.max() < 1:
            return levels
    return None


def level_parameter(estimator: Any) -> str | None:
    """Return the level parameter of a model for a single quantile; None for other models.

    A model with a `loss`, `objective` or `strategy` is a quantile model if its value is "quantile",
    any other model if its `quantile` is a number.
    """
    model = final_step(estimator)
    if (
        isinstance(estimator, FrozenEstimator)
        or not hasattr(model, "get_params")
        or not hasattr(model, "predict")
    ):
        return None
    params = model.get_params(deep=False)
    # `alpha` alone can be a penalty, so the quantile loss must be named
    modes = [params[name] for name in ("loss", "objective", "strategy") if name in params]
    if modes:
        is_quantile = any(isinstance(mode, str) and mode == "quantile" for mode in modes)
    else:
        level = params.get("quantile")
        is_quantile = isinstance(level, numbers.Real) and not isinstance(level, bool)
    if not is_quantile:
        return None
    parameter = "quantile" if "quantile" in params else "alpha"
    return parameter if model is estimator else f"{estimator.steps[-1][0]}__{parameter}"
