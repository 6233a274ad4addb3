"""Adapter for classifiers, which predict a probability for each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Bernoulli, Categorical, Distribution, OutcomeKind
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import (
    USE_A_FUNCTION,
    Training,
    final_step,
    fitted,
    thawed,
)

MOST_CLASSES = 100
"""Largest number of classes; an outcome with more values is a count or continuous."""

SUM_TOLERANCE = 1e-3
"""Largest deviation from 1 of the sum of a row's probabilities, which are divided by it."""


class ClassifierBase(Base):
    """Probabilities of a classifier for an event (classes 0 and 1) or for ordered numbers.

    Parameters
    ----------
    estimator : classifier
        Fitted classifier with `predict_proba`.
    values : ndarray of shape (K,)
        Numbers of the classes, increasing, in the order of the columns of `predict_proba`.
    """

    name: ClassVar[str] = "classifier"

    def __init__(self, estimator: Any, values: Floats) -> None:
        super().__init__(estimator)
        self.values = values

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        # models of distributions have predict_proba as well, but also predict_quantiles (skpro)
        is_known = hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator)
        has_both = hasattr(estimator, "predict_proba") and hasattr(estimator, "predict")
        return is_known or (has_both and not hasattr(final_step(estimator), "predict_quantiles"))

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        if isinstance(estimator, FrozenEstimator):
            return cls.of_fitted(estimator).outcome_kind
        return OutcomeKind.BINARY if is_event(y) else OutcomeKind.COUNT

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        if not hasattr(thawed(estimator), "predict_proba"):
            rule = "predict probabilities (predict_proba)"
            remedy = "wrap the classifier in sklearn.calibration.CalibratedClassifierCV"
            raise bad_input("estimator", rule, type(thawed(estimator)).__name__, remedy)
        if isinstance(estimator, FrozenEstimator):
            return cls.of_fitted(fitted(estimator, rows))
        values = check_classes(rows.y)
        # scikit-learn's classifiers refuse classes that are not whole numbers, such as 3.5 stars
        is_whole = bool((values == np.round(values)).all())
        labels: Any = rows.y.astype(np.int64) if is_whole else np.searchsorted(values, rows.y)
        return cls(fitted(estimator, replace(rows, y=labels)), values)

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        model = thawed(estimator)
        classes = getattr(model, "classes_", None)
        # NGBoost names no classes: they are 0, 1, ...
        values = np.empty(0) if classes is None else numbers_of(classes)
        return cls(estimator, values)

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the classifier predicts."""
        is_binary = self.values.size in (0, 2) and is_event(self.values)
        return OutcomeKind.BINARY if is_binary else OutcomeKind.COUNT

    @property
    def predicts_outcomes(self) -> bool:
        classes = getattr(thawed(self.estimator), "classes_", None)
        # values such as 3.5 stars are fitted as numbers of classes
        return classes is None or np.array_equal(self.values, np.asarray(classes, dtype=float))

    def distribution(self, X: Any) -> Distribution:
        share = self._probabilities(X)
        values = self.values if self.values.size else np.arange(share.shape[1], dtype=np.float64)
        if values.size == 2 and is_event(values):
            return Bernoulli(share[:, 1])
        return Categorical(values, share)

    def _probabilities(self, X: Any) -> Floats:
        """Return the probabilities of the classes, shape (n, K), with sums of exactly 1."""
        model = thawed(self.estimator)
        share = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        n_classes = self.values.size or share.shape[-1]
        if share.shape != (len(X), n_classes):
            rule = f"predict one probability per class, shape {(len(X), n_classes)}"
            got = f"shape {share.shape} from {type(model).__name__}"
            raise bad_input("estimator", rule, got, USE_A_FUNCTION)
        total = share.sum(axis=1, keepdims=True)
        if not ((share >= 0).all() and (np.abs(total - 1) <= SUM_TOLERANCE).all()):
            raise InputError(
                f"estimator {type(model).__name__} predicts probabilities that are negative, not"
                f" finite or do not add up to 1; {USE_A_FUNCTION}"
            )
        return np.asarray(share / total)

    def to_arrays(self) -> dict[str, Floats]:
        return {"classes": self.values}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, arrays["classes"])


def is_event(y: Floats) -> bool:
    """Whether all values are 0 or 1."""
    return bool(np.isin(y, (0.0, 1.0)).all())


def check_classes(y: Floats) -> Floats:
    """Return the distinct values of outcomes to classify: 0 and 1, or 3 to 100 numbers."""
    values = np.unique(y)
    if values.size == 2 and not is_event(values):
        got = f"{values[0]:g} and {values[1]:g}"
        raise bad_input("y", "be 0 or 1 if there are two classes", got, "code the event as 1")
    if values.size > MOST_CLASSES:
        rule = f"have at most {MOST_CLASSES} distinct values for a classifier"
        remedy = "use CountRegressor for counts, or a regressor for continuous outcomes"
        raise bad_input("y", rule, str(values.size), remedy)
    return values


def numbers_of(classes: ArrayLike) -> Floats:
    """Return the classes of a fitted classifier as increasing numbers."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        raise bad_input(
            "estimator",
            "have classes that are numbers in one column",
            f"classes_ {np.ravel(labels).tolist()[:5]}",
            "fit it to 0 and 1, or to ordered numbers",
        )
    values = labels.astype(np.float64)
    return check_classes(values)
