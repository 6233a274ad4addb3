"""Base class of adapters, and the fit and inspection of users' estimators."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from evenhand._validate import Floats, InputError, Ints, bad_input
from evenhand.distributions import Distribution, OutcomeKind, Support
from evenhand.tables import take_rows

# --- fitting and inspection of users' estimators

SpreadKind = Literal["learned", "constant"]
"""Whether the spread of residuals may depend on the features."""

SPREADS = get_args(SpreadKind)

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
    """

    X: Any
    y: Floats
    weight: Floats | None
    cv: int
    random: np.random.Generator
    spread: SpreadKind = "constant"
    predicted_support: Support | None = None

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


def thawed(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator; any other estimator is returned unchanged."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def frozen(estimator: Any) -> Any:
    """Wrap a model, or each model of a list, in a FrozenEstimator; functions are unchanged."""
    if isinstance(estimator, list | tuple):
        return [frozen(member) for member in estimator]
    return FrozenEstimator(thawed(estimator)) if hasattr(estimator, "fit") else estimator


def final_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline; any other estimator is returned unchanged."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def predict_options(estimator: Any) -> tuple[str, ...]:
    """Return the parameter names of `predict`, in a Pipeline those of its last step."""
    predict = getattr(final_step(estimator), "predict", None)
    return () if predict is None else tuple(inspect.signature(predict).parameters)


def allows_missing(estimator: Any) -> bool | None:
    """Whether an estimator's tags allow missing values; None if it has no tags."""
    inner = thawed(estimator)
    return (
        bool(get_tags(inner).input_tags.allow_nan) if hasattr(inner, "__sklearn_tags__") else None
    )


def fitted(estimator: Any, rows: Training) -> Any:
    """Fit a clone of an estimator; a FrozenEstimator is not refitted."""
    if isinstance(estimator, FrozenEstimator) and allows_missing(estimator) is None:
        return estimator  # scikit-learn cannot determine whether it is fitted
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


# --- base class of adapters, which convert the output of a fitted estimator to distributions


class Base(ABC):
    """A fitted estimator together with the conversion of its output to a distribution."""

    name: ClassVar[str]

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @classmethod
    @abstractmethod
    def accepts(cls, estimator: Any) -> bool:
        """Whether the estimator is of this kind."""

    @classmethod
    def accepts_frozen(cls, estimator: Any) -> bool:
        """Whether a fitted estimator from inside a `FrozenEstimator` is of this kind."""
        return cls.accepts(estimator)

    @classmethod
    def accepts_outcomes(cls, y: Floats | None) -> bool:
        """Whether outcomes are of this kind; None if they are not known."""
        return True

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        """Return the kind of outcome that an estimator predicts if it is fitted to `y`.

        None if only a forecast shows it.
        """
        return OutcomeKind.CONTINUOUS

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        """Return the base of a fitted model that determines its distributions without training."""
        name = type(thawed(estimator)).__name__
        rule = "predict distributions"
        remedy = f"fit RecalibratedRegressor({name}(...)), which learns them from training rows"
        raise bad_input("model", rule, f"{name}, which predicts only numbers", remedy)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        """Whether `fit` learns nothing, so that its rows are held out for this model."""
        return isinstance(estimator, FrozenEstimator)

    @classmethod
    @abstractmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        """Fit a clone of the estimator, and everything else that the distribution needs."""

    @abstractmethod
    def distribution(self, X: Any) -> Distribution:
        """Return the predicted distributions of the rows, batch shape (n,)."""

    @property
    def predicts_outcomes(self) -> bool:
        """Whether the estimator was fitted to the outcomes themselves and not to codes of them."""
        return True

    def to_arrays(self) -> dict[str, Floats]:
        """Return the arrays that were learned in addition to the estimator."""
        return {}

    def to_parts(self) -> dict[str, Any]:
        """Return the fitted estimators, by name."""
        # without FrozenEstimator, which only marks a model as fitted: a stored model always is
        return {"estimator": thawed(self.estimator)}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        """Rebuild a base from a fitted estimator and the output of `to_arrays`."""
        return cls(estimator)

    @classmethod
    def from_parts(cls, parts: dict[str, Any], arrays: dict[str, Floats]) -> Self:
        """Rebuild a base from the outputs of `to_parts` and `to_arrays`."""
        return cls.from_arrays(parts["estimator"], arrays)
