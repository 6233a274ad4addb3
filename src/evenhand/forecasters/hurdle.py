"""Forecasts of an outcome with an atom at one end of its range, such as money with zeros."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    bad_input,
    check_choice,
    check_outcomes,
    outcomes_checked,
)
from evenhand.columns import unreported
from evenhand.distributions import End, OutcomeKind
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import allows_missing
from evenhand.forecasters.base import Forecaster, State
from evenhand.forecasters.bounds import FARTHEST_BOUND, Bounds, has_own_support
from evenhand.forecasters.classified import ClassifierForecaster
from evenhand.forecasters.randomized import RandomizedRegressor
from evenhand.tables import take_rows


class HurdleRegressor(Forecaster):
    """Forecasts of an outcome that is often at one end of its range: a classifier and a regressor.

    The classifier predicts whether the outcome is away from the atom `at`, for example whether
    there is a claim. The regressor predicts its distribution among the rows that are, for example
    the amount of a claim. `RandomizedRegressor` around this forecaster randomizes the amount only,
    which keeps forecasts calibrated at the least price (outcomes: 4.2).

    Parameters
    ----------
    classifier : classifier, optional
        Any classifier with `predict_proba`, always cloned and fitted to `y != at`. None is the
        default of `ClassifierForecaster`.
    regressor : estimator, function or list, optional
        Deterministic model of any kind that `RandomizedRegressor` accepts, always cloned and fitted
        to the rows away from the atom, with outcomes bounded by the atom. None is
        `MixtureMLPRegressor()`.
    at : float, default 0
        Value of the atom, units of `y`.
    end : {"low", "high"}, default "low"
        End of the range at which the atom is: "low" for zeros below all amounts, "high" for a limit
        that ends all larger values.
    random_state : int, generator or None
        Seed of the default models and of cross-fitting.

    Attributes
    ----------
    classifier_ : ClassifierForecaster
        Fitted forecaster of the event that the outcome is away from the atom.
    regressor_ : RandomizedRegressor
        Fitted forecaster of the rows away from the atom; its `base_forecast` is used.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Cragg, Econometrica 39 (1971), 829-844.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.where(rng.uniform(size=1000) < 0.6, 0.0, np.exp(X[:, 0] + rng.normal(size=1000)))
    >>> model = HurdleRegressor(LogisticRegression(), LinearRegression(), random_state=0).fit(X, y)
    >>> forecast = model.forecast(X)
    >>> bool(abs(forecast.cdf(0).mean() - 0.6) < 0.03), float(forecast.cdf_left(0).max())
    (True, 0.0)
    """

    def __init__(
        self,
        classifier: Any = None,
        regressor: Any = None,
        *,
        at: float = 0.0,
        end: End = "low",
        random_state: RandomState = None,
    ) -> None:
        self.classifier = classifier
        self.regressor = regressor
        self.at = at
        self.end = end
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier to all rows, and the regressor to those away from the atom.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to both models unchanged.
        y : array-like of shape (n,)
            Outcomes, none of them beyond the atom.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for models that take them.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If outcomes are beyond the atom, none is at the atom, or fewer than 20 are away from it.
        """
        check_choice("end", self.end, get_args(End))
        if not isinstance(self.at, int | float | np.number) or not np.isfinite(self.at):
            raise bad_input("at", "be a finite number", repr(self.at))
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        is_away = self._check_outcomes(outcomes)
        away = np.flatnonzero(is_away)
        random = generator(self.random_state)
        seeds = [int(seed) for seed in random.integers(2**31, size=2)]
        given = None if sample_weight is None else weight
        with outcomes_checked(), unreported():
            self.classifier_ = ClassifierForecaster(self.classifier, random_state=seeds[0])
            self.classifier_.fit(table, is_away.astype(np.float64), given)
            self.regressor_ = RandomizedRegressor(
                self.regressor, 1.0, support=self._support(outcomes[away]), random_state=seeds[1]
            )
            part = None if given is None else given[away]
            self.regressor_.fit(take_rows(table, away), outcomes[away], part)
        if self.regressor_.support_ is not None:
            # no outcome of this part is at the bound, so that nothing has to be moved off it
            self.regressor_.support_ = replace(self.regressor_.support_, edge=0.0)
        kind = self.regressor_.base_forecast(take_rows(table, away[:1])).outcome_kind
        if kind is not OutcomeKind.CONTINUOUS:
            rule = "predict continuous distributions of the outcomes away from the atom"
            raise bad_input("regressor", rule, f"forecasts of the kind {str(kind)!r}")
        return self

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        check_is_fitted(self)
        rows = self._check_new_rows(X)
        with unreported():  # unseen values have been reported for all columns
            chance = 1 - self.classifier_.forecast(rows).event_probability()
            part = self.regressor_.base_forecast(rows)
        return Forecast.from_hurdle(chance, part, self.at, self.end)

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.HURDLE

    def _check_outcomes(self, y: Floats) -> Any:
        """Check the outcomes on both sides; return which are away from the atom."""
        at = float(self.at)
        beyond = y < at if self.end == "low" else y > at
        if beyond.any():
            row = int(np.argmax(beyond))
            side = "at least" if self.end == "low" else "at most"
            rule = f"be {side} at={at:g} with end={self.end!r}"
            raise bad_input(f"y[{row}]", rule, f"{y[row]:g}", "set at and end to those of the atom")
        is_away = y != at
        check_outcomes(y, kind="hurdle")
        if is_away.all():
            raise InputError(
                f"y is never at={at:g}, so there is no atom; use a continuous forecaster, such as"
                " RandomizedRegressor(support=...)"
            )
        check_outcomes(y[is_away], name=f"y where it is not {at:g}")
        if is_away.sum() < 2:  # inside of another forecaster, which has checked all rows together
            raise InputError(
                f"y has {is_away.sum()} of {y.size} rows away from at={at:g}; at least"
                f" {MIN_DISTINCT} are needed"
            )
        return is_away

    def _support(self, part: Floats) -> Bounds:
        """Return the bounds of the outcomes away from the atom; None if the atom is too far."""
        if self.regressor is not None and has_own_support(self.regressor):
            return None
        at = float(self.at)
        # rounding errors would spoil a map to the line
        if np.abs(part - at).min() > FARTHEST_BOUND * np.ptp(part):
            return None
        return (at, None) if self.end == "low" else (None, at)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = (allows_missing(one) for one in (self.classifier, self.regressor))
        tags.input_tags.allow_nan = all(one is not False for one in inner)
        return tags

    def to_state(self) -> State:
        check_is_fitted(self)
        params = self._params_to_state("classifier", "regressor")
        stored = {"params": params, "learned": self._columns_to_state()}
        parts = {"classifier": self.classifier_, "regressor": self.regressor_}
        return State(type(self).__name__, stored, {}, parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        classifier, regressor = state.parts["classifier"], state.parts["regressor"]
        params = state.params["params"]
        # a new fit keeps the fitted models, as that of every loaded model does
        model = cls(classifier.classifier, regressor.estimator, **params)
        model.classifier_ = classifier
        model.regressor_ = regressor
        model._columns_from_state(state.params["learned"])
        return model
