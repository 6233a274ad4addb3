"""Base class of forecasters, scikit-learn regressors with `forecast`, and their stored state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import EnumType
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand._validate import (
    LARGEST,
    Floats,
    InputError,
    bad_input,
    not_numbers,
    typed,
)
from evenhand.distributions import Distribution, OutcomeKind, Quantiles, Support
from evenhand.draws import RandomState, nodes
from evenhand.forecast import Forecast
from evenhand.forecasters.bounds import (
    Bounds,
    check_support,
    learn_support,
    on_support,
    stored_bounds,
    to_line,
)
from evenhand.tables import (
    Schema,
    as_pandas,
    refuse_repeated_names,
    row_blocks,
    take_rows,
    unreported,
    warn_unseen,
)

POINT_ROWS = 1024
"""Number of rows whose means are computed at once, as a mean without a closed form needs a table of
quantiles for each row."""


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Complete state of a fitted forecaster, in parts that can be stored without pickle.

    `put` and `taken` convert a learned attribute by its type: arrays and models are stored apart,
    under the names of their places, and JSON values contain these names. Dataclasses are stored by
    their fields, other classes of the package by their own `to_state` and `from_state`.

    Parameters
    ----------
    kind : str
        Class name of the forecaster.
    params : dict
        Constructor parameters and learned values, as JSON values.
    arrays : dict of str to ndarray
        Learned arrays.
    parts : dict of str to estimator
        Fitted inner estimators, which may be forecasters of this package or other models.
    """

    kind: str
    params: dict[str, Any]
    arrays: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    def put(self, value: Any, place: str) -> Any:
        """Return a learned value as JSON values, and add its arrays and models to the state."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self.arrays[place] = value
            return {"array": place}
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        inside = _inside(value)
        if isinstance(inside, dict):
            return {name: self.put(one, f"{place}.{name}") for name, one in inside.items()}
        if isinstance(inside, list | tuple):
            return [self.put(one, f"{place}.{i}") for i, one in enumerate(inside)]
        if isinstance(inside, str | int | float | None):
            return inside
        name = place.rpartition(".")[2].strip("_")
        name = f"member{name}" if name.isdecimal() else name
        # without FrozenEstimator, which only marks a model as fitted: a stored model always is
        self.parts[name] = thawed(value)
        return {"part": name}

    def taken(self, declared: Any, value: Any, place: str) -> Any:
        """Return a learned value of a declared type from the output of `put`."""
        kinds = get_args(declared)
        kinds = kinds if get_origin(declared) in (Union, UnionType) else (declared,)
        own = [kind for kind in kinds if hasattr(kind, "from_state")]
        if own and value is not None:
            return own[0].from_state(value)
        if isinstance(value, dict):
            return typed(place, self._taken_dict(kinds, value, place), declared)
        if isinstance(value, list):
            inner = [get_args(kind)[0] for kind in kinds if get_args(kind)[1:] == (...,)] or [Any]
            found = [self.taken(inner[0], one, f"{place}.{i}") for i, one in enumerate(value)]
            if Any in kinds:
                return found
            return np.array(found) if np.ndarray in kinds else typed(place, found, declared)
        return typed(place, declared(value) if isinstance(declared, EnumType) else value, declared)

    def _taken_dict(self, kinds: Sequence[Any], value: dict[str, Any], place: str) -> Any:
        if value.keys() == {"array"}:
            return self.arrays[value["array"]]
        if value.keys() == {"part"}:
            return self.parts[value["part"]]
        if value.keys() == {"quantiles"}:
            return Quantiles(*self.taken(Any, value["quantiles"], place))
        for kind in kinds:
            if get_origin(kind) is dict:
                inner = get_args(kind)[1]
                return {name: self.taken(inner, value[name], f"{place}.{name}") for name in value}
            if is_dataclass(kind) and value.get("class") == kind.__name__:  # type: ignore[union-attr]
                hints = get_type_hints(kind)
                names = [one.name for one in fields(kind) if one.compare]
                found = {name: self.taken(hints[name], value[name], name) for name in names}
                return kind(**found)  # type: ignore[operator]
        return pd.DataFrame(value) if pd.DataFrame in kinds else value


def _inside(value: Any) -> Any:
    """Return what a learned value contains; models are unchanged."""
    if isinstance(value, pd.DataFrame):
        # JSON has no NaN
        known = value.astype(object).where(value.notna(), None)
        return {str(name): known[name].tolist() for name in known}
    if isinstance(value, Quantiles):
        return {"quantiles": [value.levels, value.values]}
    # models of other libraries may have any form
    if not type(value).__module__.startswith("evenhand.") or hasattr(value, "predict"):
        return value
    if hasattr(value, "to_state"):
        return value.to_state()
    if is_dataclass(value):
        stored = {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
        return {"class": type(value).__name__} | stored
    return value


class Forecaster(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A regressor that predicts a whole distribution for each row."""

    inner: ClassVar[tuple[str, ...]] = ()
    """Constructor parameters that are models, which are not stored: fitted models are."""

    learned: ClassVar[dict[str, Any]] = {
        "n_features_in_": int,
        "feature_names_in_": tuple[str, ...] | None,
        "schema_": Schema,
        "sees_pandas_": bool,
        "support_": Support | None,
    }
    """What is learned and stored: attributes and their types."""

    support: Bounds = None
    support_: Support | None = None

    @abstractmethod
    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        """Predict the distribution of each row's outcome.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        r : None, float, array of shape (n,), (1, m) or (n, m)
            Draws strictly between 0 and 1. None generates one new draw per row. Deterministic
            forecasters ignore `r`.
        random_state : int, generator or None
            Source of new draws.

        Returns
        -------
        Forecast
        """

    def to_state(self) -> State:
        """Return the state of the fitted forecaster, which can be stored without pickle."""
        check_is_fitted(self)
        state = State(type(self).__name__, {"params": self._stored_params(), "learned": {}})
        for name in self.learned:
            state.params["learned"][name] = state.put(getattr(self, name, None), name)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a fitted forecaster from the output of `to_state`."""
        model = cls(**dict.fromkeys(cls.inner), **state.params["params"])
        learned = state.params["learned"]
        found = {
            name: state.taken(declared, learned[name], name)
            for name, declared in cls.learned.items()
        }
        model.__dict__.update({name: one for name, one in found.items() if one is not None})
        model._set_up()
        return model

    def _set_up(self) -> None:
        """Set what depends on stored values, and check that they match."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and names != self.schema_.names:
            raise InputError("feature_names_in are not the names of the columns of the schema")
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        """Return the kind of outcome that this forecaster predicts if it is fitted to `y`.

        None if only a forecast shows it.
        """
        return OutcomeKind.CONTINUOUS

    def predict(self, X: Any) -> Floats:
        """Predict the mean of the outcome, shape (n,); it does not depend on a draw.

        This is the mean of the deterministic forecast: for `RandomizedRegressor` the forecast of
        the inner model, and for `PAICRegressor`, which has no inner model, the mean over 64 draws.
        For a skewed outcome, randomized forecasts have larger means in expectation over the draw.
        """
        return self.forecast_and_predict(X, 0.5)[1]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Predict an interval for each row that contains the outcome with a given probability.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        coverage : float, default 0.9
            Probability, 0 < coverage < 1, half of the rest on each side.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper ends, those of `forecast(X).interval(coverage)`. Of a randomized
            forecaster they have a new draw per row.
        """
        return np.column_stack(self.forecast(X).interval(coverage))

    def forecast_and_predict(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> tuple[Forecast, Floats]:
        """Return `forecast` and `predict` of the same rows at less than their combined cost.

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
        # for a deterministic forecast, the point forecast is its mean
        if not forecast.is_randomized:
            return forecast, point_forecast(forecast)
        with unreported():  # unseen values have already been reported above
            return forecast, point_forecast(self.forecast(X, nodes(64)))

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Check names and shape; read a table by the schema, and anything else as numbers."""
        if hasattr(X, "columns"):
            if reset or not self._has_columns_of_training(X):
                refuse_repeated_names(X)
                if not reset:
                    self._refuse_more_columns(X)
                # names and their order are checked by scikit-learn, values by the schema
                validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise bad_input("X", "have at least one row", "an empty table")
            if reset:
                self.schema_ = Schema.learn(X)
                self.sees_pandas_ = isinstance(X, pd.DataFrame)
            return self._read(X)
        if reset:
            self.schema_ = Schema()
            self.sees_pandas_ = True
        elif self._are_plain_numbers(X):
            return X
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        for i, j in np.argwhere(np.abs(rows) > LARGEST)[:1]:
            rule = f"lie between -{LARGEST:g} and {LARGEST:g}"
            raise bad_input(f"column 'x{j}', row {i + 1}", rule, rows[i, j])
        return rows

    def _refuse_more_columns(self, X: Any) -> None:
        """Refuse a table with all columns of training and others, which may be those of groups."""
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        present = [str(name) for name in X.columns]
        others = [name for name in present if name not in names]
        if not names or not others or not set(names) <= set(present):
            return
        listed = ", ".join(map(repr, others[:5])) + (", ..." if len(others) > 5 else "")
        raise InputError(
            f"X has columns that the model was not fitted to: {listed}; pass"
            " X[model.feature_names_in_], or, if the columns define groups of a repair, a function"
            " in place of the model: lambda X: model.forecast(X[model.feature_names_in_])"
        )

    def _has_columns_of_training(self, X: Any) -> bool:
        """Whether a pandas table has the column names of training, in their order."""
        names = getattr(self, "feature_names_in_", None)
        return (
            names is not None
            and isinstance(X, pd.DataFrame)
            and X.columns.tolist() == names.tolist()
        )

    def _are_plain_numbers(self, X: Any) -> bool:
        """Whether scikit-learn would return these rows unchanged and without a warning.

        Its own check takes as long for one row as the prediction of a linear model.
        """
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and not (np.abs(X) > LARGEST).any()
        )

    def _read(self, X: Any) -> Any:
        """Convert the columns of a table to the kinds of training; unchanged if they match.

        A model trained on a pandas table always receives pandas tables, as models depend on how
        missing values are stored.
        """
        table = as_pandas(X)
        read = self.schema_.apply(table, "")
        # a table of another library is passed on unchanged if training used such a table
        return X if read is table and not self.sees_pandas_ else read

    def _check_new_rows(self, X: Any) -> Any:
        """Check rows to forecast, and warn about values that did not occur in training."""
        if self._has_columns_of_training(X) and len(X) > 0 and self.schema_.covers(X):
            return X
        rows = self._check_rows(X, reset=False)
        if hasattr(rows, "columns"):
            warn_unseen(self.schema_, rows)
        return rows

    def _check_training(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, Floats, Floats]:
        """Check a training set; return rows of positive weight, their outcomes and weights."""
        if y is None:
            # scikit-learn's own checks look for this clause
            reason = "this estimator requires y to be passed, but the target y is None"
            raise InputError(f"y is missing: {reason}; pass the outcomes")
        rows = self._check_rows(X, reset=True)
        try:
            outcomes = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        except (TypeError, ValueError) as error:
            # scikit-learn's message of words has no remedy; its others have
            if "convert string" not in str(error):
                raise
            raise not_numbers("y", y, error) from error
        # a table with a single column is accepted, with scikit-learn's warning
        if outcomes.ndim == 2 and outcomes.shape[1] == 1:
            outcomes = column_or_1d(outcomes, warn=True)
        if outcomes.ndim != 1:
            remedy = "fit one forecaster per outcome"
            raise bad_input("y", "have one column", f"shape {outcomes.shape}", remedy)
        check_consistent_length(rows, outcomes)
        if outcomes.size < 2:
            raise bad_input("X", "have at least 2 rows", "n_samples = 1")
        weight = np.ones(outcomes.size)
        if sample_weight is not None:
            weight = check_array(
                sample_weight,
                ensure_2d=False,
                dtype=np.float64,
                ensure_non_negative=True,
                input_name="sample_weight",
            )
            if weight.ndim != 1:
                raise bad_input("sample_weight", "have one column", f"shape {weight.shape}")
            check_consistent_length(weight, outcomes)
        if not weight.any():
            raise bad_input("sample_weight", "have a positive sum", "zeros only")
        check_support(outcomes, self.support, weight)
        if not weight.all():  # rows of weight 0 are dropped, as a model cannot be fitted to them
            used = np.flatnonzero(weight)
            return take_rows(rows, used), outcomes[used], weight[used]
        return rows, outcomes, weight

    def _learn_support(self, outcomes: Floats, rows: Any = None, *, is_map: bool = True) -> Floats:
        """Learn the map of outcomes to the line, `support_`; return the mapped outcomes.

        `rows` are the features, by which the map is chosen. With `is_map=False` outcomes are
        returned unchanged, and forecasts are truncated later.
        """
        self.support_ = learn_support(self.support, outcomes, rows, is_map=is_map)
        return self._to_line(outcomes)

    def _to_line(self, outcomes: Floats) -> Floats:
        """Map outcomes to the line on which models are trained."""
        support = self.support_
        return outcomes if support is None else to_line(support, outcomes)

    def _on_support(self, distribution: Distribution) -> Distribution:
        """Map predicted distributions from the line to the support of the outcome."""
        return distribution if self.support_ is None else on_support(self.support_, distribution)

    def _stored_params(self) -> dict[str, Any]:
        """Return other constructor parameters than models as JSON values, without a generator."""
        params = self.get_params(deep=False)
        if "support" in params:
            params["support"] = stored_bounds(self.support)
        # the state of a generator has changed during the fit and would not reproduce it
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = None
        # NumPy numbers, for instance of a grid search, cannot be stored as JSON
        plain: Any = np.generic | np.ndarray | tuple
        return {
            name: np.array(value).tolist() if isinstance(value, plain) else value
            for name, value in params.items()
            if name not in self.inner
        }

    def _models(self) -> tuple[Any, ...]:
        """Return the models inside, as they were given."""
        return ()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = all(allows_missing(one) is not False for one in self._models())
        return tags


def thawed(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator; any other estimator is returned unchanged."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def allows_missing(estimator: Any) -> bool | None:
    """Whether an estimator's tags allow missing values; None if it has no tags."""
    inner = thawed(estimator)
    return (
        bool(get_tags(inner).input_tags.allow_nan) if hasattr(inner, "__sklearn_tags__") else None
    )


def point_forecast(forecast: Forecast) -> Floats:
    """Return the mean of each row's forecast, averaged over several draws, shape (n,)."""
    mean = np.concatenate([forecast[rows].mean() for rows in row_blocks(len(forecast), POINT_ROWS)])
    return np.asarray(mean.mean(axis=-1) if mean.ndim == 2 else mean, dtype=np.float64)
