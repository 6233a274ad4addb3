"""Values of a person's own forecast, such as its mean, that groups of rows are defined by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, check_choice
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.forecast.forecast import Forecast
from evenhand.tables import row_blocks

BLOCK = 1024
"""Rows whose values are computed at once, as a mean without a closed form needs a table of
quantiles for each row."""


def forecast_values(forecast: Forecast, names: Iterable[str]) -> pd.DataFrame:
    """Return values of each person's own forecast, on average over several draws.

    Parameters
    ----------
    forecast : Forecast
        Forecasts of n people.
    names : iterable of str
        Names of `OWN_VALUES`. The mean is the median where it is not finite, and the width of a
        forecast with an atom at the end of its range is that of its other part.

    Returns
    -------
    DataFrame of n rows
        One column per name, in units of the outcome or probabilities from 0 to 1.

    Raises
    ------
    InputError
        If a name is another, or is a value of forecasts of another kind.

    Examples
    --------
    >>> forecast = Forecast.from_normal([3.0], [1.0])
    >>> forecast_values(forecast, ["predicted mean", "80% width"]).round(2).to_dict("records")
    [{'predicted mean': 3.0, '80% width': 2.56}]
    """
    blocks = row_blocks(len(forecast), BLOCK)
    columns = {}
    for name in names:
        value = OWN_VALUES[check_choice("name", name, tuple(OWN_VALUES))]
        of_draws = np.concatenate([value(forecast[rows]) for rows in blocks])
        columns[name] = of_draws.reshape(len(forecast), -1).mean(axis=-1)
    return pd.DataFrame(columns, index=range(len(forecast)))


def _probability(forecast: Forecast) -> Floats:
    return _of_kind(forecast, "predicted probability", forecast.outcome_kind is OutcomeKind.BINARY)


def _chance_of_zero(forecast: Forecast) -> Floats:
    return 1 - _of_kind(forecast, "chance of zero", _atom_end(forecast) == "low")


def _by_horizon(forecast: Forecast) -> Floats:
    return _of_kind(forecast, "event by horizon", _atom_end(forecast) == "high")


def _of_kind(forecast: Forecast, name: str, is_right: bool) -> Floats:
    if not is_right:
        raise InputError(
            f"a group is defined by {name!r}, which forecasts of kind"
            f" {str(forecast.outcome_kind)!r} do not have; define it by 'predicted mean' or another"
            " of their values"
        )
    return forecast.event_probability()


def _atom_end(forecast: Forecast) -> str | None:
    is_hurdle = forecast.outcome_kind is OutcomeKind.HURDLE
    return as_hurdle(forecast.distribution).end if is_hurdle else None


def _mean(forecast: Forecast) -> Floats:
    mean = forecast.mean()
    return mean if np.isfinite(mean).all() else np.where(np.isfinite(mean), mean, _median(forecast))


def _median(forecast: Forecast) -> Floats:
    return forecast.ppf(0.5)


def _width(forecast: Forecast) -> Floats:
    part = forecast if _atom_end(forecast) is None else forecast.positive_part()
    low, high = part.interval(0.8)
    return high - low


OWN_VALUES: dict[str, Callable[[Forecast], Floats]] = {
    "predicted probability": _probability,
    "predicted mean": _mean,
    "predicted median": _median,
    "80% width": _width,
    "chance of zero": _chance_of_zero,
    "event by horizon": _by_horizon,
}
"""Functions for the values of forecasts, shape of the batch, by names that rules reserve."""
