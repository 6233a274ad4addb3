"""Times that may be cut off, as recalibration takes them (outcomes: 5)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from evenhand._validate import MIN_DISTINCT, InputError, bad_input
from evenhand.censoring import CensoredTimes, given_times
from evenhand.forecasters.adapters import kind_of, thawed


def training_times(
    estimator: Any,
    y: ArrayLike,
    event: ArrayLike | None,
    horizon: float | None,
    sample_weight: ArrayLike | None,
) -> CensoredTimes | None:
    """Return times that may be cut off, of all rows; None if there is no `event`.

    Raises
    ------
    InputError
        If an input is invalid, if the estimator would be fitted to the times, or if weights leave
        out the people whose times are cut off.
    """
    times = given_times(y, event, horizon, sample_weight=sample_weight)
    if times is None:
        return None
    if times.n_samples < MIN_DISTINCT:
        rule = f"have at least {MIN_DISTINCT} rows"
        raise bad_input("y", rule, f"n_samples = {times.n_samples}")
    if not kind_of(estimator, times.time).is_held_out(estimator):
        name = type(thawed(estimator)).__name__
        raise InputError(
            f"event is given, and {name} would be fitted to times that are cut off as if they were"
            " those of events; pass a fitted survival model in a FrozenEstimator or SurvivalModel,"
            " or a function from X to Forecast.from_survival(...)"
        )
    return times
