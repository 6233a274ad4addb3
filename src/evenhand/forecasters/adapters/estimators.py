"""Fit and inspection of estimators of other libraries, and the rows on which they are fitted."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from evenhand._validate import Floats, InputError, Ints, bad_input
from evenhand.distributions import Support
from evenhand.forecasters.base import allows_missing, thawed
from evenhand.tables import take_rows

SpreadKind = Literal["learned", "constant"]
"""Whether the spread of residuals may depend on the features."""

SPREADS = get_args(SpreadKind)

Family = Literal["auto", "poisson", "negative-binomial"]
"""Family of the distributions of counts."""

USE_A_FUNCTION = "pass a function from rows to a Forecast instead"
"""Remedy for models whose output cannot be used."""


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows of an estimator.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n, n_features)
        Features, passed to the estimator unchanged.
    y : ndarray of shape (n,)
        Outcomes.
    weight : ndarray of shape (n,), or None
        Weights of the rows; None for estimators that do not accept weights.
    cv : int
        Number of folds for cross-fitting.
    random : Generator
        Source of the folds.
    spread : {"learned", "constant"}, default "constant"
        Whether the spread of a plain regressor's residuals may depend on the features.
    predicted_support : Support, optional
        Map from predictions of a fitted plain regressor, in units of the outcome, to the line on
        which `y` is. None for all other estimators.
    family : {"auto", "poisson", "negative-binomial"}, default "auto"
        Family of the distributions of counts.
    """

    X: Any
    y: Floats
    weight: Floats | None
    cv: int
    random: np.random.Generator
    spread: SpreadKind = "constant"
    predicted_support: Support | None = None
    family: Family = "auto"

    def check_folds(self) -> None:
        """Raise InputError if a fold has fewer than two rows."""
        if self.y.size < 2 * self.cv:
            rule = f"have at least {2 * self.cv} rows for cv={self.cv}"
            raise bad_input("X", rule, f"n_samples = {self.y.size}")

    @property
    def weights(self) -> Floats:
        """Weights of the rows, 1 if there are none."""
        return np.ones(self.y.size) if self.weight is None else self.weight

    def folds(self) -> Iterator[tuple[Training, Ints]]:
        """Yield the training rows without each fold, and the row numbers of the fold."""
        folds = KFold(self.cv, shuffle=True, random_state=int(self.random.integers(2**31)))
        for _, held_out in folds.split(np.empty((self.y.size, 1))):
            yield self.without(held_out), held_out

    def without(self, held_out: Ints) -> Training:
        """Return the training rows without those of a fold."""
        learn = np.delete(np.arange(self.y.size), held_out)
        weight = None if self.weight is None else self.weight[learn]
        # nested folds need two rows each as well
        cv = max(2, min(self.cv, learn.size // 2))
        return replace(self, X=take_rows(self.X, learn), y=self.y[learn], weight=weight, cv=cv)


def frozen(estimator: Any) -> Any:
    """Wrap a model, or each model of a list, in a FrozenEstimator.

    Functions and other models without `fit` are unchanged.
    """
    if isinstance(estimator, list | tuple):
        return [frozen(member) for member in estimator]
    return FrozenEstimator(thawed(estimator)) if hasattr(estimator, "fit") else estimator


def is_fitted(estimator: Any) -> bool:
    """Whether a model is used as it is: in a FrozenEstimator, or without `fit`."""
    return isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "fit")


def final_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline; any other estimator is returned unchanged."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def predict_options(estimator: Any) -> tuple[str, ...]:
    """Return the parameter names of `predict`, in a Pipeline those of its last step."""
    predict = getattr(final_step(estimator), "predict", None)
    return () if predict is None else tuple(inspect.signature(predict).parameters)


def fitted(estimator: Any, rows: Training) -> Any:
    """Fit a clone of an estimator; a fitted one is not refitted."""
    # scikit-learn cannot determine whether a model without tags is fitted
    if is_fitted(estimator) and (
        not hasattr(estimator, "fit") or allows_missing(estimator) is None
    ):
        return estimator
    copy = clone(estimator)
    if rows.weight is None or isinstance(estimator, FrozenEstimator):
        return copy.fit(rows.X, rows.y)
    option = _weight_option(copy)
    # otherwise the weights would silently be ignored
    if option is None:
        name = type(final_step(copy)).__name__
        raise InputError(f"sample_weight is not supported by {name}.fit; fit without weights")
    return copy.fit(rows.X, rows.y, **{option: rows.weight})


def _weight_option(estimator: Any) -> str | None:
    """Return the parameter of `fit` for weights, in a Pipeline that of its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = _weight_option(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def predictions(model: Any, X: Any) -> Floats:
    """Return what a fitted regressor predicts, shape (n,); refuse values that are not finite."""
    values = np.ravel(np.asarray(model.predict(X), dtype=np.float64))
    if values.size != len(X) or not np.isfinite(values).all():
        raise InputError(
            f"estimator {type(thawed(model)).__name__} predicts values that are not finite; check"
            " its predictions for NaN"
        )
    return values


def cross_fitted(estimator: Any, rows: Training) -> tuple[Floats, list[Ints]]:
    """Return the prediction of each row by a model fitted without its fold, and the folds."""
    predicted = np.empty(rows.y.size)
    folds: list[Ints] = []
    for learn, held_out in rows.folds():
        predicted[held_out] = predictions(fitted(estimator, learn), take_rows(rows.X, held_out))
        folds.append(held_out)
    return predicted, folds
