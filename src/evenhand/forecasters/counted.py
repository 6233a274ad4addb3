"""Forecasts of counts around the means of any regressor."""

from __future__ import annotations

from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.base import is_classifier

from evenhand._validate import (
    Floats,
    bad_input,
    check_choice,
    check_count,
    check_outcomes,
    outcomes_checked,
)
from evenhand.distributions import Categorical, OutcomeKind
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import CountBase, Family, Training, check_counts
from evenhand.forecasters.discrete import DiscreteForecaster
from evenhand.forecasters.table_models import TableCounts

N_FOLDS = 5
"""Number of folds by which the dispersion is estimated."""

MOST_VALUES = 1000
"""Most values below a largest count, each of which has a probability for each person."""


class CountRegressor(DiscreteForecaster):
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

    _inner = "estimator"
    _base_kind = CountBase

    def __init__(
        self,
        estimator: Any = None,
        *,
        family: Family = "auto",
        largest: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.family = family
        self.largest = largest
        self.random_state = random_state

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
        family = check_choice("family", self.family, get_args(Family))
        if self.estimator is not None and is_classifier(self.estimator):
            remedy = "use ClassifierForecaster for the probabilities of values"
            got = type(self.estimator).__name__
            raise bad_input("estimator", "be a regressor of means", got, remedy)
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        check_counts(outcomes)
        values = self._values()
        if values is not None and outcomes.max() > values[-1]:
            row = int(np.argmax(outcomes))
            raise bad_input(f"y[{row}]", f"be at most largest={self.largest}", f"{outcomes[row]:g}")
        check_outcomes(outcomes, kind=None)
        random = generator(self.random_state)
        estimator = self.estimator
        if estimator is None:
            estimator = TableCounts(int(random.integers(2**31)))
        given = None if sample_weight is None else weight
        rows = Training(table, outcomes, given, N_FOLDS, random)
        with outcomes_checked():
            base = CountBase.fit(estimator, rows, family)  # type: ignore[arg-type]
        self._set_base(base)
        return self

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        forecast, values = super().forecast(X), self._values()
        if values is None:
            return forecast
        log_mass = forecast.distribution.expand().log_mass(values)
        return Forecast(Categorical(values, special.softmax(log_mass, axis=-1)))

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
        self.dispersion_ = base.dispersion

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.COUNT
