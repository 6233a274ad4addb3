"""Base class of forecasters that transform the distributions of another model."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import Floats, InputError, check_outcomes
from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind, Support
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import Base, final_step, frozen, is_held_out, kind_of
from evenhand.forecasters.base import Forecaster, thawed
from evenhand.forecasters.bounds import check_bounds
from evenhand.tables import take_rows


class WrappingForecaster(Forecaster):
    """A forecaster that transforms the distributions predicted by the model in `estimator`."""

    estimator: Any

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        # the default estimator of a randomized forecaster is continuous
        if self.estimator is None:
            return OutcomeKind.CONTINUOUS
        return kind_of(self.estimator, y).outcome_kind_of(self.estimator, y)

    def _set_base(self, base: Base) -> None:
        self._base = base
        self.estimator_ = base.estimator
        self.spread_ = base.learned.get("spread")

    def _freeze(self) -> None:
        """Wrap the estimator of a loaded model in a FrozenEstimator, so that `fit` keeps it.

        An estimator that was fitted to mapped or coded outcomes is fitted again instead, as its
        predictions have no meaning without the map. Predictions of a fitted plain regressor are in
        units of the outcome, and are mapped afterwards.
        """
        base = self._base
        is_plain = "predicted_support" in base.learned
        is_own = base.predicts_outcomes and (self.support_ is None or not self.support_.is_map)
        if is_own or is_plain:
            self.estimator = frozen(self.estimator)

    def _learn_support_of(self, estimator: Any, outcomes: Floats, rows: Any) -> Floats:
        """Learn the support; return the outcomes on which a model is fitted.

        Distributions that are predicted by models that are not refitted are those of outcomes in
        their own units, and are truncated.
        """
        if self.support is not None and has_own_support(estimator):
            raise InputError(
                f"support is given both for {type(self).__name__} and for its estimator"
                f" {type(thawed(estimator)).__name__}; leave one of the two out"
            )
        is_map = is_refitted(estimator) or is_fitted_plain(estimator)
        return self._learn_support(outcomes, rows, is_map=is_map)

    def _predicted_support(self, estimator: Any) -> Support | None:
        """Return the map of predictions to the line for a fitted plain regressor, or None."""
        return self.support_ if is_fitted_plain(estimator) else None

    def base_forecast(self, X: Any) -> Forecast:
        """Return the forecast of the inner model on the support, without maps or links, (n,)."""
        if not hasattr(self, "_base"):
            check_is_fitted(self)  # only for its error, as it takes long for one row
        return self._base_forecast_of(self._check_new_rows(X))

    def _base_forecast_of(self, rows: Any) -> Forecast:
        return Forecast(self._on_support(self._base.distribution(rows)))

    def _models(self) -> tuple[Any, ...]:
        return (self.estimator,)


# --- kinds of outcomes, checked before and after a fit


def check_before_fit(estimator: Any, outcomes: Floats, support: Any) -> OutcomeKind | None:
    """Check outcomes against the kind that an estimator predicts, and return it if it is known.

    A continuous model of outcomes with atoms is warned about, unless it is a survival model: the
    times of many people end with the study. With a `support`, outcomes must be continuous, as its
    map to the line would move the atoms.
    """
    kind_of_model = kind_of(estimator, outcomes)
    kind = kind_of_model.outcome_kind_of(estimator, outcomes)
    has_no_atoms = kind is OutcomeKind.CONTINUOUS and kind_of_model.name != "survival"
    check_outcomes(outcomes, kind="continuous" if has_no_atoms else None)
    if kind is not None:
        check_support_of(kind, support)
    return kind


def check_after_fit(
    base: Base, rows: Any, outcomes: Floats, support: Any, before: OutcomeKind | None
) -> OutcomeKind:
    """Return the kind of outcome that a fitted model predicts, checked if it was not known."""
    if before is not None:
        return before
    kind = base.distribution(take_rows(rows, [0])).outcome_kind
    check_support_of(kind, support)
    if kind is OutcomeKind.CONTINUOUS:
        check_outcomes(outcomes)
    return kind


def check_support_of(kind: OutcomeKind, support: Any) -> None:
    """Raise InputError if bounds are given for outcomes with atoms."""
    if support is not None and kind is not OutcomeKind.CONTINUOUS:
        is_count = kind is OutcomeKind.COUNT
        remedy = ", or pass CountRegressor(largest=...)" if is_count else ""
        raise InputError(
            f"support={support!r} has no meaning for forecasts of the kind {str(kind)!r}, only for"
            f" continuous ones; leave it out{remedy}"
        )


def refuse_binary(kind: OutcomeKind | None) -> None:
    """Raise InputError for 0/1 outcomes, which randomization cannot help (outcomes: 3)."""
    if kind is OutcomeKind.BINARY:
        raise InputError(NO_BINARY_RANDOMIZATION)


def is_refitted(estimator: Any) -> bool:
    """Whether an estimator, or each member of a list, is fitted to the outcomes passed to `fit`."""
    if isinstance(estimator, list | tuple):
        return all(map(is_refitted, estimator))
    # a fitted plain regressor is not held out, as its residual distribution is estimated
    is_frozen = isinstance(final_step(estimator), FrozenEstimator)
    return not is_frozen and not is_held_out(estimator)


def is_fitted_plain(estimator: Any) -> bool:
    """Whether an estimator is a fitted plain regressor, which predicts outcomes in their units."""
    is_frozen = isinstance(final_step(estimator), FrozenEstimator)
    return is_frozen and kind_of(estimator).name == "residuals"


def has_own_support(estimator: Any) -> bool:
    """Whether an estimator to be refitted, or a member of a list, has a support of its own."""
    if isinstance(estimator, list | tuple):
        return any(map(has_own_support, estimator))
    last = final_step(estimator)
    if isinstance(last, FrozenEstimator) or not hasattr(last, "forecast"):
        return False
    return check_bounds(getattr(last, "support", None)) is not None
