"""Columns in which forecasts are written, by kind of outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.distributions import (
    Categorical,
    Distribution,
    OutcomeKind,
    as_hurdle,
    curve_times,
)
from evenhand.forecast import Forecast

SURVIVAL = "survival_"
"""Prefix of columns with survival probabilities; their names end in the time."""


def served_columns(
    forecast: Forecast,
    mean: Floats,
    levels: Sequence[float],
    *,
    moments: bool = False,
) -> dict[str, Any]:
    """Return the columns of written forecasts.

    Parameters
    ----------
    forecast : Forecast
        Forecasts of n rows, with at most one draw each.
    mean : ndarray of shape (n,)
        Means, which do not depend on a draw.
    levels : sequence of float
        Levels of the quantiles to write.
    moments : bool, default False
        Whether to write mean and standard deviation of the served forecasts.

    Returns
    -------
    dict of str to ndarray
        For a 0/1 outcome only `probability`: its quantiles are 0 or 1, and no draw changes it. For
        other outcomes draws, means and quantiles; for amounts with zeros the probability of the
        zero before them, `chance_of_zero`. Quantiles of whole numbers are integers. Without draws,
        scores have the probability of each value too, such as `p1` to `p5`, and amounts the
        quantiles of the outcomes above 0, such as `positive_q0.5`: an audit can read them again.
        Forecasts of times have survival probabilities, such as `survival_30`: at the times of
        survival curves up to the horizon, if there is one, and at the horizon.

    Examples
    --------
    >>> served_columns(Forecast.from_probability([0.2]), np.array([0.2]), [0.5])
    {'probability': array([0.2])}
    """
    kind = forecast.outcome_kind
    if kind is OutcomeKind.BINARY:
        return {"probability": forecast.event_probability()}
    r = forecast.r
    columns: dict[str, Any] = {} if r is None else {"r": r}
    times = survival_times(forecast)
    # an atom at the high end is a horizon, whose probability is among those of survival
    has_zeros = kind is OutcomeKind.HURDLE and not times
    if has_zeros:
        columns["chance_of_zero"] = 1 - forecast.event_probability()
    columns["mean"] = mean
    quantiles = forecast.ppf(levels)
    if kind is OutcomeKind.COUNT and _has_whole_values(forecast.distribution):
        quantiles = quantiles.astype(np.int64)
    columns |= {f"q{level}": quantiles[:, i] for i, level in enumerate(levels)}
    if r is None:
        columns |= _probabilities(forecast)
    # with all digits: 1 less a probability that is next to 1 would lose them
    columns |= {f"{SURVIVAL}{t:.15g}": _survival(forecast, t) for t in times}
    if r is None and has_zeros:
        above = forecast.positive_part().ppf(levels)
        columns |= {f"positive_q{level}": above[:, i] for i, level in enumerate(levels)}
    if moments:
        columns |= {"served_mean": forecast.mean(), "served_std": forecast.std()}
    return columns


def survival_times(forecast: Forecast) -> list[float]:
    """Return the times at which survival probabilities are written; none for other outcomes.

    Examples
    --------
    >>> survival_times(Forecast.from_survival([1, 2, 5], [[0.9, 0.7, 0.4]], horizon=3))
    [1.0, 2.0, 3.0]
    """
    horizon = None
    if forecast.outcome_kind is OutcomeKind.HURDLE:
        hurdle = as_hurdle(forecast.distribution)
        if hurdle.end == "low":
            return []
        horizon = hurdle.at
    times = curve_times(forecast.distribution)
    if horizon is None:
        return times
    return [*(time for time in times if time < horizon), horizon]


def _survival(forecast: Forecast, time: float) -> Floats:
    """Return the probability that each time is beyond one; at the horizon that of its atom."""
    if forecast.outcome_kind is OutcomeKind.HURDLE and as_hurdle(forecast.distribution).at == time:
        return 1 - forecast.event_probability()
    return forecast.distribution.sf(time)


def _probabilities(forecast: Forecast) -> dict[str, Floats]:
    """Return the probability of each value of scores whose values are those of all rows."""
    base = _innermost(forecast.distribution)
    if not isinstance(base, Categorical) or np.ndim(base.support) != 1:
        return {}
    rows = np.ones(forecast.n_samples)
    return {f"p{v:.15g}": np.exp(forecast.log_mass(v * rows)) for v in base.support.tolist()}


def _innermost(distribution: Distribution) -> Any:
    """Return the distribution inside links, maps and hurdles."""
    base: Any = distribution
    while True:
        inner = getattr(base, "positive", getattr(base, "base", None))
        if inner is None:
            return base
        base = inner


def _has_whole_values(distribution: Distribution) -> bool:
    """Whether all values of counts or scores are whole numbers."""
    base = _innermost(distribution)
    return not isinstance(base, Categorical) or bool((base.support == np.round(base.support)).all())
