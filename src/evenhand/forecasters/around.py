"""Forecasters around any model: randomized ones, those of outcomes with atoms, and defaults."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import RegressorMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    bad_input,
    check_choice,
    check_count,
    check_outcomes,
    outcomes_checked,
    refuse_entry,
)
from evenhand.distributions import Categorical, Distribution, End, OutcomeKind
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters.adapters import (
    Base,
    StoredWithEncoder,
    WrappingForecaster,
    has_own_support,
    on_grids,
    refuse_binary,
)
from evenhand.forecasters.base import (
    FARTHEST_BOUND,
    Bounds,
    Family,
    Forecaster,
    SpreadKind,
    point_forecast,
    thawed,
)
from evenhand.forecasters.boosted import fitted_parameters
from evenhand.forecasters.conversions import (
    SurvivalModel,
    check_counts,
    has_survival_curves,
    is_event,
)
from evenhand.forecasters.networks import MixtureMLPRegressor
from evenhand.forecasters.recalibrated import RecalibratedRegressor
from evenhand.links import Link, make_link
from evenhand.tables import TableEncoder, take_rows, unreported

# --- default models for tables of any kind

N_FOLDS = 5
"""Number of folds for the choice between the models."""

STAGES = (5, 10, 20, 30, 45, 60, 80, 100, 140, 200, 280, 400)
"""Numbers of trees that are compared, in this order until the held-out loss grows twice."""

SHARES = (0.0, 0.5, 1.0)
"""Shares of the trees in the average of both models that are compared."""

LEAST_ROWS = 5
"""Number of rows of an event, or of positive counts, below which predictions are constant."""

LEAST_PROBABILITY = 1e-9
"""Lower bound on probabilities in held-out losses: a rare class may be absent from a fold."""


@dataclass(eq=False, repr=False)
class TableModel(StoredWithEncoder):
    """Average of boosted trees and a linear model, with a share chosen by the held-out loss.

    Trees are grown by scikit-learn's histogram gradient boosting, with the number of trees that has
    the smallest held-out loss. The linear model has the same likelihood, a ridge penalty of one
    half of the squared coefficients, and standardized features. The share of the trees is 0, 1/2
    or 1. Text, categories, dates and missing values are encoded by `TableEncoder`. Methods are
    those for means, which subclasses for other likelihoods replace.

    Parameters
    ----------
    random_state : int, default 0
        Seed of the folds, and of the bins of large tables.

    Attributes
    ----------
    columns_ : dict
        State of the `TableEncoder`.
    share_ : float
        Share of the trees.
    trees_, linear_ : estimator or None
        Fitted models; None if the share leaves them out. With too few rows the linear model is a
        constant.
    """

    random_state: int = 0

    _trees: ClassVar[Callable[..., Any]]
    """Unfitted trees, from their settings."""

    _constant: ClassVar[Any]
    """Model without features, where there are too few rows."""

    def _linear(self, n_samples: int) -> Any:
        """Return an unfitted linear model."""
        return Ridge()

    def _strata(self, target: NDArray[Any]) -> Any:
        """Return what folds are stratified by, equal values for no strata; None for few rows."""
        return None if target.size < 2 * N_FOLDS else np.zeros(target.size)

    def _output(self, model: Any, rows: Floats) -> Floats:
        """Return the predictions of a fitted model."""
        return model.predict(rows)

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        """Return the loss of each row."""
        return (target - predicted) ** 2

    def _learn(self, X: Any, target: NDArray[Any], sample_weight: Floats | None) -> Self:
        encoder = TableEncoder()
        rows = encoder.fit_transform(X)
        self._set_encoder(encoder)
        # of mean 1; None if all are equal
        given = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        weight = None if np.ptp(given) == 0 else given / given.mean()
        # scikit-learn's weighted quantiles of many distinct values take a second per fit
        splits = rows if weight is None else on_grids(rows)
        self.trees_, self.linear_, self.share_ = None, None, 0.0
        strata = self._strata(target)
        if strata is None:
            self.linear_ = clone(self._constant).fit(rows, target, weight)
            return self
        kind = KFold if (strata == strata[0]).all() else StratifiedKFold
        drawn = kind(N_FOLDS, shuffle=True, random_state=self.random_state)

        def held_out(models: Sequence[Any], features: Floats) -> Floats:
            """Fit a model without each fold; return their predictions for the folds."""
            outputs = []
            for model, (learn, out) in zip(models, folds, strict=True):
                model.fit(features[learn], target[learn], take_rows(weight, learn))
                outputs.append(self._output(model, features[out]))
            return np.concatenate(outputs)[np.argsort(np.concatenate([out for _, out in folds]))]

        def loss(predicted: Floats) -> float:
            return np.average(self._loss(target, predicted), weights=weight)

        with warnings.catch_warnings():
            # a class with few rows is absent from some folds, and a lack of convergence shows in
            # the held-out loss
            warnings.simplefilter("ignore")
            folds = list(drawn.split(rows, strata))
            linear = held_out([self._linear(learn.size) for learn, _ in folds], rows)
            models = [self._unfitted(learn.size, warm_start=True) for learn, _ in folds]
            trees: list[Floats] = []
            losses: list[float] = []
            # until the loss is larger twice than the smallest one before
            for stage in STAGES:
                for model in models:
                    model.set_params(max_iter=stage)
                trees.append(held_out(models, splits))
                losses.append(loss(trees[-1]))
                best = np.argmin(losses)
                if best == len(losses) - 3:
                    break
            shared = [loss(share * trees[best] + (1 - share) * linear) for share in SHARES]
            self.share_ = SHARES[np.argmin(shared)]
            # a model without a share of the average is not fitted
            if self.share_ < 1:
                self.linear_ = self._linear(len(target)).fit(rows, target, weight)
            if self.share_ > 0:
                grown = self._unfitted(len(target), max_iter=STAGES[best])
                self.trees_ = grown.fit(splits, target, weight)
        return self

    def _mixed(self, X: Any) -> Floats:
        """Return the predictions of new rows."""
        assert self._encoder is not None
        rows = self._encoder.transform(X)
        parts = (self.share_, self.trees_), (1 - self.share_, self.linear_)
        outputs = [share * self._output(model, rows) for share, model in parts if model is not None]
        return np.sum(outputs, axis=0)

    def _unfitted(self, n_samples: int, **settings: Any) -> Any:
        """Return trees with settings that suit a number of rows."""
        fitted = fitted_parameters(n_samples, 1)
        return self._trees(
            learning_rate=0.1,
            max_leaf_nodes=fitted["num_leaves"],
            min_samples_leaf=fitted["min_child_samples"],
            l2_regularization=1.0,
            early_stopping=False,
            random_state=self.random_state,
            **settings,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TableClassifier(TableModel):
    """Probabilities of classes for tables of any kind; see `TableModel`."""

    _trees = HistGradientBoostingClassifier
    _constant = DummyClassifier(strategy="prior")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to classes `y`, shape (n,)."""
        self.classes_, target = np.unique(y, return_inverse=True)
        return self._learn(X, target, sample_weight)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, n_classes)."""
        return self._mixed(X)

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _linear(self, n_samples: int) -> Any:
        return LogisticRegression(max_iter=300)

    def _strata(self, target: NDArray[Any]) -> Any:
        return target if (np.bincount(target) >= LEAST_ROWS).sum() > 1 else None

    def _output(self, model: Any, rows: Floats) -> Floats:
        predicted = np.zeros((len(rows), self.classes_.size))
        predicted[:, model.classes_.astype(int)] = model.predict_proba(rows)
        return predicted

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        return -np.log(np.maximum(predicted[np.arange(len(target)), target], LEAST_PROBABILITY))


class TableMeans(RegressorMixin, TableModel):  # type: ignore[misc]
    """Means of continuous outcomes for tables of any kind; see `TableModel`."""

    _trees = HistGradientBoostingRegressor
    _constant = DummyRegressor()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to outcomes `y`, shape (n,)."""
        return self._learn(X, np.asarray(y, dtype=float), sample_weight)

    def predict(self, X: Any) -> Floats:
        """Return the mean of each row, shape (n,)."""
        return self._mixed(X)


class TableCounts(TableMeans):
    """Means of counts for tables of any kind; see `TableModel`."""

    _trees = staticmethod(partial(HistGradientBoostingRegressor, loss="poisson"))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to counts `y`, shape (n,)."""
        self.most_ = float(np.max(y))
        return super().fit(X, y, sample_weight)

    def _linear(self, n_samples: int) -> Any:
        # the penalty of LogisticRegression with C=1; its loss is a sum, this one a mean
        return PoissonRegressor(alpha=1 / n_samples, solver="newton-cholesky", max_iter=100)

    def _strata(self, target: NDArray[Any]) -> Any:
        is_positive, plain = target > 0, super()._strata(target)
        # each fold needs positive counts
        if plain is None or is_positive.sum() < LEAST_ROWS:
            return None
        return is_positive if (~is_positive).sum() >= LEAST_ROWS else plain

    def _output(self, model: Any, rows: Floats) -> Floats:
        # a log-linear model grows without limit far from the training rows
        return np.minimum(super()._output(model, rows), self.most_)

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        mean = np.maximum(predicted, LEAST_PROBABILITY)
        return mean - target * np.log(mean)


# model folders store the classes under this module name, independent of their file
for _class in (TableClassifier, TableCounts, TableMeans):
    _class.__module__ = "evenhand.forecasters"


# --- randomized forecasts


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
          with equal weights;
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
        rows = self._check_training(X, y, sample_weight)
        estimator = self.estimator
        if estimator is None:
            seed = None if self.random_state is None else rows.seed()
            estimator = MixtureMLPRegressor(random_state=seed)
        with self._kind_checked(estimator, rows.y) as kind:
            refuse_binary(kind)
            # the link is applied to recalibrated forecasts, as randomization is the outermost step
            if self.recalibrate:
                estimator = RecalibratedRegressor(
                    estimator,
                    cv=self.cv,
                    spread=self.spread,
                    support=self.support,
                    random_state=rows.seed(),
                )
                self.support_ = None
                self._fit_base(estimator, rows)
            else:
                self._fit_on_support(estimator, rows)
        refuse_binary(self._base.outcome_kind)
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

    def forecast_and_predict(self, X: Any, r: ArrayLike | None) -> tuple[Forecast, Floats]:
        base = self.base_forecast(X)
        return base.randomized(self.alpha, self.link, r), point_forecast(base)

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
            classifier = TableClassifier(rows.seed())
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

    kind = OutcomeKind.COUNT

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
        if self.estimator is not None and is_classifier(self.estimator):
            remedy = "use ClassifierForecaster for the probabilities of values"
            got = type(self.estimator).__name__
            raise bad_input("estimator", "be a regressor of means", got, remedy)
        rows = self._check_training(X, y, sample_weight)
        check_counts(rows.y)
        values = self._values()
        if values is not None:
            refuse_entry("y", rows.y, rows.y > values[-1], f"be at most largest={self.largest}")
        check_outcomes(rows.y, kind=None)
        estimator = self.estimator
        if estimator is None:
            estimator = TableCounts(rows.seed())
        self._fit_base(estimator, rows, "counts")
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

    kind = OutcomeKind.HURDLE
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
        with outcomes_checked(), unreported():
            self.classifier_ = ClassifierForecaster(self.classifier, random_state=rows.seed())
            self.classifier_.fit(rows.X, is_away.astype(float), rows.weight)
            self.regressor_ = RandomizedRegressor(
                self.regressor, 1.0, support=self._support(part.y), random_state=rows.seed()
            )
            self.regressor_.fit(part.X, part.y, part.weight)
        if self.regressor_.support_ is not None:
            # no outcome of this part is at the bound, so that nothing has to be moved off it
            self.regressor_.support_ = replace(self.regressor_.support_, edge=0.0)
        kind = self.regressor_._base.outcome_kind
        if kind is not OutcomeKind.CONTINUOUS:
            rule = "predict continuous distributions of the outcomes away from the atom"
            raise bad_input("regressor", rule, f"forecasts of the kind {str(kind)!r}")
        return self

    def _distribution(self, rows: Any) -> Distribution:
        with unreported():  # unseen values have been reported for all columns
            chance = 1 - self.classifier_.forecast(rows).event_probability()
            part = self.regressor_.base_forecast(rows)
        return Forecast.from_hurdle(chance, part, self.at, self.end).distribution

    def _check_outcomes(self, y: Floats) -> Any:
        """Check the outcomes on both sides; return which are away from the atom."""
        at = float(self.at)
        beyond, side = (y < at, "at least") if self.end == "low" else (y > at, "at most")
        rule, remedy = (
            f"be {side} at={at:g} with end={self.end!r}",
            "set at and end to those of the atom",
        )
        refuse_entry("y", y, beyond, rule, remedy)
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

    def _set_up(self) -> None:
        super()._set_up()
        # a new fit keeps the fitted models, as that of every loaded model does
        self.classifier, self.regressor = self.classifier_.classifier, self.regressor_.estimator


# --- forecasts of fitted models of other libraries, without training rows


class FittedForecaster(WrappingForecaster):
    """Forecasts of a fitted model that determines its distributions by itself.

    Rows are passed to the model unchanged. Use `as_forecaster`.
    """

    inner = ("model",)

    def __init__(self, model: Any) -> None:
        self.model, self._base = model, Base.of_fitted(model)

    def _check_new_rows(self, X: Any) -> Any:
        return X


def as_forecaster(model: Any) -> Any:
    """Return a forecaster for a fitted model; a forecaster is returned unchanged.

    The model must predict distributions: a classifier with `predict_proba` (of classes 0 and 1, or
    of ordered numbers), a regressor with the Poisson loss (Poisson distributions), a survival model
    of lifelines or scikit-survival, a model of skpro or NGBoost, one that predicts several
    quantiles, one whose `predict` takes `return_std` or a list of these, or a function from rows to
    a `Forecast`. Raises InputError for one that predicts only numbers: its distribution must be
    learned from training rows, by `RecalibratedRegressor` or `CountRegressor`.
    """
    if hasattr(model, "forecast"):
        return model
    if has_survival_curves(thawed(model)):
        return SurvivalModel(model)
    return FittedForecaster(thawed(model))
