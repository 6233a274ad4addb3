"""Adapters for estimators that predict quantiles."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, bad_input
from evenhand.distributions import Distribution, Quantiles
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import (
    USE_A_FUNCTION,
    Training,
    allows_missing,
    final_step,
    fitted,
    predict_options,
    thawed,
)
from evenhand.tables import take_rows

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
