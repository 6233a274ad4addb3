"""Times that may be cut off, as an audit takes them (outcomes: 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._validate import InputError, bad_input
from evenhand.censoring import CensoredTimes
from evenhand.distributions import OutcomeKind, as_hurdle, describes_times
from evenhand.forecast import Forecast

DROPPED = (
    "without the people whose times are cut off, times seem shorter than they are, and a right"
    " forecast is found wrong"
)
"""Why people whose times are cut off are not left out."""

NO_EVENT = (
    "event is missing: these are forecasts of times, and a time that is cut off is not that of an"
    " event; pass event=, 1 where the event was observed, 0 where the time is cut off (True for all"
    " if no time is)"
)


def check_times(
    y: ArrayLike,
    event: ArrayLike | None,
    horizon: float | None,
    entered: Any,
    model: Any,
    sample_weight: ArrayLike | None,
) -> CensoredTimes | None:
    """Return times that may be cut off, or None if there is no `event`.

    Raises
    ------
    InputError
        If an input is invalid, if forecasts of times come without `event`, or if weights leave out
        the people whose times are cut off.
    """
    if event is None:
        for name, given in (("horizon", horizon), ("entered", entered)):
            if given is not None:
                raise InputError(
                    f"{name} is given without event: it is for times that may be cut off; pass"
                    " event=, 1 where the event was observed, 0 where the time is cut off"
                )
        if isinstance(model, Forecast) and describes_times(model.distribution):
            raise InputError(NO_EVENT)
        return None
    times = CensoredTimes.of(y, event, horizon, entered)
    if sample_weight is not None and np.shape(sample_weight) == times.time.shape:
        is_left_out = np.asarray(sample_weight) == 0
        if times.is_lost.any() and is_left_out[times.is_lost].all():
            raise InputError(
                "sample_weight is 0 for each person whose time is cut off, which leaves them out:"
                f" {DROPPED}; weight people whatever happened to them"
            )
    return times


def check_forecast_of_times(forecast: Forecast, times: CensoredTimes | None) -> None:
    """Refuse forecasts of times without `event`, or whose horizon is not that of the outcomes."""
    if not describes_times(forecast.distribution):
        return
    if times is None:
        raise InputError(NO_EVENT)
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return
    at = as_hurdle(forecast.distribution).at
    if times.horizon is None or not np.isclose(at, times.horizon, rtol=1e-12):
        got = "None" if times.horizon is None else number_in_full(times.horizon)
        rule = f"be {number_in_full(at)}, the horizon of the forecasts"
        remedy = f"pass horizon={at:.12g}, or forecasts with another horizon"
        raise bad_input("horizon", rule, got, remedy)
