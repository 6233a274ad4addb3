"""Base class of adapters, which convert the output of a fitted estimator to distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, bad_input
from evenhand.distributions import Distribution, OutcomeKind
from evenhand.forecasters.adapters.estimators import Training, thawed


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
