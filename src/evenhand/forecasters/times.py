"""Times that may be cut off, as recalibration takes them (outcomes: 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._validate import MIN_DISTINCT, InputError, bad_input
from evenhand.censoring import CensoredTimes
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
    if event is None:
        if horizon is not None:
            raise InputError(
                "horizon is given without event: it is for times that may be cut off; pass event=,"
                " 1 where the event was observed, 0 where the time is cut off"
            )
        return None
    times = CensoredTimes.of(y, event, horizon)
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
    if sample_weight is not None and times.is_lost.any():
        weight = np.asarray(sample_weight)
        if weight.shape == times.time.shape and not weight[times.is_lost].any():
            raise InputError(
                "sample_weight is 0 for each person whose time is cut off, which leaves them out:"
                " without them, times seem shorter than they are, and the maps would make right"
                " forecasts wrong; weight people whatever happened to them"
            )
    return times


def check_times_of(forecast: Forecast, times: CensoredTimes | None) -> None:
    """Raise InputError if forecasts are not those of the times."""
    if times is None:
        if describes_times(forecast.distribution):
            raise InputError(
                "event is missing: the model predicts times, and a time that is cut off is not that"
                " of an event; pass event=, 1 where the event was observed, 0 where the time is cut"
                " off (True for all if no time is)"
            )
        return
    kind = forecast.outcome_kind
    if kind is OutcomeKind.HURDLE:
        check_atom_at_horizon(forecast, times.horizon)
    elif kind is not OutcomeKind.CONTINUOUS:
        rule = "predict times if event is given"
        remedy = "leave out event, or pass a model whose forecasts are from Forecast.from_survival"
        raise bad_input("estimator", rule, f"forecasts of the kind {str(kind)!r}", remedy)


def check_atom_at_horizon(forecast: Forecast, horizon: float | None) -> None:
    """Raise InputError if a forecast with an atom has it elsewhere than at the horizon."""
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return
    hurdle = as_hurdle(forecast.distribution)
    if hurdle.end == "low" or hurdle.at != horizon:
        at = number_in_full(hurdle.at)
        end = "least" if hurdle.end == "low" else "greatest"
        wanted = "no horizon is given" if horizon is None else f"horizon={number_in_full(horizon)}"
        raise InputError(
            f"forecasts of times have an atom at {at}, their {end} outcome, but {wanted}; pass the"
            " horizon of the forecasts"
        )
