"""Forecasts of fitted models of other libraries, without training rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from numpy.typing import ArrayLike

from evenhand._validate import Floats, InputError
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import Base, CountBase, has_poisson_loss, kind_of, thawed
from evenhand.forecasters.base import Forecaster, State


class FittedForecaster(Forecaster):
    """Forecasts of a fitted model that determines its distributions by itself.

    Rows are passed to the model unchanged. Use `as_forecaster`.

    Parameters
    ----------
    model : estimator or function
        The fitted model.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def _base(self) -> Base:
        # without outcomes, only the loss shows that a regressor predicts counts
        if hasattr(self.model, "predict") and has_poisson_loss(self.model):
            return CountBase.of_fitted(self.model)
        return kind_of(self.model).of_fitted(self.model)

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        return Forecast(self._base.distribution(X))

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return self._base.outcome_kind_of(self.model, y)

    def to_state(self) -> State:
        name = type(self.model).__name__
        raise InputError(
            f"a fitted {name} cannot be stored as a forecaster; fit ClassifierForecaster,"
            " CountRegressor or RecalibratedRegressor around it"
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        raise InputError("a model of another library is not stored as a forecaster")


def as_forecaster(model: Any) -> Any:
    """Return a forecaster for a fitted model; a forecaster is returned unchanged.

    Parameters
    ----------
    model : forecaster, estimator or function
        A forecaster of this package, or a fitted model that predicts distributions: a classifier
        with `predict_proba` (of classes 0 and 1, or of ordered numbers), a regressor with the
        Poisson loss (Poisson distributions), a survival model of lifelines or scikit-survival, a
        model of skpro or NGBoost, one whose `predict` takes `return_std`, or a function from rows
        to a `Forecast`.

    Returns
    -------
    Forecaster
        An object with `forecast(X)` and `predict(X)`.

    Raises
    ------
    InputError
        If the model predicts only numbers or fixed quantiles: its distribution must be learned
        from training rows, by `RecalibratedRegressor` or `CountRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(40.0)[:, None]
    >>> model = LogisticRegression().fit(X, X[:, 0] > 20)
    >>> as_forecaster(model).forecast(X[[0, 39]]).event_probability().round(2)
    array([0., 1.])
    """
    if hasattr(model, "forecast"):
        return model
    found = FittedForecaster(thawed(model))
    found._base  # noqa: B018 - raises for a model without a distribution
    return found
