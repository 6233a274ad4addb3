"""Base class of forecasters of counts, scores and events."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import Base, allows_missing, frozen
from evenhand.forecasters.base import Forecaster, State


class DiscreteForecaster(Forecaster):
    """A forecaster that converts the output of a model to distributions on single values."""

    _inner: ClassVar[str]
    """Name of the parameter with the model."""

    _base_kind: ClassVar[type[Base]]
    """Adapter of the model."""

    def _set_base(self, base: Base) -> None:
        self._base = base
        self.estimator_ = base.estimator

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        check_is_fitted(self)
        return Forecast(self._base.distribution(self._check_new_rows(X)))

    def to_state(self) -> State:
        check_is_fitted(self)
        params = self._params_to_state(self._inner)
        stored = {"params": params, "learned": self._columns_to_state()}
        return State(type(self).__name__, stored, self._base.to_arrays(), self._base.to_parts())

    @classmethod
    def from_state(cls, state: State) -> Self:
        base = cls._base_kind.from_parts(state.parts, dict(state.arrays))
        # a new fit keeps the fitted model, unless its predictions have no meaning without a code
        inner = frozen(base.estimator) if base.predicts_outcomes else base.estimator
        model = cls(**{cls._inner: inner}, **state.params["params"])
        model._set_base(base)
        model._columns_from_state(state.params["learned"])
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        allowed = allows_missing(getattr(self, self._inner))
        if allowed is not None:
            tags.input_tags.allow_nan = allowed
        return tags
