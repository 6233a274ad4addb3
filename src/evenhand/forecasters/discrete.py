"""Forecasters of counts, scores, events, and outcomes with an atom."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.base import is_classifier

from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    bad_input,
    check_choice,
    check_count,
    check_outcomes,
    outcomes_checked,
)
from evenhand.distributions import Categorical, Distribution, End, OutcomeKind
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.base import FARTHEST_BOUND, Bounds, Family, Forecaster, thawed
from evenhand.forecasters.conversions import check_counts, is_event
from evenhand.forecasters.kinds import KINDS, Base, WrappingForecaster, has_own_support
from evenhand.forecasters.randomized import RandomizedRegressor
from evenhand.forecasters.survival import SurvivalModel, has_survival_curves
from evenhand.forecasters.table_models import TableClassifier, TableCounts
from evenhand.tables import take_rows, unreported

# --- events and ordered scores by any classifier


@dataclass(eq=False, repr=False)
class ClassifierForecaster(WrappingForecaster):
    """Probabilities of a classifier as the forecast of an event, or of an ordered score.

    Outcomes 0 and 1 (or False and True) are an event; its forecast is one probability, for audits,
    recalibration by group and certificates of event rates. It cannot be randomized with any benefit
    (outcomes: 3). Three to 100 distinct numbers, such as grades or stars, are a score: the forecast
    has a probability for each of them, and `RandomizedRegressor` randomizes it.

    Parameters
    ----------
    classifier : classifier, optional
        Any classifier with `predict_proba`, always cloned. Wrap a fitted one in a
        `FrozenEstimator`, which is not refitted. None is an average of boosted trees and a logistic
        regression, with a share and a number of trees that minimize the log loss of held-out rows;
        it takes tables with text, categories, dates and missing values.
    random_state : int, generator or None
        Seed of the default classifier.

    Attributes
    ----------
    estimator_ : classifier
        Fitted classifier.
    values_ : ndarray of shape (K,)
        Values of the outcome, increasing.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = ClassifierForecaster(pipeline).fit(X[:400], y[:400])
    >>> forecast = model.forecast(X[400:])
    >>> forecast.outcome_kind, forecast.event_probability().shape
    (<OutcomeKind.BINARY: 'binary'>, (169,))
    """

    classifier: Any = None
    _: KW_ONLY
    random_state: RandomState = None

    inner = ("classifier",)

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the classifier unchanged.
        y : array-like of shape (n,)
            Outcomes: 0 and 1, False and True, or 3 to 100 distinct numbers.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for classifiers that take them.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If all outcomes are equal, there are two classes other than 0 and 1, or more than 100.
        """
        rows = self._check_training(X, y, sample_weight)
        check_outcomes(rows.y, kind=None)
        classifier = self.classifier
        if classifier is None:
            classifier = TableClassifier(int(rows.random.integers(2**31)))
        self._fit_base(classifier, rows, "classifier")
        return self

    def _set_base(self, base: Any) -> None:
        super()._set_base(base)
        self.values_ = base.learned["classes"]

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.BINARY if is_event(y) else OutcomeKind.COUNT


# --- counts around the means of any regressor

MOST_VALUES = 1000
"""Most values below a largest count, each of which has a probability for each person."""


@dataclass(eq=False, repr=False)
class CountRegressor(WrappingForecaster):
    """Poisson or negative binomial forecasts of counts around the means of any regressor.

    The dispersion `a` of the negative binomial distributions, of variance `mean + a * mean**2`, is
    estimated by maximum likelihood from means that are predicted by cross-fitting, so that it
    includes the uncertainty of the model. Counts that vary less than a Poisson distribution get one
    that is too wide: `RecalibratedRegressor` around this forecaster makes it narrower.

    Parameters
    ----------
    estimator : regressor, optional
        Any regressor of means, always cloned: `PoissonRegressor`, a
        `HistGradientBoostingRegressor(loss="poisson")`, or a Pipeline. Means of 0 or less are moved
        to a positive bound that is chosen by the likelihood of held-out rows. Wrap a fitted one in
        a `FrozenEstimator`, and pass rows to `fit` that it has not seen. None is an average of
        boosted trees and a log-linear model, both with the Poisson likelihood, with a share and a
        number of trees that minimize the deviance of held-out rows; it takes tables with text,
        categories, dates and missing values.
    family : {"auto", "poisson", "negative-binomial"}, default "auto"
        Family of the distributions. "auto" is negative binomial if a likelihood ratio test at the
        5% level finds overdispersion, and Poisson otherwise.
    largest : int, optional
        Largest count that is possible, such as 20 for a score from 0 to 20. Forecasts are then
        conditional on it, so that no interval ends beyond it, randomized or not.
    random_state : int, generator or None
        Seed of the folds and of the default estimator.

    Attributes
    ----------
    estimator_ : regressor
        Fitted regressor.
    dispersion_ : float
        Excess variance in units of the squared mean; 0 for Poisson distributions.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Cameron & Trivedi, Regression Analysis of Count Data, 2013, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = rng.poisson(np.exp(X[:, 0]) * rng.gamma(2.0, 0.5, size=1000))
    >>> model = CountRegressor(PoissonRegressor(alpha=0), random_state=0).fit(X, y)
    >>> bool(0.3 < model.dispersion_ < 0.7)
    True
    >>> model.forecast(X[:3]).ppf(0.9).shape
    (3,)
    """

    estimator: Any = None
    _: KW_ONLY
    family: Family = "auto"
    largest: int | None = None
    random_state: RandomState = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the regressor, and estimate the dispersion.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the estimator unchanged.
        y : array-like of shape (n,)
            Counts: 0, 1, 2, ...
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the dispersion and for estimators that take them.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If an outcome is negative, not a whole number or larger than `largest`, or all are
            equal.
        """
        check_choice("family", self.family, get_args(Family))
        if self.estimator is not None and is_classifier(self.estimator):
            remedy = "use ClassifierForecaster for the probabilities of values"
            got = type(self.estimator).__name__
            raise bad_input("estimator", "be a regressor of means", got, remedy)
        rows = self._check_training(X, y, sample_weight)
        check_counts(rows.y)
        values = self._values()
        if values is not None and rows.y.max() > values[-1]:
            row = int(np.argmax(rows.y))
            raise bad_input(f"y[{row}]", f"be at most largest={self.largest}", f"{rows.y[row]:g}")
        check_outcomes(rows.y, kind=None)
        estimator = self.estimator
        if estimator is None:
            estimator = TableCounts(int(rows.random.integers(2**31)))
        self._fit_base(estimator, replace(rows, family=self.family), "counts")
        return self

    def _distribution(self, rows: Any) -> Distribution:
        counts, values = super()._distribution(rows), self._values()
        if values is None:
            return counts
        return Categorical(values, special.softmax(counts.expand().log_mass(values), axis=-1))

    def _values(self) -> Floats | None:
        """Return the possible counts; None without a largest one."""
        if self.largest is None:
            return None
        if check_count("largest", self.largest) > MOST_VALUES:
            raise bad_input("largest", f"be at most {MOST_VALUES:,}, or None", self.largest)
        return np.arange(self.largest + 1.0)

    def _set_base(self, base: Any) -> None:
        self._values()
        super()._set_base(base)
        self.dispersion_ = base.learned["dispersion"].item()

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.COUNT


# --- an outcome with an atom at one end of its range, such as money with zeros


@dataclass(eq=False, repr=False)
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
    >>> bool(abs(forecast.cdf(0).mean() - 0.6) < 0.03), float(forecast.cdf(0, left=True).max())
    (True, 0.0)
    """

    classifier: Any = None
    regressor: Any = None
    _: KW_ONLY
    at: float = 0.0
    end: End = "low"
    random_state: RandomState = None

    inner = ("classifier", "regressor")
    learned = Forecaster.learned | {"classifier_": Any, "regressor_": Any}

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
        rows = self._check_training(X, y, sample_weight)
        is_away = self._check_outcomes(rows.y)
        part = rows.take(np.flatnonzero(is_away))
        seeds = [int(seed) for seed in rows.random.integers(2**31, size=2)]
        with outcomes_checked(), unreported():
            self.classifier_ = ClassifierForecaster(self.classifier, random_state=seeds[0])
            self.classifier_.fit(rows.X, is_away.astype(np.float64), rows.weight)
            self.regressor_ = RandomizedRegressor(
                self.regressor, 1.0, support=self._support(part.y), random_state=seeds[1]
            )
            self.regressor_.fit(part.X, part.y, part.weight)
        if self.regressor_.support_ is not None:
            # no outcome of this part is at the bound, so that nothing has to be moved off it
            self.regressor_.support_ = replace(self.regressor_.support_, edge=0.0)
        kind = self.regressor_.base_forecast(take_rows(part.X, [0])).outcome_kind
        if kind is not OutcomeKind.CONTINUOUS:
            rule = "predict continuous distributions of the outcomes away from the atom"
            raise bad_input("regressor", rule, f"forecasts of the kind {str(kind)!r}")
        return self

    def _distribution(self, rows: Any) -> Distribution:
        with unreported():  # unseen values have been reported for all columns
            chance = 1 - self.classifier_.forecast(rows).event_probability()
            part = self.regressor_.base_forecast(rows)
        return Forecast.from_hurdle(chance, part, self.at, self.end).distribution

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

    def _models(self) -> tuple[Any, ...]:
        return self.classifier, self.regressor

    def _set_up(self) -> None:
        super()._set_up()
        # a new fit keeps the fitted models, as that of every loaded model does
        self.classifier, self.regressor = self.classifier_.classifier, self.regressor_.estimator


# --- forecasts of fitted models of other libraries, without training rows


@dataclass(eq=False, repr=False)
class FittedForecaster(Forecaster):
    """Forecasts of a fitted model that determines its distributions by itself.

    Rows are passed to the model unchanged. Use `as_forecaster`.

    Parameters
    ----------
    model : estimator or function
        The fitted model.
    """

    model: Any

    @cached_property
    def _base(self) -> Base:
        return Base.of_fitted(self.model)

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        return Forecast(self._base.distribution(X))

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return KINDS[self._base.kind].outcome_kind_of(self.model, y)


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
    if has_survival_curves(thawed(model)):
        return SurvivalModel(model)
    found = FittedForecaster(thawed(model))
    found._base  # noqa: B018 - raises for a model without a distribution
    return found
