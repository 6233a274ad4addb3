"""Recalibration of any model, on average or by named group (method: recalibration)."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    Floats,
    InputError,
    OnDiscrete,
    bad_input,
    check_choice,
    check_continuous,
    check_count,
)
from evenhand.distributions import Recalibrated
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import (
    KINDS,
    SPREADS,
    Base,
    ResidualBase,
    SpreadKind,
    Training,
    kind_of,
)
from evenhand.forecasters.base import State, WrappingForecaster
from evenhand.forecasters.bounds import Bounds, stored_bounds
from evenhand.forecasters.grouping import By, Grouping
from evenhand.forecasters.maps import group_table, learn_maps, map_of_rows
from evenhand.tables import take_rows


class RecalibratedRegressor(WrappingForecaster):
    """A model with recalibrated forecasts `g(F(y))`, with `g` estimated from held-out PITs.

    The map is the isotonic regression of Kuleshov, Fenner and Ermon (2018), smoothed to
    `2 n^(2/5)` knots of equal probability so that densities stay finite, with more knots at ranks
    1, 2, 4, ... of both tails for extreme intervals. A single map for all rows calibrates forecasts
    on average, not within groups; with `by` each named group has a separate map. Groups that cannot
    be named need randomization: wrap this model in `RandomizedRegressor`. Certify on rows that were
    not used here.

    Parameters
    ----------
    estimator : estimator
        Deterministic model of any kind that `RandomizedRegressor` accepts, always cloned. It is
        fitted on all rows, and once without each fold for the held-out PITs. Wrap a fitted model in
        a `FrozenEstimator`: it is not refitted, and all rows are used to estimate the map, so pass
        rows to `fit` that it has not seen.
    by : str, list of str or callable, optional
        Groups with separate maps: columns of the table `X`, or a function from `X` to one label per
        row. Several columns define one group per combination. Numbers and dates with more than 10
        distinct values are cut at the training median, other columns have one group per value, and
        missing values are a separate group; names are those of an audit, such as `age <= 50`. Rows
        with a label that is new (or missing, for a function), or of a group with fewer than 50
        rows, use the map of all rows. New values of columns are reported as for any forecaster; new
        labels of a function are reported if most rows of a forecast have them.
    cv : int, default 5
        Number of folds for the PITs, and for the residuals of a plain regressor.
    spread : {"learned", "constant"}, default "learned"
        Spread of the residuals of a plain regressor, as for `RandomizedRegressor`.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        How to handle an outcome that is not continuous, with fewer than 20 distinct values or one
        value in more than 10% of the rows. PITs of rounded outcomes are not randomized, so the map
        is accurate up to the probability of a rounding cell.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome, None on a side without bound: `(0, None)` for money or
        durations. The estimator is fitted to outcomes that a smooth increasing map takes to the
        real line, and its forecasts are mapped back; `estimator_.predict` then predicts mapped
        outcomes. Models in a `FrozenEstimator` predict outcomes in their own units. Predictions of
        a plain regressor are mapped to the line, where their residuals are estimated. Predictions
        beyond a bound, or too near to it, are moved inside: to a distance that 0 to 20% of the
        outcomes are within, the share with the smallest residuals. Distributions that are predicted
        by a function or by another model in a `FrozenEstimator` are truncated to the support.
    random_state : int, generator or None
        Seed of the folds.

    Attributes
    ----------
    estimator_ : estimator
        Fitted model.
    spread_ : SpreadTrees, estimator or None
        Fitted model of the logarithm of the spread of a plain regressor's residuals; None if it is
        constant.
    groups_ : DataFrame
        Groups of the training table: `group`, `n_samples` (rows of positive weight) and `map`,
        "own" or "pooled". Empty without `by`.
    levels_, values_ : ndarray of shape (n_maps, n_knots)
        Knots of the map of all rows, followed by those of the groups with separate maps, in the
        order of `groups_`.
    support_ : Support or None
        Map of outcomes to the line; None without `support`.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Kuleshov, Fenner & Ermon, ICML 2018. A new outcome is below the `i`-th PIT with probability
    `i / (n + 1)`, the plotting position used here: Vovk et al., Machine Learning 108 (2019),
    445-474.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RecalibratedRegressor(BayesianRidge(), by="sex", random_state=0)
    >>> model = model.fit(X[:300], y[:300])
    >>> model.groups_["map"].tolist()
    ['own', 'own']
    >>> model.forecast(X[300:]).cdf(150.0).shape
    (142,)
    """

    def __init__(
        self,
        estimator: Any,
        by: By | None = None,
        *,
        cv: int = 5,
        spread: SpreadKind = "learned",
        on_discrete: OnDiscrete = "raise",
        support: Bounds = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.by = by
        self.cv = cv
        self.spread = spread
        self.on_discrete = on_discrete
        self.support = support
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model, and estimate the maps from held-out PITs.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the estimator unchanged; a table if `by` names columns.
        y : array-like of shape (n,)
            Continuous outcomes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the maps and for estimators that accept them; rows of weight 0
            are dropped.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the estimator is randomized or of an unsupported kind, `by` does not match the table,
            or fewer than `2 cv` rows have a positive weight.
        """
        cv = check_count("cv", self.cv, least=2)
        check_choice("spread", self.spread, SPREADS)
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        kind = kind_of(self.estimator)
        given = None if sample_weight is None else weight
        is_held_out = kind.is_held_out(self.estimator)
        # each fold needs two rows
        if not is_held_out and outcomes.size < 2 * cv:
            what = "rows" if given is None else "rows of positive weight"
            rule = f"have at least {2 * cv} {what} for cv={cv}"
            raise bad_input("X", rule, f"n_samples = {outcomes.size}")
        check_continuous(outcomes, on_discrete=self.on_discrete)
        line = self._learn_support_of(self.estimator, outcomes, table)
        random = generator(self.random_state)
        grouping = None if self.by is None else Grouping.learn(self.by, table)
        groups = () if grouping is None else grouping.groups(table)
        self._grouping = grouping
        support = self._predicted_support(self.estimator)
        rows = Training(table, line, given, cv, random, self.spread, support)
        self._set_base(kind.fit(self.estimator, rows))
        # a fitted model has not seen these rows, so all PITs are held-out PITs
        if is_held_out:
            pit = self._base_forecast_of(table).cdf(outcomes)
        elif isinstance(self._base, ResidualBase) and self._base.unseen_pit is not None:
            pit = self._base.unseen_pit  # its residuals are already cross-fitted
        else:
            # a frozen plain regressor is not refitted, but its residual distribution is
            pit = self._cross_fitted_pit(kind, rows, outcomes)
        if not np.isfinite(pit).all():
            raise InputError(
                f"estimator {type(self.estimator_).__name__} predicts distributions that are not"
                " finite; check its predictions for NaN"
            )
        self.levels_, self.values_, self.groups_ = learn_maps(pit, weight, groups)
        return self

    def _cross_fitted_pit(self, kind: type[Base], rows: Training, outcomes: Floats) -> Floats:
        """Return the PIT of each row under the model fitted without its fold."""
        pit = np.empty(outcomes.size)
        for learn, held_out in rows.folds():
            part = kind.fit(self.estimator, learn).distribution(take_rows(rows.X, held_out))
            pit[held_out] = self._on_support(part).cdf(outcomes[held_out])
        return pit

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        check_is_fitted(self)
        rows = self._check_new_rows(X)
        labels = self._labels(rows)
        # labels of a function are not values of the table, so the schema does not report them
        if self._grouping is not None and labels is not None:
            self._grouping.warn_unseen(labels, self.groups_["group"].tolist())
        return self._mapped(self._base_forecast_of(rows), labels)

    def recalibrate(self, forecast: Forecast, X: Any) -> Forecast:
        """Apply the maps to an existing base forecast, which is then computed only once.

        Parameters
        ----------
        forecast : Forecast
            Output of `base_forecast(X)`.
        X : DataFrame or array-like of shape (n, n_features)
            Rows of the forecast, which determine their groups.

        Returns
        -------
        Forecast
            Equal to `forecast(X)`, without warnings about unseen values.
        """
        check_is_fitted(self)
        return self._mapped(forecast, self._labels(self._check_rows(X, reset=False)))

    def _labels(self, rows: Any) -> Any:
        """Return the label of each row, shape (n,); None without groups."""
        return None if self._grouping is None else self._grouping.labels(rows)

    def _mapped(self, forecast: Forecast, labels: Any) -> Forecast:
        base = forecast.distribution
        if labels is None:
            return Forecast(Recalibrated(base, self.levels_[0], self.values_[0]))
        return Forecast(
            Recalibrated(base, self.levels_, self.values_, map_of_rows(self.groups_, labels))
        )

    def without_groups(self) -> Self:
        """Return the fitted model with only the map of all rows, as if fitted without `by`."""
        # a shallow copy, as the shared model is never changed
        pooled = copy(self)
        pooled.by, pooled._grouping, pooled.groups_ = None, None, group_table([])
        pooled.levels_ = self.levels_[:1]
        pooled.values_ = self.values_[:1]
        return pooled

    def to_state(self) -> State:
        check_is_fitted(self)
        # the grouping refuses a function, which cannot be stored
        by, columns = (None, []) if self._grouping is None else self._grouping.to_state()
        learned: dict[str, Any] = {"kind": self._base.name} | self._columns_to_state()
        learned["columns"] = columns
        learned["groups"] = [
            [name, int(count), used] for name, count, used in self.groups_.itertuples(index=False)
        ]
        seed = self.random_state if isinstance(self.random_state, int) else None
        params = {
            "by": by,
            "cv": int(self.cv),
            "spread": self.spread,
            "on_discrete": self.on_discrete,
            "support": stored_bounds(self.support),
            "random_state": seed,
        }
        arrays = self._base.to_arrays() | {"map_levels": self.levels_, "map_values": self.values_}
        return State(
            type(self).__name__,
            {"params": params, "learned": learned},
            arrays,
            self._base.to_parts(),
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        learned = state.params["learned"]
        arrays = dict(state.arrays)
        levels = arrays.pop("map_levels")
        values = arrays.pop("map_values")
        base = KINDS[learned["kind"]].from_parts(state.parts, arrays)
        # models stored by earlier releases have constant spread
        model = cls(base.estimator, **{"spread": "constant"} | state.params["params"])
        model.levels_ = levels
        model.values_ = values
        model._set_base(base)
        model._grouping = (
            None if model.by is None else Grouping.from_state(model.by, learned["columns"])
        )
        model.groups_ = group_table((name, count, used) for name, count, used in learned["groups"])
        model._columns_from_state(learned)
        model._freeze()
        return model
