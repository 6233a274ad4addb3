"""Times that may be cut off, as recalibration takes them (outcomes: 5)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._validate import MIN_DISTINCT, InputError, bad_input
from evenhand.censoring import CensoredTimes, given_times
from evenhand.distributions import OutcomeKind, as_hurdle, describes_times
from evenhand.forecast import Forecast
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


def check_forecast_of_times(forecast: Forecast, times: CensoredTimes | None) -> None:
    """Raise InputError if forecasts are of times without `event`, or not those of the times."""
    if times is None:
        if describes_times(forecast.distribution):
            raise InputError(
                "event is missing: these are forecasts of times, and a time that is cut off is not"
                " that of an event; pass event=, 1 where the event was observed, 0 where the time"
                " is cut off (True for all if no time is)"
            )
        return
    kind = forecast.outcome_kind
    if kind is OutcomeKind.HURDLE:
        check_atom_at_horizon(forecast, times.horizon)
    elif kind is not OutcomeKind.CONTINUOUS:
        raise InputError(
            f"event is given, but forecasts are of the kind {str(kind)!r} and not of times; leave"
            " out event, or pass forecasts such as those of Forecast.from_survival"
        )


def check_atom_at_horizon(forecast: Forecast, horizon: float | None) -> None:
    """Raise InputError if a forecast with an atom has it elsewhere than at the horizon."""
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return
    hurdle = as_hurdle(forecast.distribution)
    at = number_in_full(hurdle.at)
    if hurdle.end == "low":
        raise InputError(
            f"forecasts of times have an atom at {at}, their least outcome; make them with"
            " Forecast.from_survival(times, survival, horizon)"
        )
    if hurdle.at != horizon:
        wanted = "no horizon is given" if horizon is None else f"horizon={number_in_full(horizon)}"
        raise InputError(
            f"forecasts of times have an atom at {at}, their greatest outcome, but {wanted}; pass"
            " the horizon of the forecasts"
        )
