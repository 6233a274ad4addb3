"""Fitting and inspection of the estimators that people bring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from evenhand._validate import Floats, Ints, bad_input
from evenhand.tables import take_rows

USE_A_FUNCTION = "give a function from rows to a Forecast instead"
"""Remedy for models whose output does not fit."""


@dataclass(frozen=True, eq=False)
class Training:
    """Rows that an estimator is fitted on, as people bring them.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n, n_features)
        Features, passed to the estimator as they are.
    y : ndarray of shape (n,)
        Outcomes.
    weight : ndarray of shape (n,), or None
        Weights of the rows; None for estimators that take none.
    cv : int
        Folds of what is cross-fitted.
    random : Generator
        Of the folds.
    """

    X: Any
    y: Floats
    weight: Floats | None
    cv: int
    random: np.random.Generator

    def folds(self) -> Iterator[tuple[Training, Ints]]:
        """Yield the rows without each fold, and the numbers of those in it."""
        folds = KFold(self.cv, shuffle=True, random_state=int(self.random.integers(2**31)))
        for learn, hold in folds.split(np.empty((self.y.size, 1))):
            weight = None if self.weight is None else self.weight[learn]
            # folds within a fold need two rows each, too
            cv = max(2, min(self.cv, learn.size // 2))
            X = take_rows(self.X, learn)
            yield replace(self, X=X, y=self.y[learn], weight=weight, cv=cv), hold


def thawed(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator; any other estimator is returned as it is."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def frozen(estimator: Any) -> Any:
    """Return a model in a FrozenEstimator, each of several in one of its own.

    A function is returned as it is.
    """
    if isinstance(estimator, list | tuple):
        return [frozen(member) for member in estimator]
    return FrozenEstimator(thawed(estimator)) if hasattr(estimator, "fit") else estimator


def final_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline; any other estimator is returned as it is."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def predict_options(estimator: Any) -> tuple[str, ...]:
    """Names of the parameters of `predict`, of the last step in a Pipeline."""
    predict = getattr(final_step(estimator), "predict", None)
    return () if predict is None else tuple(inspect.signature(predict).parameters)


def allows_missing(estimator: Any) -> bool | None:
    """Whether an estimator's tags allow missing values; None if it has no tags."""
    inner = thawed(estimator)
    return (
        bool(get_tags(inner).input_tags.allow_nan) if hasattr(inner, "__sklearn_tags__") else None
    )


def fitted(estimator: Any, rows: Training) -> Any:
    """Fit a clone. A FrozenEstimator is its own clone and stays as it is."""
    if isinstance(estimator, FrozenEstimator) and allows_missing(estimator) is None:
        return estimator  # scikit-learn cannot see whether it is fitted
    copy = clone(estimator)
    if rows.weight is None or isinstance(estimator, FrozenEstimator):
        return copy.fit(rows.X, rows.y)
    # weights that a model ignores would be left out in silence
    if not has_fit_parameter(copy, "sample_weight"):
        raise bad_input(
            "sample_weight", f"be left out: {type(copy).__name__}.fit does not take it", "weights"
        )
    return copy.fit(rows.X, rows.y, sample_weight=rows.weight)
