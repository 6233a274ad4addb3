"""Forecasts of other models in the columns of a table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from evenhand._validate import InputError, bad_input
from evenhand.distributions import SUM_TOLERANCE, OutcomeKind
from evenhand.forecast import Forecast
from evenhand.scale.column_names import pmf_value, quantile_level, survival_times
from evenhand.scale.column_options import ForecastColumns
from evenhand.scale.column_values import ColumnValues

ROUNDING = 1e-9
"""Rise of survival probabilities that is no error: curves are computed in floats."""

MOST_ROUNDING = 0.05
"""Largest error of a sum of probabilities that is explained by their rounding. With few decimals
and many columns, rounding could explain any sum."""


def forecast_from_columns(
    table: pd.DataFrame,
    *,
    mean: str | None = None,
    std: str | None = None,
    quantiles: str | None = None,
    samples: str | None = None,
    sort_quantiles: bool = False,
    probability: str | None = None,
    pmf: str | None = None,
    chance_of_zero: str | None = None,
    outcome: str | None = None,
    survival: str | None = None,
    horizon: float | None = None,
    source: str,
    start: int = 0,
) -> tuple[Forecast, list[str]]:
    """Create forecasts from the columns in which another model wrote them.

    Parameters
    ----------
    table : DataFrame of n rows
        Output of the model.
    mean, std : str, optional
        Columns with means and with standard deviations (> 0). With `outcome="count"`, a mean alone
        is that of a Poisson distribution, and both are those of a negative binomial distribution.
    quantiles : str, optional
        Comma-separated columns with quantiles, whose names end in their levels as in `q0.05`; or
        the common prefix of their names.
    samples : str, optional
        Comma-separated columns with samples of the outcome; or the common prefix of their names.
        With `outcome="count"`, the probability of a count is its share of the samples.
    sort_quantiles : bool, default False
        Whether to sort crossing quantiles in each row; otherwise they raise an error.
    probability : str, optional
        Column with the probability that a 0/1 outcome is 1.
    pmf : str, optional
        Comma-separated columns with the probability of each value of a count or score, whose names
        end in the value as in `p0` or `p_-1`; or the common prefix of their names.
    chance_of_zero : str, optional
        Column with the probability that the outcome is 0. The other columns then describe the
        outcome given that it is above 0; a normal distribution is truncated at 0.
    outcome : {"continuous", "count", "hurdle", "binary"}, optional
        Kind of outcome, where the columns do not show it.
    survival : str, optional
        Columns with the probability that a time is beyond each of several times: comma-separated,
        each as `TIME=COLUMN` or by a name that ends in the time; or the common prefix of such
        names. A column for time 0 is not used, as everybody survives it.
    horizon : float, optional
        Time up to which outcomes are followed, for forecasts of times by `survival`, quantiles,
        samples or moments.
    source : str
        File name for messages.
    start : int, default 0
        Number of the first row within its file, for messages.

    Returns
    -------
    forecast : Forecast
        Deterministic forecasts of the n rows.
    columns : list of str
        Columns used.

    Raises
    ------
    InputError
        If no kind or several kinds of columns are named, they contradict each other, or a column is
        missing or invalid.

    Examples
    --------
    >>> output = pd.DataFrame({"q0.25": [1.0], "q0.5": [2.0], "q0.75": [3.0]})
    >>> forecast, columns = forecast_from_columns(output, quantiles="q", source="output.csv")
    >>> forecast.ppf(0.5), columns
    (array([2.]), ['q0.25', 'q0.5', 'q0.75'])
    """
    columns = ForecastColumns(
        mean,
        std,
        quantiles,
        samples,
        sort_quantiles,
        probability,
        pmf,
        chance_of_zero,
        outcome,
        survival,
        horizon,
    )
    return read_forecast(table, columns, source=source, start=start)


def read_forecast(
    table: pd.DataFrame, columns: ForecastColumns, *, source: str, start: int = 0
) -> tuple[Forecast, list[str]]:
    """Create the forecasts of `forecast_from_columns` from columns given as one object."""
    kind = columns.outcome_kind(source)
    by_option = columns.by_option(table.columns, source)
    values = ColumnValues(table, by_option, source, start)
    match kind:
        case OutcomeKind.BINARY:
            forecast = Forecast.from_probability(values.probabilities("probability")[:, 0])
        case OutcomeKind.COUNT:
            forecast = _of_counts(values)
        case OutcomeKind.CONTINUOUS | OutcomeKind.HURDLE if columns.is_of_times:
            forecast = _of_times(values, columns)
        case OutcomeKind.HURDLE:
            chance = values.probabilities("chance_of_zero")[:, 0]
            amounts = _of_amounts(values, sort=columns.sort_quantiles)
            forecast = Forecast.from_hurdle(chance, amounts)
        case OutcomeKind.CONTINUOUS:
            forecast = _continuous(values, sort=columns.sort_quantiles)
    return forecast, [name for names in by_option.values() for name in names]


def _of_counts(values: ColumnValues) -> Forecast:
    """Return forecasts of counts from probabilities, samples, or moments."""
    if "pmf" in values:
        return _from_pmf(values)
    if "samples" in values:
        samples = values["samples"]
        rule = "a sample of counts must be a whole number"
        values.refuse("samples", samples != np.round(samples), rule)
        return Forecast.from_samples(samples, kind=OutcomeKind.COUNT)
    mean = values.one("mean")
    values.refuse("mean", values["mean"] <= 0, "the mean of a count must be positive")
    if "std" not in values:
        return Forecast.from_poisson(mean)
    std = values.one("std")
    is_narrow = std**2 <= mean
    if is_narrow.any():
        row = int(np.argmax(is_narrow))
        raise InputError(
            f"{values.place('std', row)}: the standard deviation of a negative binomial"
            f" distribution must be above the square root of its mean ({np.sqrt(mean[row]):.4g}),"
            f" got {std[row]:g}; leave --std out for Poisson distributions"
        )
    return Forecast.from_negative_binomial(mean, (std**2 - mean) / mean**2)


def _from_pmf(values: ColumnValues) -> Forecast:
    """Return forecasts from the probability of each value."""
    probabilities = values.probabilities("pmf")
    total = probabilities.sum(axis=1)
    off = np.abs(total - 1)
    # written with few decimals, each probability is off by up to half a unit of the last one
    decimals = next(
        (d for d in range(16) if (np.round(probabilities, d) == probabilities).all()), 16
    )
    explained = min(probabilities.shape[1] * 0.5 * 10.0**-decimals, MOST_ROUNDING)
    is_off = off > explained + SUM_TOLERANCE
    if is_off.any():
        row = int(np.argmax(is_off))
        raise InputError(
            f"{values.source}: row {values.start + row + 1}: the probabilities in the"
            f" {len(values.columns['pmf'])} columns of --pmf must sum to 1, got {total[row]:.7g};"
            " name a column for each possible value, and write probabilities with all digits"
        )
    if (off > SUM_TOLERANCE).any():
        warnings.warn(
            f"probabilities of --pmf are rounded to {decimals} decimals; each row is divided by its"
            " sum",
            stacklevel=2,
        )
    support = np.array([pmf_value(name) for name in values.columns["pmf"]])
    return Forecast.from_pmf(support, probabilities / total[:, None])


def _of_amounts(values: ColumnValues, *, sort: bool) -> Forecast:
    """Return forecasts of the outcomes above 0."""
    for option in ("mean", "quantiles", "samples"):
        if option in values:
            rule = "forecasts of the outcomes above 0 must be positive and leave out the zeros"
            values.refuse(option, values[option] <= 0, rule)
    return _continuous(values, sort=sort)


def _of_times(values: ColumnValues, columns: ForecastColumns) -> Forecast:
    """Return forecasts of times, up to a horizon if there is one (outcomes: 5)."""
    horizon = columns.horizon
    if columns.survival is not None:
        return _from_survival(values, columns.survival, horizon)
    forecast = _continuous(values, sort=columns.sort_quantiles)
    if horizon is None:
        return forecast
    return Forecast.from_hurdle(1 - forecast.cdf(horizon), forecast, at=horizon, end="high")


def _from_survival(values: ColumnValues, listed: str, horizon: float | None) -> Forecast:
    """Return forecasts from survival probabilities."""
    names = values.columns["survival"]
    times = np.array(list(survival_times(listed, names, values.source).values()))
    survival = values.probabilities("survival")
    rises = np.diff(survival, axis=-1) > ROUNDING
    if rises.any():
        row, column = (int(k) for k in np.argwhere(rises)[0])
        before, after = survival[row, column : column + 2]
        raise InputError(
            f"{values.place('survival', row, column + 1)}: survival probabilities must not rise"
            f" with time, got {after:g} at {times[column + 1]:g} after {before:g} at"
            f" {times[column]:g}; name columns with the probability that the time is beyond each"
            " time, not up to it"
        )
    falling = np.minimum.accumulate(survival, axis=-1)
    # everybody survives time 0
    is_later = times > 0
    if not is_later.any():
        raise bad_input("--survival", "name a column for a time above 0", f"{names[0]!r}")
    return Forecast.from_survival(times[is_later], falling[:, is_later], horizon)


def _continuous(values: ColumnValues, *, sort: bool) -> Forecast:
    """Return forecasts of a continuous outcome."""
    if "quantiles" in values:
        return _from_quantiles(values, sort=sort)
    if "samples" in values:
        samples = values["samples"]
        equal = samples.min(axis=1) == samples.max(axis=1)
        if equal.any():
            raise InputError(
                f"{values.source}: row {values.start + int(equal.argmax()) + 1} has equal samples"
                " only, which have no density; correct it or drop the row"
            )
        return Forecast.from_samples(samples)
    values.refuse("std", values["std"] <= 0, "a standard deviation must be positive")
    return Forecast.from_normal(values.one("mean"), values.one("std"))


def _from_quantiles(values: ColumnValues, *, sort: bool) -> Forecast:
    names, quantiles = values.columns["quantiles"], values["quantiles"]
    # equal quantiles are allowed: the distribution separates them
    falls = np.diff(quantiles, axis=-1) < 0
    if falls.any() and not sort:
        row, column = (int(k) for k in np.argwhere(falls)[0])
        below, above = quantiles[row, column : column + 2]
        raise InputError(
            f"{values.place('quantiles', row, column + 1)}: quantiles must not decrease with their"
            f" level, got {above:g} after {below:g}; correct them, or sort each row with"
            " --sort-quantiles (in Python: sort_quantiles=True)"
        )
    levels = [quantile_level(name) for name in names]
    return Forecast.from_quantiles(levels, quantiles, sort=sort)
