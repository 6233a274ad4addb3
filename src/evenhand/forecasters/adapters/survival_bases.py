"""Adapter for survival models of lifelines and scikit-survival."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError
from evenhand.distributions import Distribution, OutcomeKind
from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.estimators import Training, thawed
from evenhand.forecasters.adapters.survival_models import SurvivalModel, has_survival_curves


class SurvivalBase(Base):
    """A fitted survival model, or a `SurvivalModel` with its horizon and its times.

    Parameters
    ----------
    estimator : SurvivalModel
        The model with its grid of times.
    """

    name: ClassVar[str] = "survival"
    estimator: SurvivalModel

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return isinstance(estimator, SurvivalModel) or has_survival_curves(estimator)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return isinstance(estimator, FrozenEstimator | SurvivalModel)

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        model = thawed(estimator)
        is_given = isinstance(model, SurvivalModel)
        return model.outcome_kind_of(y) if is_given else OutcomeKind.CONTINUOUS

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        model = thawed(estimator)
        return cls(model if isinstance(model, SurvivalModel) else SurvivalModel(model))

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        if not cls.is_held_out(estimator):
            name = type(estimator).__name__
            raise InputError(
                f"estimator {name} is a survival model, which is fitted to times and events; fit it"
                " with its own fit, on other rows, and pass FrozenEstimator(model) or"
                " evenhand.forecasters.SurvivalModel(model, horizon=...)"
            )
        return cls.of_fitted(estimator)

    def distribution(self, X: Any) -> Distribution:
        return self.estimator.forecast(X).distribution

    def to_arrays(self) -> dict[str, Floats]:
        return self.estimator.to_arrays()

    def to_parts(self) -> dict[str, Any]:
        # the model of the other library: times and horizon are stored as arrays
        return {"estimator": self.estimator.model}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(SurvivalModel.from_arrays(estimator, arrays))
