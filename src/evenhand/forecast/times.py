"""Checks of forecasts of times that may be cut off (outcomes: 5)."""

from __future__ import annotations

from evenhand._format import number_in_full
from evenhand._validate import InputError
from evenhand.censoring import CensoredTimes
from evenhand.distributions import OutcomeKind, as_hurdle, describes_times
from evenhand.forecast.forecast import Forecast


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
