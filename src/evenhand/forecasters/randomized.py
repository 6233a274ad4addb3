"""Randomized forecasts of any model: a link perturbs the model's forecasts with a draw."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import Floats, check_choice, check_count
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters.base import (
    SPREADS,
    Bounds,
    Forecaster,
    SpreadKind,
    point_forecast,
    thawed,
)
from evenhand.forecasters.kinds import (
    Base,
    WrappingForecaster,
    check_after_fit,
    check_before_fit,
    refuse_binary,
)
from evenhand.forecasters.network import MixtureMLPRegressor
from evenhand.forecasters.recalibrated import RecalibratedRegressor
from evenhand.links import Link, make_link


@dataclass(eq=False, repr=False)
class RandomizedRegressor(WrappingForecaster):
    """A randomized forecaster `H(G_x(y); r)` that wraps any deterministic model `G`.

    The model is fitted as usual. The link then perturbs its forecasts with a draw, so that they are
    calibrated for every group, named or not, up to the error of the link; `alpha` controls the
    amount of randomization. Forecasts of counts and ordered scores are randomized on their lattice,
    and those of an outcome with an atom (`HurdleRegressor`) away from the atom only. Forecasts of
    0/1 outcomes are refused, as randomization has nothing to offer there.

    Parameters
    ----------
    estimator : estimator, function or list, optional
        Deterministic model, always cloned. Wrap a fitted model in a `FrozenEstimator`, which is not
        refitted: pass rows to `fit` that it has not seen. None is `MixtureMLPRegressor()`. The
        first of these features that the model (or the last step of a `Pipeline`) has determines how
        it predicts a distribution:

        - `forecast`: a forecaster of this package;
        - `predict_survival_function` (lifelines, scikit-survival): survival curves, as in
          `evenhand.forecasters.SurvivalModel`; fitted models only;
        - a list of models that predict normal distributions or mixtures of them: their mixture,
          with equal weights. A `BaggingRegressor` or `VotingRegressor` of models whose `predict`
          takes `return_std` is treated alike;
        - a function from rows to a deterministic `Forecast`, a `Distribution`, or means and
          standard deviations;
        - `predict_proba` of a classifier that is fitted to 3 to 100 distinct numbers;
        - `pred_dist` (NGBoost), or `predict_proba` with `predict_quantiles` (skpro): normal
          and discrete distributions exactly, others by 161 quantiles, which changes PITs by less
          than 0.0005;
        - the Poisson loss, if all outcomes are whole numbers of at least 0: Poisson or negative
          binomial distributions, as in `CountRegressor`;
        - quantiles: a model for a single level, which is fitted at 13 levels from 0.02 to 0.98 (its
          `quantile` is a number; or its `loss`, `objective` or `strategy` is "quantile" and its
          level is `quantile` or `alpha`); a model that predicts one column for each of its
          `levels`, `quantiles` or `quantile_alpha`; or a model whose `predict` takes `quantiles`.
          Crossing quantiles are sorted and slightly separated; the CDF is linear between quantiles
          and has exponential tails;
        - `predict` with `return_std`, such as a Gaussian process: normal distributions;
        - `predict` only: the prediction plus the distribution of its residuals, estimated by
          cross-fitting, with a spread that may depend on the features (see `spread`). This includes
          gradient boosting with squared error, random forests and a fitted model for a single
          quantile.
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1; at 1 the model's forecasts are not randomized.
    link : {"entropic", "laplace", "gaussian"} or Link, default "entropic"
        Family of links. `link` and `alpha` may be changed after fitting, as the model does not
        depend on them.
    recalibrate : bool, default False
        Whether the model is first recalibrated by `RecalibratedRegressor`, with PITs computed by
        cross-fitting, or with all rows passed to `fit` for a model in a `FrozenEstimator`. Certify
        on other rows.
    cv : int, default 5
        Number of folds for the residuals of a plain regressor, and for `recalibrate`.
    spread : {"learned", "constant"}, default "learned"
        Spread of the residuals of a plain regressor. If learned, boosted trees are
        fitted to the sizes of held-out residuals; the spread is constant if their held-out CRPS is
        not better than that by one standard error, or with fewer than 100 rows. A plain regressor
        is fitted `cv + 1` times for its residuals. No other model has a spread to be learned. Folds
        are random: where rows are repeated, or several belong to one person, intervals for others
        are too short, above all with a learned spread.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome, None on a side without bound: `(0, None)` for money or
        durations. The estimator is fitted to outcomes that a smooth increasing map takes to the
        real line, and its forecasts are mapped back; `estimator_.predict` then predicts mapped
        outcomes. Models in a `FrozenEstimator` predict outcomes in their own units. Predictions of
        a plain regressor are mapped to the line, where their residuals are estimated. Predictions
        beyond a bound, or too near to it, are moved inside: to a distance that 0 to 20% of the
        outcomes are within, the share with the smallest residuals. Distributions that are predicted
        by a function or by another model in a `FrozenEstimator` are truncated to the support, and
        are calibrated on average only with `recalibrate`.
    random_state : int, generator or None
        Seed of the folds and of the default estimator.

    Attributes
    ----------
    estimator_ : estimator, function or list
        Fitted model; with `recalibrate`, the `RecalibratedRegressor` that wraps it.
    spread_ : SpreadTrees or None
        Fitted model of the logarithm of the spread; None if the spread is constant, and with
        `recalibrate`, where `estimator_` has it.
    support_ : Support or None
        Map of outcomes to the line; None without `support`, and with `recalibrate`, where
        `estimator_` has it.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(n_estimators=30, random_state=0)
    >>> model = RandomizedRegressor(forest, alpha=0.1, random_state=0).fit(X[:300], y[:300])
    >>> forecast = model.forecast(X[300:], random_state=1)
    >>> low, high = forecast.interval(0.8)
    >>> low.shape
    (142,)

    No prediction interval of a duration ends below 0:

    >>> minutes = np.random.default_rng(0).gamma(2.0, 10.0, size=442)
    >>> model = RandomizedRegressor(forest, support=(0, None), random_state=0).fit(X, minutes)
    >>> low, high = model.forecast(X, random_state=1).interval(0.98)
    >>> bool(low.min() > 0)
    True

    Recalibrate a model whose standard deviation is too large by a factor of two before randomizing:

    >>> from evenhand.calibration import calibration_error
    >>> rows, y = np.zeros((2000, 1)), np.random.default_rng(0).normal(size=2000)
    >>> too_wide = lambda X: (np.zeros(len(X)), np.full(len(X), 2.0))
    >>> model = RandomizedRegressor(too_wide, recalibrate=True)
    >>> fresh = np.random.default_rng(1).normal(size=2000)
    >>> bool(calibration_error(model.fit(rows, y).base_forecast(rows).pit(fresh)) < 0.03)
    True
    """

    estimator: Any = None
    alpha: float = 0.1
    link: str | Link = "entropic"
    _: KW_ONLY
    recalibrate: bool = False
    cv: int = 5
    spread: SpreadKind = "learned"
    support: Bounds = None
    random_state: RandomState = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model and, if it predicts only numbers, the distribution of its residuals.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the estimator unchanged.
        y : array-like of shape (n,)
            Outcomes of the kind that the model predicts: continuous outcomes, counts, scores, or
            amounts with an atom.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for estimators that take them; a Pipeline passes them to its last
            step.

        Returns
        -------
        self
        """
        # bad parameters fail before anything is fitted
        make_link(self.link, self.alpha)
        cv = check_count("cv", self.cv, least=2)
        check_choice("spread", self.spread, SPREADS)
        rows = self._check_training(X, y, sample_weight)
        rows, random = replace(rows, cv=cv, spread=self.spread), rows.random
        estimator = self.estimator
        if estimator is None:
            seed = int(random.integers(2**31)) if self.random_state is not None else None
            estimator = MixtureMLPRegressor(random_state=seed)
        kind = check_before_fit(estimator, rows.y, self.support)
        refuse_binary(kind)
        # the link is applied to recalibrated forecasts, as randomization is the outermost step
        if self.recalibrate:
            seed = int(random.integers(2**31)) if self.random_state is not None else None
            estimator = RecalibratedRegressor(
                estimator,
                cv=cv,
                spread=self.spread,
                support=self.support,
                random_state=seed,
            )
            self.support_ = None
            self._fit_base(estimator, rows)
        else:
            self._fit_on_support(estimator, rows)
        refuse_binary(check_after_fit(self._base, rows.X, rows.y, self.support, kind))
        return self

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        # of a table with forecasts in columns, only these are read
        if isinstance(self.estimator, ForecastColumns) and hasattr(X, "columns"):
            X = X[self.estimator.columns(map(str, X.columns), "X")]
        return super()._check_rows(X, reset=reset)

    @classmethod
    def around(cls, fitted: RecalibratedRegressor, **params: Any) -> Self:
        """Randomize a fitted `RecalibratedRegressor` without refitting it.

        Parameters
        ----------
        fitted : RecalibratedRegressor
            Fitted model with its maps.
        **params
            Constructor parameters other than `estimator`, `spread` and `support`, which are those
            of `fitted`. With `recalibrate=True` the recalibrated forecasts are randomized,
            otherwise the forecasts of the inner model.

        Returns
        -------
        RandomizedRegressor
            Fitted forecaster that shares the model with `fitted`.
        """
        check_is_fitted(fitted)
        model = cls(fitted.estimator, spread=fitted.spread, support=fitted.support, **params)
        make_link(model.link, model.alpha)
        model._set_base(Base("forecaster", fitted) if model.recalibrate else fitted._base)
        # both read the same training table
        columns = (name for name in Forecaster.learned if hasattr(fitted, name))
        model.__dict__.update({name: getattr(fitted, name) for name in columns})
        if model.recalibrate:  # recalibrated forecasts are on the support already
            model.support_ = None
        return model

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        return self.base_forecast(X).randomized(self.alpha, self.link, r, random_state=random_state)

    def forecast_and_predict(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> tuple[Forecast, Floats]:
        base = self.base_forecast(X)
        forecast = base.randomized(self.alpha, self.link, r, random_state=random_state)
        return forecast, point_forecast(base)

    def _stored_params(self) -> dict[str, Any]:
        # a link is stored by name and alpha, which may have changed since the fit
        link = make_link(self.link, self.alpha)
        return super()._stored_params() | {"alpha": link.alpha, "link": link.name}

    def _set_up(self) -> None:
        make_link(self.link, self.alpha)
        super()._set_up()
        if self.recalibrate:
            # a new fit must recalibrate the inner model, not recalibrate twice
            self.estimator = thawed(self.estimator_).estimator
