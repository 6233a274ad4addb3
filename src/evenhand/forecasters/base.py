"""Base class of forecasters: a scikit-learn regressor with `forecast`, and its stored state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evenhand._format import one_line
from evenhand._validate import Floats, bad_input
from evenhand.columns import Schema, as_pandas, refuse_repeated_names, unreported, warn_unseen
from evenhand.draws import RandomState, nodes
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import Base, allows_missing
from evenhand.tables import row_blocks, take_rows

POINT_ROWS = 1024
"""Rows whose means are taken at once: where a mean is no formula it goes through a table of
quantiles for each row."""


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Everything needed to rebuild a fitted forecaster, in parts that can be stored without pickle.

    Parameters
    ----------
    kind : str
        Name of the forecaster's class.
    params : dict
        Constructor parameters and learned values that JSON can hold.
    arrays : dict of str to ndarray
        Learned arrays.
    parts : dict of str to estimator
        Fitted estimators inside: forecasters of ours, or others.
    """

    kind: str
    params: dict[str, Any]
    arrays: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return one_line(
            self,
            kind=self.kind,
            params=len(self.params),
            arrays=len(self.arrays),
            parts=len(self.parts),
        )


class Forecaster(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A regressor that forecasts a whole distribution for each row."""

    @abstractmethod
    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        """Forecast the distribution of each row's outcome.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        r : None, float, array of shape (n,), (1, m) or (n, m)
            Draws strictly between 0 and 1. None draws a fresh one per row. Deterministic
            forecasters ignore it.
        random_state : int, generator or None
            Source of fresh draws.

        Returns
        -------
        Forecast
        """

    @abstractmethod
    def to_state(self) -> State:
        """Return the fitted forecaster as parts that can be stored without pickle."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the fitted forecaster from `to_state`."""

    def predict(self, X: Any) -> Floats:
        """Predict the mean of the outcome, shape (n,); it does not depend on a draw.

        It is the mean of the deterministic forecast: for `RandomizedRegressor` that of the model
        inside, and for `PAICRegressor`, which has no such model, the mean over 64 draws. Randomized
        forecasts of a skewed outcome have larger means, in expectation over the draw.
        """
        return self.forecast_and_predict(X, 0.5)[1]

    def forecast_and_predict(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> tuple[Forecast, Floats]:
        """Return `forecast` and `predict` of the same rows, for less than the cost of both.

        Parameters
        ----------
        X, r, random_state
            As for `forecast`.

        Returns
        -------
        forecast : Forecast
        mean : ndarray of shape (n,)
            The point forecasts.
        """
        forecast = self.forecast(X, r, random_state=random_state)
        # a deterministic forecast is its own point forecast
        if not forecast.is_randomized:
            return forecast, point_forecast(forecast)
        with unreported():  # what is unusual about the rows has been reported above
            return forecast, point_forecast(self.forecast(X, nodes(64)))

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Check names and shape; read a table by the schema, anything else as numbers."""
        if hasattr(X, "columns"):
            refuse_repeated_names(X)
            # names and their order are checked by scikit-learn, values by the schema
            validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise bad_input("X", "have at least one row", "0 rows")
            if reset:
                self.schema_ = Schema.learn(X)
                self.sees_pandas_ = isinstance(X, pd.DataFrame)
            return self._read(X)
        if reset:
            self.schema_ = Schema()
            self.sees_pandas_ = True
        return validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)

    def _read(self, X: Any) -> Any:
        """Return a table with columns of the kinds of training; the table itself if it has them.

        A model that was trained on a table of pandas gets no other: models depend on how missing
        values are stored.
        """
        table = as_pandas(X)
        read = self.schema_.apply(table, "")
        # a table of polars goes to the model as it came, if training had one too
        return X if read is table and not self.sees_pandas_ else read

    def _check_new_rows(self, X: Any) -> Any:
        """Check rows to forecast, and warn of values that training never had."""
        rows = self._check_rows(X, reset=False)
        if hasattr(rows, "columns"):
            warn_unseen(self.schema_, rows)
        return rows

    def _check_training(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, Floats, Floats]:
        """Check a training set; return rows of positive weight, their outcomes and weights."""
        if y is None:
            raise bad_input(
                "y",
                "be given: this estimator requires y to be passed, but the target y is None",
                "None",
            )
        rows = self._check_rows(X, reset=True)
        outcomes = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        # a column of a table is an outcome too, with scikit-learn's warning
        if outcomes.ndim == 2 and outcomes.shape[1] == 1:
            outcomes = column_or_1d(outcomes, warn=True)
        if outcomes.ndim != 1:
            raise bad_input("y", "have one column", f"shape {outcomes.shape}")
        check_consistent_length(rows, outcomes)
        if outcomes.size < 2:
            raise bad_input("X", "have at least 2 rows", "n_samples = 1")
        weight = np.asarray(
            _check_sample_weight(
                sample_weight, outcomes, dtype=np.float64, ensure_non_negative=True
            )
        )
        if not weight.any():
            raise bad_input("sample_weight", "have a positive sum", "zeros only")
        if not weight.all():  # rows of weight 0 are no rows: a fold of them would fit nothing
            used = np.flatnonzero(weight)
            return take_rows(rows, used), outcomes[used], weight[used]
        return rows, outcomes, weight

    def _columns_to_state(self) -> dict[str, Any]:
        """Return the columns of the training table as `State` keeps them."""
        columns: dict[str, Any] = {"n_features_in": self.n_features_in_}
        if hasattr(self, "feature_names_in_"):
            columns["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        return columns | {"schema": self.schema_.to_state(), "sees_pandas": self.sees_pandas_}

    def _columns_from_state(self, learned: dict[str, Any]) -> None:
        self.n_features_in_ = learned["n_features_in"]
        self.schema_ = Schema.from_state(learned["schema"])
        self.sees_pandas_ = bool(learned.get("sees_pandas", True))
        if "feature_names_in" in learned:
            self.feature_names_in_ = np.array(learned["feature_names_in"], dtype=object)

    def _params_to_state(self) -> dict[str, Any]:
        """Return constructor parameters as JSON can hold them, without a generator."""
        params = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        # a generator has moved on since the fit: its state would not repeat it
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = None
        return params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class WrappingForecaster(Forecaster):
    """A forecaster whose distributions are made from those of the model in `estimator`."""

    estimator: Any

    def _set_base(self, base: Base) -> None:
        self._base = base
        self.estimator_ = base.estimator

    def base_forecast(self, X: Any) -> Forecast:
        """Forecast as the model itself does, without what is put around it, shape (n,)."""
        check_is_fitted(self)
        return Forecast(self._base.distribution(self._check_new_rows(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        allowed = allows_missing(self.estimator)
        if allowed is not None:
            tags.input_tags.allow_nan = allowed
        return tags


def point_forecast(forecast: Forecast) -> Floats:
    """Mean of each person's forecast, over the draws if there are several, shape (n,)."""
    mean = np.concatenate([forecast[rows].mean() for rows in row_blocks(len(forecast), POINT_ROWS)])
    return np.asarray(mean.mean(axis=-1) if mean.ndim == 2 else mean, dtype=np.float64)
