"""Forecasts of events and ordered scores by any classifier."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from evenhand._validate import Floats, check_outcomes, outcomes_checked
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator
from evenhand.forecasters.adapters import ClassifierBase, Training, is_event
from evenhand.forecasters.discrete import DiscreteForecaster
from evenhand.forecasters.table_models import TableClassifier


class ClassifierForecaster(DiscreteForecaster):
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

    _inner = "classifier"
    _base_kind = ClassifierBase

    def __init__(self, classifier: Any = None, *, random_state: RandomState = None) -> None:
        self.classifier = classifier
        self.random_state = random_state

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
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        check_outcomes(outcomes, kind=None)
        random = generator(self.random_state)
        classifier = self.classifier
        if classifier is None:
            classifier = TableClassifier(int(random.integers(2**31)))
        given = None if sample_weight is None else weight
        with outcomes_checked():
            base = ClassifierBase.fit(classifier, Training(table, outcomes, given, 5, random))
        self._set_base(base)
        return self

    def _set_base(self, base: Any) -> None:
        super()._set_base(base)
        self.values_ = base.values

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.BINARY if is_event(y) else OutcomeKind.COUNT
