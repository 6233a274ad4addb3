"""Served forecasts with the outcomes that were known when they matured."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    Pair,
    as_floats,
    as_number,
    bad_input,
    named,
    place_of,
    refuse_entry,
    short,
)
from evenhand.distributions import OutcomeKind, SurvivalCurves, found_inside
from evenhand.forecast import Forecast, check_forecast_of_times
from evenhand.links import Link
from evenhand.outcomes import Outcomes
from evenhand.tables import as_pandas, as_table, forecast_values, take_rows

# --- checks of the columns of served rows. Every message names the first wrong row


LIMITS = {
    "pit": (0.0, 1.0),
    "base": (0.0, 1.0),
    "r": (0.0, 1.0),
    "excess": (-1.0, 1.0),
    "delay": (0.0, np.inf),
    "probability": (0.0, 1.0),
    "outcome": (-np.inf, np.inf),
}
"""Ranges of the columns of numbers; draws lie strictly inside."""


def check_numbers(name: str, values: Any, n: int, known: Mask | None = None) -> Floats:
    """Return one float per row within the range of the column, or of an end of cells: "pit[0]".

    Missing values become NaN. Where `known` is given, values of these rows must not be missing, and
    those of others become NaN.
    """
    # None in a list of numbers makes objects, whose None numpy reads as NaN
    if isinstance(values, pd.Series):
        values = pd.to_numeric(values).to_numpy(dtype=float, na_value=np.nan)
    floats: Floats = _one_per_time(name, as_floats(name, values), n)
    if known is not None:
        floats = np.where(known, floats, np.nan)
        why = ", but the outcome of this row is known; set known to False"
        refuse_missing(name, known & np.isnan(floats), why)
    low, high = LIMITS[name.partition("[")[0]]
    is_out = (floats <= low) | (floats >= high) if name == "r" else (floats < low) | (floats > high)
    rule = f"lie {'strictly ' if name == 'r' else ''}between {low:g} and {high:g}"
    refuse_entry(name, floats, is_out, rule)
    return floats


def refuse_missing(name: str, lacks: Mask, why: str) -> None:
    """Raise InputError for the first row that lacks a value."""
    if lacks.any():
        raise InputError(f"{place_of(name, (np.argmax(lacks),))} is missing{why}")


def _one_per_time(name: str, values: Any, n: int) -> Any:
    """Return a column if it has one value per row."""
    if values.shape != (n,):
        raise bad_input(name, f"have one value per time ({n})", f"shape {values.shape}")
    return values


def _checked(name: str, value: Any, n: int, known: Mask | None) -> Any:
    """Return a column of numbers, or both ends of cells."""
    if not isinstance(value, tuple):
        return check_numbers(name, value, n, known)
    low, high = (check_numbers(f"{name}[{i}]", end, n, known) for i, end in enumerate(value))
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        row = crossed[0]
        got = f"{low[row]:g} and {high[row]:g} in row {row}"
        raise bad_input(name, "have lower ends at or below the upper ends", got)
    return low, high


def check_table(columns: Any, n: int) -> Any:
    """Return the columns that define groups as a DataFrame."""
    table = pd.DataFrame(columns) if isinstance(columns, dict) else columns
    return as_table(table, n, name="columns", per="forecast")


# --- times of served rows, and how long their outcomes are awaited

UNITS = {"w": 7, "d": 1, "h": 1 / 24, "min": 1 / 1440}
"""Days in the units of a duration given as text."""

MOST_DAYS = 36525
"""Longest duration in days, a hundred years: far from the range of dates."""


def as_duration(value: Any) -> np.timedelta64:
    """Return how long after serving outcomes are read, in microseconds: then a forecast is mature.

    The value is a number of days, a timedelta, or text such as "365d", "12h", "90min" or "2w"; None
    is no wait. A hundred years are the most.

    Examples
    --------
    >>> bool(as_duration("365d") == as_duration(365))
    True
    """
    days = 0.0 if value is None else value
    if isinstance(value, timedelta):
        days = value / timedelta(days=1)
    elif isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(w|d|h|min)?\s*", value)
        days = float(found[1]) * UNITS[found[2] or "d"] if found else math.nan
    if isinstance(value, bool) or not 0 <= as_number(days) <= MOST_DAYS:
        rule = "be a number of days, or a time such as 365d, 12h, 90min or 2w, of at most 100 years"
        raise bad_input("matures_after", rule, repr(value))
    return np.timedelta64(round(days * 86_400_000_000), "us")


ISO = "write it as 2026-11-23 or 2026-11-23T12:00:00Z"
"""Remedy for a time that cannot be read."""


def as_time(name: str, value: datetime | np.datetime64 | str) -> np.datetime64:
    """Return one time in UTC with microseconds; a time without a zone is in UTC.

    Examples
    --------
    >>> as_time("until", "2026-11-23T12:00:00+01:00")
    np.datetime64('2026-11-23T11:00:00.000000')
    """
    try:
        return as_times(name, [value])[0]
    except InputError as error:
        raise bad_input(name, "be a date or time", repr(value), ISO) from error


def as_times(name: str, values: Any, *, allow_missing: bool = False) -> NDArray[Any]:
    """Return times as an array of datetime64[us] in UTC; times without a zone are in UTC.

    Examples
    --------
    >>> as_times("time", ["2026-03-01T09:00+02:00"])
    array(['2026-03-01T07:00:00.000000'], dtype='datetime64[us]')
    """
    values = as_pandas(values, name)
    is_read = getattr(getattr(values, "dtype", None), "kind", "") == "M"
    column = pd.Series(values, dtype=None if is_read else object)
    # texts that repeat are read once; to look for repeated times takes longer than to take them
    given: dict[str, Any] = {"cache": False} if is_read else {"format": "ISO8601"}
    read = pd.to_datetime(column, utc=True, errors="coerce", **given)
    unread = np.flatnonzero(read.isna() & column.notna())
    # texts that pandas reads as missing times
    is_wrong = ~column.iloc[unread].astype(str).str.lower().isin(("", "nan", "nat"))
    for row in unread[is_wrong][:1]:
        raise bad_input(place_of(name, (row,)), "be a date or time", short(column.iloc[row]), ISO)
    times = read.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    if not allow_missing:
        refuse_missing(name, np.isnat(times), "; give each row its time")
    return times


# --- the rows

Times = NDArray[Any]
"""Array of type datetime64[us], in UTC."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Served forecasts of n people in the order of serving, when they have matured.

    Outcomes that were not known by then are missing: their values are NaN. `Rows.of` makes
    rows from the columns of a log of one's own.

    Parameters
    ----------
    time : ndarray of datetime64[us], shape (n,)
        Times of serving in UTC, increasing.
    known : ndarray of bool, shape (n,)
        Whether the outcome was known when the forecast matured.
    pit : tuple of two ndarrays of shape (n,)
        Cells of the served PITs.
    r : ndarray of shape (n,) or None
        Draws, NaN for a forecast without a draw; None if no forecast has one.
    base : tuple of two ndarrays of shape (n,) or None
        Cells of the PITs of the deterministic forecaster inside a known link.
    excess : ndarray of shape (n,) or None
        Outcome minus probability, for 0/1 outcomes.
    promised : ndarray of bool, shape (n,), or None
        Rows that the promise covers; None if it covers all. The promise for amounts with an atom
        covers outcomes off the atom only; rows with a missing outcome are included.
    columns : DataFrame or None
        Columns that define groups, one row per forecast.
    delay : ndarray of shape (n,) or None
        Days from serving to the record of the outcome; NaN without an outcome, also beyond the
        maturity for late outcomes.
    link : Link or None
        The link around the forecaster of `base`. With both, errors of named groups are averaged
        over draws, unless `promised` is given.

    Raises
    ------
    InputError
        If arrays have different lengths, times decrease, or a known value is missing or outside its
        range. The message names the row, counted from 0.

    Examples
    --------
    >>> rows = Rows.of(["2026-03-01T09:00", "2026-03-01T09:05"], pit=[0.3, None], r=[0.4, 0.9])
    >>> len(rows), rows.known, rows.take(slice(1, 2)).r
    (2, array([ True, False]), array([0.9]))
    """

    time: Times
    known: Mask
    pit: Pair
    r: Floats | None = None
    base: Pair | None = None
    excess: Floats | None = None
    promised: Mask | None = None
    columns: Any = None
    delay: Floats | None = None
    link: Link | None = None

    def __post_init__(self) -> None:
        time = as_times("time", self.time)
        n = time.size
        known = _one_per_time("known", np.asarray(self.known, dtype=bool), n)
        checked: dict[str, Any] = {"time": time, "known": known}
        for name in ("pit", "base", "r", "excess", "delay"):
            if (value := getattr(self, name)) is not None:
                checked[name] = _checked(name, value, n, None if name in ("r", "delay") else known)
        if self.promised is not None:
            checked["promised"] = np.asarray(self.promised, np.bool_)
        if self.columns is not None:
            checked["columns"] = check_table(self.columns, n)
        # frozen: rows are handed on and must not change; this converts lists to arrays once
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        _check_order(time)

    def __len__(self) -> int:
        return self.time.size

    def take(self, rows: Any) -> Rows:
        """Return some rows: a slice, a mask, or increasing row numbers."""
        return Rows(*(_taken(getattr(self, field.name), rows) for field in fields(self)))

    @classmethod
    def of(
        cls,
        time: ArrayLike,
        pit: Any = None,
        *,
        r: ArrayLike | None = None,
        link: Link | None = None,
        outcome: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        groups: Any = None,
        recorded: ArrayLike | None = None,
        matures_after: float | str | timedelta | None = None,
        until: Any = None,
        id: ArrayLike | None = None,
    ) -> Self:
        """Make rows from the columns of a log, in any order of the log.

        Parameters
        ----------
        time : array-like of shape (n,)
            Times of serving; times without a zone are in UTC.
        pit : array-like of shape (n,), or tuple of two
            PITs of the served forecasts, `h(y)` with the CDF that was served at the draw, or the
            lower and upper ends of their cells where outcomes have atoms. None or NaN where the
            outcome is missing.
        r : array-like of shape (n,), optional
            Draws of the served forecasts.
        link : Link, optional
            The link of randomized forecasts, by which the PITs of the deterministic forecaster
            follow from `pit` and `r` (outcomes: 6). Both need at least four decimals. Not for
            amounts with an atom, of which a link randomizes a part; make `Rows` for them.
        outcome, probability : array-like of shape (n,), optional
            For 0/1 forecasts, in place of `pit`: outcomes, None or NaN where missing, and predicted
            probabilities of 1.
        groups : DataFrame or mapping, optional
            Columns that define groups, one row per forecast.
        recorded : array-like of shape (n,), optional
            Times at which the outcomes were recorded. With `matures_after`, those recorded
            after it are missing.
        matures_after : float, str, timedelta, optional
            Time from serving at which outcomes are read, in days or as "365d".
        until : time, optional
            Leaves out forecasts that mature after this time.
        id : array-like of shape (n,), optional
            Ids of the forecasts, which order those served at the same time. Required if the log is
            not in the order of serving and times are repeated.

        Raises
        ------
        InputError
            If a column has another length or a value outside its range, or the order of serving is
            not known.
        """
        times = as_times("time", time)
        n = times.size
        cells, known, excess = _outcomes(pit, outcome, probability, n)
        delay = None
        if recorded is not None:
            delay, is_in_time = _delays(times, recorded, matures_after, known)
            known = known & is_in_time
        draws = None if r is None else check_numbers("r", r, n)
        base = None if link is None else _base(cells, draws, link, known)
        table = None if groups is None else check_table(groups, n)
        # in the order of the fields
        columns = (times, known, cells, draws, base, excess, None, table, delay, link)
        order = _order(times, id)
        rows = cls(*(_taken(column, order) for column in columns))
        if until is None:
            return rows
        ended = rows.time + as_duration(matures_after) <= as_time("until", until)
        return rows.take(ended)  # type: ignore[return-value]


def rows_of_forecast(
    forecast: Forecast, y: Any, time: ArrayLike, *, groups: Any = None, **others: Any
) -> Rows:
    """Make rows from forecasts and outcomes, with the level of each forecast as a column.

    The outcome of times that may be cut off is the time up to the horizon: of who is lost before it
    it is missing, which is valid whatever that depends on (outcomes: 5, 6).

    Parameters
    ----------
    forecast : Forecast
        Deterministic forecasts of n people.
    y : array-like of shape (n,), or Outcomes
        Their outcomes; NaN where missing. Times need `Outcomes` with event and horizon, and
        `matures_after`.
    time : array-like of shape (n,)
        Times of serving.
    groups : DataFrame, optional
        Columns that define groups.
    **others
        `recorded`, `matures_after`, `until` and `id` of `Rows.of`.

    Examples
    --------
    >>> from evenhand import Forecast
    >>> days = ["2026-03-01", "2026-03-02"]
    >>> rows = rows_of_forecast(Forecast.from_normal([3.0, 4.0], 1.0), [3.0, np.nan], days)
    >>> rows.known, rows.columns["predicted mean"].tolist()
    (array([ True, False]), [3.0, 4.0])
    """
    are_times = isinstance(y, Outcomes)
    known = y if are_times else as_floats("y", y)
    if are_times or found_inside(forecast.distribution, SurvivalCurves) is not None:
        if not are_times or None in (y.horizon, others.get("matures_after")):
            raise InputError(
                "times that may be cut off are watched up to a horizon: give it and the event, as"
                " Outcomes or in survival=S,event=E,horizon=TIME, and"
                f" {named('matures_after')} of at least the horizon"
            )
        check_forecast_of_times(forecast, y)
    is_event = forecast.outcome_kind is OutcomeKind.BINARY
    level = forecast_values(forecast, [level_name(is_event=is_event)])
    table = level if groups is None else pd.concat([groups.reset_index(drop=True), level], axis=1)
    if is_event:
        event = forecast.event_probability()
        return Rows.of(time, outcome=known, probability=event, groups=table, **others)
    return Rows.of(time, served_cells(forecast, known), groups=table, **others)


def level_name(*, is_event: bool) -> str:
    """Return the name of the column with the level of a forecast."""
    return "predicted probability" if is_event else "predicted mean"


def served_cells(forecast: Forecast, y: Floats | Outcomes) -> Pair:
    """Return PIT cells, NaN where the outcome is missing, or the time is not known."""
    if isinstance(y, Outcomes):
        low, high = forecast.pit_interval(y)
        return np.where(y.is_lost, np.nan, low), np.where(y.is_lost, np.nan, high)
    is_known = ~np.isnan(y)
    low, high = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    if is_known.any():
        low[is_known], high[is_known] = forecast[is_known].pit_interval(y[is_known])
    return low, high


def _taken(value: Any, rows: Any) -> Any:
    """Return some rows of the value of a field."""
    if isinstance(value, Link):
        return value
    if isinstance(value, tuple):
        return tuple(_taken(end, rows) for end in value)
    return take_rows(value, rows)


def _check_order(time: Times) -> None:
    falls = np.flatnonzero(time[1:] < time[:-1])
    if falls.size:
        row = falls[0] + 1
        raise InputError(
            f"time[{row}] is {time[row]}, before the row above it ({time[row - 1]}), but rows must"
            " be in the order of serving; sort them by time, not by the arrival of outcomes"
        )


def _outcomes(pit: Any, outcome: Any, probability: Any, n: int) -> tuple[Pair, Mask, Floats | None]:
    """Return PIT cells, whether the outcome is known, and the excess of 0/1 outcomes."""
    if (pit is None) == (outcome is None) or (outcome is None) != (probability is None):
        raise InputError(
            "rows need either pit, or outcome and probability of 0/1 forecasts; give one of them"
        )
    if pit is not None:
        ends = pit if isinstance(pit, tuple) else (pit, pit)
        if len(ends) != 2:
            raise bad_input("pit", "be one array or a tuple of two", f"{len(ends)} arrays")
        low, high = (check_numbers("pit", end, n) for end in ends)
        return (low, high), ~(np.isnan(low) | np.isnan(high)), None
    y = check_numbers("outcome", outcome, n)
    p = check_numbers("probability", probability, n)
    known = ~np.isnan(y)
    refuse_entry("outcome", y, known & ~np.isin(y, (0.0, 1.0)), "be 0 or 1", "code the event as 1")
    # outcomes 0 fill [0, 1 - p] and outcomes 1 fill [1 - p, 1]
    return (np.where(y == 1, 1 - p, 0.0), np.where(y == 1, 1.0, 1 - p)), known, y - p


def _delays(times: Times, recorded: Any, matures_after: Any, known: Mask) -> tuple[Floats, Mask]:
    """Return days from serving to the record of known outcomes, and which came in time."""
    at = as_times("recorded", recorded, allow_missing=True)
    at = _one_per_time("recorded", at, times.size)
    waited = at - times
    delay = np.where(known & ~np.isnat(at), waited / np.timedelta64(1, "D"), np.nan)
    early = np.flatnonzero(delay < 0)
    if early.size:
        row = early[0]
        got = f"{at[row]} for a forecast of {times[row]}"
        raise bad_input(place_of("recorded", (row,)), "not be before its forecast", got)
    if matures_after is None:
        return delay, np.full(times.size, True)
    return delay, waited <= as_duration(matures_after)


def _order(times: Times, id: Any) -> Ints:
    """Return the row numbers in the order of serving."""
    if id is not None:
        return np.lexsort((_one_per_time("id", np.asarray(id).astype(str), times.size), times))
    order = np.argsort(times, kind="stable")
    # the order of the log may be that of the outcomes, which would be evidence by itself
    is_sorted = (order == np.arange(times.size)).all()
    repeated = np.flatnonzero(times[order][1:] == times[order][:-1])
    if not is_sorted and repeated.size:
        row = order[repeated[0] + 1]
        raise InputError(
            f"{place_of('time', (row,))} is {times[row]}, as in another row, and rows are not in"
            " the order of serving; give the ids of the forecasts as id, or times with more digits"
        )
    return order


def _base(cells: Pair, r: Floats | None, link: Link, known: Mask) -> Pair:
    """Return the base PIT cells `u = K(c; r)` of served PITs c (outcomes: 6)."""
    if r is None:
        raise InputError("a link needs the draws of the forecasts; give r as well")
    refuse_missing("r", known & np.isnan(r), ", but the link needs the draw of each row")
    low, high = (np.full(known.size, np.nan) for _ in cells)
    low[known], high[known] = (link.cdf(end[known], r[known]) for end in cells)
    return low, high
