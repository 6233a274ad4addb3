"""Base class of forecasters around a model of any kind that the adapters know."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import Base, allows_missing
from evenhand.forecasters.base import Forecaster


class WrappingForecaster(Forecaster):
    """A forecaster whose distributions are made from those of the model in `estimator`."""

    estimator: Any

    def _set_base(self, base: Base) -> None:
        self._base = base
        self.estimator_ = base.estimator

    def base_forecast(self, X: Any) -> Forecast:
        """Forecast as the model itself does, without what is put around it, shape (n,)."""
        check_is_fitted(self)
        return Forecast(self._base.distribution(self._check_new_rows(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        allowed = allows_missing(self.estimator)
        if allowed is not None:
            tags.input_tags.allow_nan = allowed
        return tags
